// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Observability
import Runtime
import Supervision

/// All that `identitybus doctor` looks at: the parts beside each other, so that what hangs holds up nothing else.
struct Examination {
    private let environment: [String: String]
    private let roles: [Role]
    private let brokerAdvice: String

    /// Where the whole ends, whatever has not answered by then.
    private static let limit = Duration.seconds(14)

    /// - Parameters:
    ///   - role: `nil` for all that can run with the environment.
    ///   - brokerAdvice: what to do when nothing is at Kafka's address.
    init(_ environment: [String: String], as role: Role?, brokerAdvice: String) {
        self.environment = environment
        self.brokerAdvice = brokerAdvice
        roles = role.map { [$0] } ?? Role.all(servedBy: environment)
    }

    /// A part of the report, with what stands at its head.
    private struct Part: Sendable {
        let section: CheckID.Section
        let head: String
        let look: @Sendable () -> [Finding]
    }

    /// - Parameter stop: is asked many times a second.
    /// - Throws: `Problem` when it was asked to stop.
    func run(unless stop: () -> Bool) throws -> DoctorReport {
        let end = ContinuousClock.now + Self.limit
        var settings: ConfigurationExamination?
        var findings = timed {
            let read = ConfigurationExamination(environment, of: roles)
            settings = read
            return read.findings
        }
        let parts = settings.map(parts) ?? []
        let results = SideBySide(parts.map(\.look)).results(by: end, unless: stop)
        if stop() { throw Problem(.interrupted, "interrupted; nothing was done") }
        var report = DoctorReport(findings: [])
        for (part, found) in zip(parts, results) {
            report.heads[part.section] = part.head
            findings += found ?? Self.unanswered(part)
        }
        report.findings = CheckID.allCases.flatMap { id in findings.filter { $0.id == id } }
        return report
    }

    private static func unanswered(_ part: Part) -> [Finding] {
        let first = part.section.checks[0]
        return [
            Finding.fail(
                first, "\(part.head): no answer within \(limit.components.seconds) s", subject: part.head,
                fix: "Is it there, and does it run? Nothing that was asked there was answered.", cause: "timed-out")
        ]
        .taking(limit).skippingRest(of: part.section, needs: "an answer")
    }

    private func parts(_ settings: ConfigurationExamination) -> [Part] {
        guard let configuration = settings.configuration else { return [] }
        var parts: [Part] = []
        let kafka = KafkaExamination(
            configuration: configuration, needs: KafkaNeeds(configuration, apps: settings.apps, roles: roles),
            advice: brokerAdvice)
        parts.append(
            settings.isKafkaUnknown
                ? Part(section: .kafka, head: "") { [Finding]().skippingRest(of: .kafka, needs: "the settings") }
                : Part(section: .kafka, head: kafka.place) { kafka.run() })
        let services = roles.compactMap(\.service)
        if services.isEmpty { return parts }
        switch configuration.database {
        case .postgresql(let url, let schemas, _):
            let database = PostgreSQLExamination(
                url: url, schemas: schemas, services: services, loops: configuration.loops,
                migrate: configuration.migrate)
            parts.append(Part(section: .postgresql, head: database.place) { database.run() })
        case .sqlite(let folder, _):
            guard !settings.isDatabaseUnknown else {
                parts.append(
                    Part(section: .postgresql, head: "") {
                        [Finding]().skippingRest(of: .postgresql, needs: "the settings")
                    })
                break
            }
            let files = SQLiteExamination(folder: folder, services: services, migrate: configuration.migrate)
            parts.append(Part(section: .sqlite, head: folder.harmless) { files.run() })
        }
        return parts
    }
}
