// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import Observability
import Runtime
import Storage
import Supervision

/// Looks at the services' schemas over one connection, and writes nothing.
struct PostgreSQLExamination: Sendable {
    let url: String
    /// What the names of the schemas begin with.
    let schemas: String
    let services: [any CommandService.Type]
    /// Connections that each service takes.
    let loops: Int
    /// Whether services migrate at their start.
    let migrate: MigrationTime

    /// What the server says of itself.
    private struct Facts {
        var role: String
        var database: String
        var version: String
        var number: Int64
        var isReadOnly: Bool
        /// Milliseconds since 1970.
        var time: Int64
        /// The version of TLS.
        var encryption: String?
    }

    /// For the head of the section. Without the password.
    var place: String {
        let name = PostgreSQLDatabase.name(of: url)
        return (PostgreSQLDatabase.place(of: url) + (name.isEmpty ? "" : "/\(name)")).harmless
    }

    func run() -> [Finding] {
        let start = ContinuousClock.now
        // That schema is always there; one that is missing would be made.
        do {
            let database = try PostgreSQLDatabase(url: url, schema: "pg_catalog", makesSchema: false, logger: .quiet)
            defer { database.close() }
            try database.transaction { _ = try $0.query("SELECT 1", []) }
            let connected = start.duration(to: .now)
            let (facts, ahead) = try Self.facts(database)
            var found = letIn(facts, connected)
            found += timed { server(facts, ahead) }
            found += try timed { [try room(database)] }
            // A role may be allowed few.
            database.close()
            return found + schemas(facts)
        } catch let error as StorageError {
            return refusal(error).taking(start.duration(to: .now))
                .skippingRest(of: .postgresql, needs: "the server", but: checksOfTLS)
        } catch {
            return [.fail(.databaseReachable, "\(error)")]
        }
    }

    private var checksOfTLS: Set<CheckID> { [.databaseTLS, .databaseCertificate] }
    private var encryption: String { PostgreSQLDatabase.encryption(of: url) }

    // MARK: The server

    /// - Returns: how far its clock is ahead of ours too, in milliseconds.
    private static func facts(_ database: any SQLDatabase) throws -> (Facts, Int64) {
        let sql = """
            SELECT current_user::text, current_database()::text, current_setting('server_version'),
                current_setting('server_version_num')::bigint,
                (current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery())::int::bigint,
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl)
            """
        // The first time it is prepared; the second answer is a round trip away.
        return try database.transaction { transaction in
            _ = try transaction.query(sql, [])
            let before = Timestamp.now.milliseconds
            guard let row = try transaction.query(sql, []).first else {
                throw StorageError(kind: .invalid, message: "the server says nothing of itself")
            }
            let after = Timestamp.now.milliseconds
            let facts = Facts(
                role: try row.text(0), database: try row.text(1), version: try row.text(2), number: try row.integer(3),
                isReadOnly: try row.integer(4) == 1, time: try row.integer(5), encryption: try row.optionalText(6))
            // Somewhere between the two it looked at its clock.
            let ahead = facts.time > after ? facts.time - after : facts.time < before ? facts.time - before : 0
            return (facts, ahead)
        }
    }

    private func letIn(_ facts: Facts, _ time: Duration) -> [Finding] {
        var found: [Finding] = [.ok(.databaseReachable, "\(facts.version), \(time.inMilliseconds) ms")]
        let mode = encryption
        if let version = facts.encryption {
            found.append(.ok(.databaseTLS, "\(version) (\(mode))"))
            if let shown = PostgreSQLDatabase.certificate(of: url, timeout: .seconds(3)) {
                found.append(
                    KafkaExamination.certificate(
                        .databaseCertificate, shown, of: PostgreSQLDatabase.place(of: url), now: .now))
            }
            if let (file, own) = ownCertificate {
                found.append(
                    KafkaExamination.certificate(.databaseCertificate, own, of: file, isOurs: true, now: .now))
            }
        } else if !isHere {
            found.append(
                .warn(
                    .databaseTLS, "the connection is not encrypted", subject: place,
                    fix: "Add ?sslmode=verify-full to DATABASE_URL, and PGSSLROOTCERT for its authority."))
        }
        found.append(.ok(.databaseSignIn, "as \(facts.role) to \(facts.database)"))
        found.append(.ok(.databaseSession, "each connection has its own"))
        return found.taking(time)
    }

