// SPDX-License-Identifier: Apache-2.0

import Storage
import Supervision

/// What a service's role gets on its schema: all that its work needs, and nothing that changes a table. docs/operations.md
/// has the same as SQL.
struct SchemaGrant {
    /// TRUNCATE empties the oldest generation of the inbox.
    static let rights = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"]

    let role: String
    let schema: String

    var statements: [String] {
        let (rights, role) = (Self.rights.joined(separator: ", "), Self.quoted(role))
        return [
            "GRANT USAGE ON SCHEMA \(schema) TO \(role)",
            "GRANT \(rights) ON ALL TABLES IN SCHEMA \(schema) TO \(role)",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA \(schema) GRANT \(rights) ON TABLES TO \(role)",
        ]
    }

    /// As SQL takes a name; without quotes where it needs none.
    static func quoted(_ name: String) -> String {
        let isPlain =
            name.utf8.first.map { (0x61...0x7A).contains($0) || $0 == 0x5F } == true
            && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
        return isPlain ? name : "\"" + name.replacing("\"", with: "\"\"") + "\""
    }

    /// - Throws: `Problem` for a role that is not there.
    static func requireRole(_ role: String, in transaction: any SQLTransaction) throws {
        guard try transaction.query("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1", [.text(role)]).isEmpty
        else {
            return
        }
        throw Problem(
            .refused, "there is no role \(role). Nothing was changed.",
            "Make it first: CREATE ROLE \(quoted(role)) LOGIN;")
    }

    /// Whether the role lacks something of it, now or on tables to come.
    func isMissing(in transaction: any SQLTransaction) throws -> Bool {
        let rights = Self.rights.map { "('\($0)')" }.joined(separator: ", ")
        return try transaction.query(
            """
            SELECT 1 FROM pg_catalog.pg_roles AS r, pg_catalog.pg_namespace AS n
            WHERE rolname = $1 AND nspname = $2 AND has_schema_privilege(r.oid, n.oid, 'USAGE')
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c, (VALUES \(rights)) AS needed (privilege)
                    WHERE relnamespace = n.oid AND relkind = 'r'
                        AND NOT has_table_privilege(r.oid, c.oid, privilege))
                AND EXISTS (SELECT FROM pg_catalog.pg_default_acl, aclexplode(defaclacl)
                    WHERE defaclnamespace = n.oid AND defaclobjtype = 'r' AND grantee = r.oid
                        AND privilege_type = 'TRUNCATE')
            """, [.text(role), .text(schema)]
        ).isEmpty
    }

    /// Who has to do it, where this role may not: only an owner gives rights away, and PostgreSQL takes it from others
    /// without a word.
    func owner(in transaction: any SQLTransaction) throws -> String? {
        try transaction.query(
            """
            SELECT pg_get_userbyid(owner)::text FROM (
                SELECT nspowner AS owner FROM pg_catalog.pg_namespace WHERE nspname = $1
                UNION SELECT relowner FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
                WHERE nspname = $1 AND relkind = 'r') AS owners
            WHERE NOT pg_has_role(owner, 'USAGE')
            """, [.text(schema)]
        ).first?.text(0)
    }
}

/// Which role is which service's, as `--grant` says it.
struct ServiceRoles {
    private var roles: [String: String] = [:]

    subscript(service: String) -> String? { roles[service] }

    /// - Throws: `Problem` that names the word that is wrong.
    init(_ options: [String], among services: [String]) throws {
        for part in options.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            let words = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard words.count == 2 else { throw Self.problem("--grant \(part) does not name a service and its role.") }
            guard services.contains(words[0]) else {
                let guess = nearest(to: words[0], in: services).map { " Did you mean \($0)?" } ?? ""
                throw Self.problem(
                    "--grant names \(words[0]), which is none of \(services.joined(separator: ", ")).\(guess)")
            }
            guard roles.updateValue(words[1], forKey: words[0]) == nil else {
                throw Self.problem("--grant names \(words[0]) twice.")
            }
        }
    }

    private static func problem(_ what: String) -> Problem {
        Problem(.usage, what, "Such as: --grant link=ib_link,user=ib_user,sync=ib_sync,verification=ib_verify")
    }
}
