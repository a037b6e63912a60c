// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import WireJSON

/// What creating users and resetting them again, on the same installs, leaves in the stores. Inbox, outbox and sagas
/// are kept for the topics' retention and are not counted.
struct Growth {
    let installs: Int
    /// Rows by `service.table` after the first and after the last cycle.
    let first: [String: Int]
    let last: [String: Int]
    let cycles: Int
    let complaints: [String]

    /// - Parameter codes: whether users are created with authentication codes, or with the app's secret, unlinked.
    static func run(_ stage: Stage, withCodes codes: Bool, installs: Int, cycles: Int) throws -> Growth {
        var counts: [[String: Int]] = []
        var complaints: [String] = []
        for part in [0..<1, 1..<cycles] {
            let services = try stage.start()
            defer { services.stop() }
            for cycle in part { try run(cycle, stage, services, codes: codes, installs: installs) }
            complaints += services.complaints
            services.stop()
            counts.append(try rows(stage))
        }
        return Growth(
            installs: installs, first: counts[0], last: counts[1], cycles: cycles, complaints: complaints)
    }

    private static func run(
        _ cycle: Int, _ stage: Stage, _ services: ServiceGroup, codes: Bool, installs: Int
    ) throws {
        let factory = CommandFactory(stage)
        func id(_ step: String, _ number: Int) -> String { "\(step)-\(cycle)-\(number)" }
        let requests = try (0..<(codes ? installs : 0)).map {
            try factory.record(RequestAuthCode(externalId: UserWorkload.externalID($0)), id: id("code", $0))
        }
        // Creations are what the requests prepare, and resets what the creations prepare.
        let creations = Workload("creations", preparation: requests, count: installs) { results in
            try (0..<installs).map { number in
                let code = codes ? try UserWorkload.code(in: results[id("code", number)]) : nil
                return try factory.record(UserWorkload.creation(number, code: code), id: id("create", number))
            }
        }
        let resets = Workload(
            "resets", preparation: try stage.prepare(creations, with: services), count: installs
        ) { _ in
            try (0..<installs).map {
                try factory.record(
                    ResetUser(installId: UserWorkload.installID($0)), id: id("reset", $0), asService: true)
            }
        }
        let end = Workload("the end", preparation: try stage.prepare(resets, with: services), [])
        _ = try stage.prepare(end, with: services)
    }

    private static let kept = Set(
        Inbox.tables
            + [
                "inbox_state", "logs", "decider", "outbox", "saga", "progress", "set_aside", "forward", "dry_run",
                "salt",
            ])

    private static func rows(_ stage: Stage) throws -> [String: Int] {
        var rows: [String: Int] = [:]
        for service in stage.services {
            let database = try stage.store(of: service)
            defer { database.close() }
            try database.transaction { transaction in
                let tables =
                    switch stage.engine {
                    case .sqlite:
                        try transaction.query("SELECT name FROM sqlite_master WHERE type = 'table'")
                    case .postgresql:
                        try transaction.query(
                            "SELECT table_name FROM information_schema.tables WHERE table_schema = $1",
                            [.text("identity_\(service)")])
                    }
                for table in try tables.map({ try $0.text(0) }) where !kept.contains(table) {
                    let count = try transaction.query("SELECT COUNT(*) FROM \(table)")[0].integer(0)
                    rows["\(service).\(table)"] = Int(count)
                }
            }
        }
        return rows
    }

    func tell(_ report: inout Report) {
        for name in Set(first.keys).union(last.keys).sorted() {
            report.add("\(name): rows after 1 cycle", Double(first[name] ?? 0))
            report.add("\(name): rows after \(cycles)", Double(last[name] ?? 0))
        }
        report.problems += complaints.prefix(5).map { "the log says \($0)" }
    }
}