    /// What we show, and its file; `nil` where there is none.
    private var ownCertificate: (file: String, certificate: PeerCertificate)? {
        guard let file = PostgreSQLDatabase.ownCertificate(of: url, home: NSHomeDirectory()),
            let text = try? String(contentsOfFile: file, encoding: .utf8)
        else { return nil }
        return PeerCertificate(pem: text).map { (file, $0) }
    }

    /// Whether the server is on this machine.
    private var isHere: Bool {
        PostgreSQLDatabase.place(of: url).split(separator: ",").allSatisfy { place in
            ["127.", "localhost:", "[::1]", "/"].contains { place.hasPrefix($0) }
        }
    }

    private func server(_ facts: Facts, _ ahead: Int64) -> [Finding] {
        var found: [Finding] = []
        found.append(
            facts.number >= 150_000
                ? .ok(.databaseVersion, facts.version)
                : .fail(.databaseVersion, "the server is PostgreSQL \(facts.version), and 15 or later is needed"))
        found.append(Self.clock(ahead))
        if facts.isReadOnly {
            found.append(
                .fail(.databaseWrites, "takes no writes (read-only)", subject: place, fix: Problem.readOnlyAdvice))
        }
        return found
    }

    private func room(_ database: any SQLDatabase) throws -> Finding {
        let names = services.map { schemas + $0.name }
        let (room, open) = try database.transaction { transaction in
            (try ConnectionRoom(in: transaction), try ServiceLock.holders(of: names, in: transaction))
        }
        // A service that runs has its own already.
        let wanted = names.map { max(0, loops - (open[$0] ?? 0)) }.reduce(0, +)
        let who = services.count == 1 ? "the \(services[0].name) service" : "\(services.count) services"
        return room.finding(wanted: wanted, of: "\(who) with LOOPS=\(loops)")
    }

    /// - Parameter ahead: milliseconds.
    static func clock(_ ahead: Int64) -> Finding {
        let seconds = (Double(abs(ahead)) / 1000).formatted(.number.precision(.fractionLength(1)))
        if abs(ahead) <= 1000 { return .ok(.databaseClock, abs(ahead) < 50 ? "as ours" : "\(seconds) s off") }
        let words = "the server is \(seconds) s \(ahead > 0 ? "ahead of" : "behind") us"
        let fix = "Set both by NTP. Whoever is wrong: services decide by their own clock."
        return abs(ahead) <= 5000
            ? .warn(.databaseClock, words, fix: fix) : .fail(.databaseClock, words, fix: fix)
    }

    // MARK: The schemas

    private func schemas(_ facts: Facts) -> [Finding] {
        let works = services.map { service in
            let schema = SchemaExamination(
                url: url, schema: schemas + service.name, service: service, migrate: migrate)
            return { @Sendable in timed { schema.run() } }
        }
        let results = SideBySide(works).results(by: .now + .seconds(8))
        var found = zip(services, results).flatMap { service, result in
            result
                ?? [
                    .fail(
                        .databaseReachable, "no answer about \(schemas)\(service.name)", subject: place,
                        fix: "Does PostgreSQL run there? Its address is from DATABASE_URL.", cause: "timed-out")
                ]
        }
        for id in [CheckID.databaseSchema, .databaseRights] {
            found = Self.together(found, id) + found.filter { $0.id != id || $0.level != .ok }
        }
        if !facts.isReadOnly, !found.contains(where: { $0.id == .databaseWrites }) {
            found.append(.ok(.databaseWrites, "takes writes"))
        }
        return found
    }

    /// One line for all that are well.
    private static func together(_ findings: [Finding], _ id: CheckID) -> [Finding] {
        let mine = findings.filter { $0.id == id && $0.level == .ok }
        guard let first = mine.first else { return [] }
        var all = first
        let messages = mine.map(\.message)
        all.message = messages.allSatisfy { $0 == first.message } ? first.message : messages.joined(separator: ", ")
        all.subject = mine.map(\.subject).joined(separator: ",")
        all.milliseconds = mine.map(\.milliseconds).reduce(0, +)
        return [all]
    }

    // MARK: Who is not let in

