// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observability

/// The verdict, for people and as JSON.
struct ChaosReport: Encodable {
    struct Settings: Encodable {
        var seed: UInt64
        var minutes: Double
        var rate: Double
        var replicas: Int
        var broker: String
        var store: String
        var topicPrefix: String
    }

    struct InjuryReport: Encodable {
        var kind: ChaosHistory.Injury.Kind
        var what: String
        var beginSeconds: Double
        var endSeconds: Double?
        /// The longest wait for a first answer that it caused; none when no command met it.
        var recoverySeconds: Double?
        var promisedSeconds: Double?
    }

    let verdict: String
    let settings: Settings
    let commands: Int
    let copiesSent: Int
    let replies: Int
    let events: Int
    let outcomes: [String: Int]
    let injuries: [InjuryReport]
    let findings: [ChaosFinding]

    var isPassed: Bool { findings.isEmpty }

    init(_ history: ChaosHistory, settings: Settings) {
        self.settings = settings
        findings = ChaosJudge(history).findings
        commands = history.commands.count
        copiesSent = history.commands.values.reduce(0) { $0 + $1.sentAt.count }
        replies = history.answers.values.reduce(0) { $0 + $1.count }
        events = history.events.count
        outcomes = history.commands.keys.reduce(into: [:]) {
            $0[history.finalAnswer($1)?.outcome ?? "unanswered", default: 0] += 1
        }
        injuries = history.injuries.map { injury in
            InjuryReport(
                kind: injury.kind, what: injury.what, beginSeconds: Self.rounded(injury.begin),
                endSeconds: injury.end.map(Self.rounded),
                recoverySeconds: ChaosRecovery(injury, in: history).map { Self.rounded($0.seconds) },
                promisedSeconds: injury.limit)
        }
        verdict = findings.isEmpty ? "PASSED" : "FAILED"
    }

    /// The verdict in words, a line each.
    var lines: [String] {
        let counts =
            "\(Self.grouped(commands)) commands (\(Self.grouped(copiesSent)) sent with repetitions), \(injuries.count) injuries"
        guard !isPassed else {
            let slowest = injuries.compactMap { injury in injury.recoverySeconds.map { ($0, injury.what) } }
                .max { $0.0 < $1.0 }
            let recovery = slowest.map { "; slowest recovery \(ChaosHistory.time($0.0)), after \($0.1)" } ?? ""
            return ["PASSED: \(counts), nothing lost, nothing doubled\(recovery)"]
        }
        let kinds = Dictionary(grouping: findings, by: \.kind).sorted { $0.key.rawValue < $1.key.rawValue }
        let summary = kinds.map { "\($0.value.count) \($0.key.rawValue)" }.joined(separator: ", ")
        var lines = ["FAILED: \(summary), in \(counts)"]
        for (_, same) in kinds {
            for finding in same.prefix(3) {
                lines.append("  \(finding.kind.rawValue): \(finding.what)")
                lines += finding.story.prefix(12).map { "      \($0)" }
            }
            if same.count > 3 { lines.append("  and \(same.count - 3) more of this kind") }
        }
        return lines.map(\.harmless)
    }

    func json(pretty: Bool = true) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if pretty { encoder.outputFormatting.insert(.prettyPrinted) }
        return try encoder.encode(self)
    }

    /// To milliseconds.
    private static func rounded(_ seconds: Double) -> Double { (seconds * 1000).rounded() / 1000 }

    /// 12,345
    private static func grouped(_ number: Int) -> String {
        var digits = String(number)
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return ([digits] + groups).joined(separator: ",")
    }
}
