// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc

/// All that a connection is made from. Checked once, so that a wrong setting shows at start and not at midnight.
struct PostgreSQLSettings {
    let url: String
    let schema: String
    let statementTimeout: Duration
    let idleTransactionTimeout: Duration
    /// Each connection shares the ``ServiceLock``.
    let isOfService: Bool
    /// Each connection makes the schema where it is missing.
    let makesSchema: Bool
    /// Only to keep it out of error messages.
    private let password: String?

    init(
        url: String, schema: String, statementTimeout: Duration, idleTransactionTimeout: Duration, isOfService: Bool,
        makesSchema: Bool = true
    ) throws(StorageError) {
        guard Self.isPlainIdentifier(schema) else {
            throw .invalid(
                "a schema name is a letter and then at most 62 of a-z, 0-9 and _")
        }
        do {
            password = try PostgreSQLURL(url).options["password"]
        } catch {
            throw .invalid("the PostgreSQL URL \(error.message)")
        }
        self.url = url
        self.schema = schema
        self.statementTimeout = statementTimeout
        self.idleTransactionTimeout = idleTransactionTimeout
        self.isOfService = isOfService
        self.makesSchema = makesSchema
    }

    /// The same with another URL.
    /// - Throws: `invalid` for one that cannot be used.
    func with(url: String) throws(StorageError) -> PostgreSQLSettings {
        try PostgreSQLSettings(
            url: url, schema: schema, statementTimeout: statementTimeout,
            idleTransactionTimeout: idleTransactionTimeout, isOfService: isOfService, makesSchema: makesSchema)
    }

    /// libpq's keywords. What the URL says wins over the defaults before it; the encoding is not open to choice.
    var keywords: [(name: String, value: String)] {
        [
            ("connect_timeout", "5"),
            ("keepalives_idle", "10"),
            ("keepalives_interval", "5"),
            ("keepalives_count", "3"),
            // Milliseconds after which unanswered data means that the server's host is gone.
            ("tcp_user_timeout", "10000"),
            // With several hosts in the URL, the one that takes writes.
            ("target_session_attrs", "read-write"),
            ("fallback_application_name", "identitybus"),
            ("dbname", url),
            ("client_encoding", "UTF8"),
        ]
    }

    /// What a new session is told before its first transaction.
    var sessionStatements: [String] {
        [
            "SET search_path TO \"\(schema)\"",
            "SET statement_timeout TO \(statementTimeout.inMilliseconds)",
            // A replica that stands still in the middle of a transaction must not hold its locks for long.
            "SET idle_in_transaction_session_timeout TO \(idleTransactionTimeout.inMilliseconds)",
            // Shorter than that, so that waiting for a lock does not make a session look as if it stood still.
            "SET lock_timeout TO \((idleTransactionTimeout / 2).inMilliseconds)",
            // Every row is found by a key. A plan that was made while a table was small, to read all of it, would be kept
            // while it grows. (Without an index a table is read all the same, at a price so high that it would be worth
            // compiling.)
            "SET enable_seqscan TO off",
            "SET jit TO off",
        ]
    }

    /// Keys the advisory lock of ``PostgreSQLDatabase/exclusiveTransaction(_:)``: one for each schema.
    var lockKey: Int64 {
        Int64(bitPattern: Fingerprint.of(["identitybus.storage", schema]))
    }

    /// Of what the server says. It repeats names, and a URL with a mistake may have the password in one of them.
    func withoutPassword(_ message: String) -> String {
        let message = message.replacing(/password=[^\s"&]*/, with: "password=***")
        guard let password, !password.isEmpty else { return message }
        return message.split(separator: password, omittingEmptySubsequences: false).joined(separator: "***")
    }

    static func place(of url: String) -> String {
        guard let url = try? PostgreSQLURL(url) else { return "an unknown place" }
        func list(_ name: String, _ variable: String, _ usual: String) -> [String] {
            let known = url.list(name) ?? getenv(variable).map { String(cString: $0).split(separator: ",") } ?? []
            return known.isEmpty ? [usual] : known.map { $0.isEmpty ? usual : String($0) }
        }
        let ports = list("port", "PGPORT", "5432")
        return list("host", "PGHOST", "localhost").enumerated()
            .map { PostgreSQLWords.address($1, $0 < ports.count ? ports[$0] : ports[0]) }.joined(separator: ",")
    }

    private static func isPlainIdentifier(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= 63 else { return false }
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return letters.contains(first)
            && name.utf8.allSatisfy { letters.contains($0) || digits.contains($0) || $0 == UInt8(ascii: "_") }
    }
}