    private func refusal(_ error: StorageError) -> [Finding] {
        var cause = PostgreSQLCause(error)
        // With prefer and allow, TLS was tried; and a server that speaks none lets nobody in for it.
        if cause == .wantsTLS,
            encryption != "disable" || PostgreSQLDatabase.certificate(of: url, timeout: .seconds(3)) == nil
        {
            cause = .noRight
        }
        let id = cause.check
        var found: [Finding] = []
        if id != .databaseReachable { found.append(.ok(.databaseReachable, "\(place): the port answers")) }
        if id == .databaseSession { found.append(.ok(.databaseSignIn, "to \(place)")) }
        let problem = Problem(error)
        var finding = Finding.fail(id, "\(place): \(error.message)", subject: place, cause: cause.rawValue)
        finding.fix = problem.advice
        switch cause {
        case .readOnly: finding.fix = [Problem.readOnlyAdvice]
        case .full: finding.fix = ["Raise that limit, or end sessions that nobody needs (pg_stat_activity)."]
        case .certificateRefused, .wrongHostName, .noAuthorities: explain(&finding, cause)
        case .clientCertificate:
            finding.fix = [
                "sslcert and sslkey of DATABASE_URL, or PGSSLCERT and PGSSLKEY, name a certificate that the server accepts."
            ]
            if let (file, own) = ownCertificate, let flaw = own.flaw(.now) {
                finding.message += ". The one of \(file) \(flaw)"
                finding.fix = ["Put one there that is good now."]
            }
        case .tlsToPlain:
            finding.fix = ["sslmode=\(encryption) of DATABASE_URL or PGSSLMODE asks for TLS: ssl=on at the server."]
        case .wantsTLS: finding.fix = ["Try sslmode=verify-full in DATABASE_URL.", Self.permission(error.message)]
        case .parameter: finding.fix = [Self.parameters]
        case .noRight: finding.fix = [Self.permission(error.message)]
        default: break
        }
        return found + [finding]
    }

    /// What to look at when the server or libpq refuses a parameter of the connection.
    private static var parameters: String {
        let names = ProcessInfo.processInfo.environment.keys.filter { Setting.named($0)?.name == "PG*" }.sorted()
        return "It is a parameter of DATABASE_URL\(names.isEmpty ? "" : ", or of \(names.joined(separator: ", "))")."
    }

    /// - Parameter words: why somebody is not let in whose password may be right.
    private static func permission(_ words: String) -> String {
        switch true {
        case words.contains("pg_hba.conf"):
            "Who runs the server gives this user, database and address a line in pg_hba.conf."
        case words.contains("not permitted to log in"): "A superuser, or a role with CREATEROLE: ALTER ROLE … LOGIN."
        case words.contains("accepting connections"): "Its owner: ALTER DATABASE … ALLOW_CONNECTIONS true."
        default: "Its owner: GRANT CONNECT ON DATABASE … TO the role."
        }
    }

    /// libpq says the same of every certificate that it refuses.
    private func explain(_ finding: inout Finding, _ cause: PostgreSQLCause) {
        let file = PostgreSQLDatabase.authorities(of: url)
        finding.fix = ["PGSSLROOTCERT, or sslrootcert in DATABASE_URL, names the authority that issued it."]
        guard let shown = PostgreSQLDatabase.certificate(of: url, timeout: .seconds(3)) else { return }
        let now = Timestamp.now
        if cause == .wrongHostName {
            finding.fix = [
                "Use the name that it is for (\(shown.subject)) in DATABASE_URL, or have one issued for this name."
            ]
        } else if shown.ends < now || shown.begins > now {
            finding.cause = "certificate-expired"
            finding.message =
                "\(place): the certificate is over or not valid yet: from \(shown.begins.rfc3339.prefix(10)) to "
                + "\(shown.ends.rfc3339.prefix(10)), issued by \(shown.issuer)"
            finding.fix = ["Who runs that server renews it."]
        } else if cause == .certificateRefused {
            finding.cause = "unknown-ca"
            finding.message =
                "\(place): not issued by an authority in \(file ?? "libpq's file"); its issuer is \(shown.issuer)"
        }
    }
}

extension PostgreSQLCause {
    /// Which check it is that fails.
    var check: CheckID {
        switch self {
        case .nameNotResolved, .refused, .unreachable, .timedOut, .closed, .notPostgreSQL, .parameter, .other:
            .databaseReachable
        case .tlsToPlain, .wantsTLS: .databaseTLS
        case .noAuthorities, .certificateRefused, .wrongHostName, .clientCertificate: .databaseCertificate
        case .wrongCredentials, .noRight, .noDatabase: .databaseSignIn
        case .readOnly: .databaseWrites
        case .full: .databaseRoom
        case .transactionPooler: .databaseSession
        }
    }
}
