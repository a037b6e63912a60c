// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

/// Topics as people look at them: a line each, more where more is to be said of one.
struct TopicTable {
    private static let heads = ["TOPIC", "PARTS", "COPIES", "MIN.ISR", "KEEPS", "TIME", "SIZE"]
    private let rows: [(cells: [String], verdict: String, reasons: [String])]

    init(_ findings: [TopicSurvey.Finding]) {
        rows = findings.map { finding in
            func setting(_ key: String, _ words: (String) -> String = { $0 }) -> String {
                finding.settings[key].map(words) ?? "-"
            }
            let state = finding.state
            let cells = [
                finding.topic.spec.name, state.exists ? "\(state.partitions)" : "-",
                state.exists ? "\(state.replicas)" : "-", setting("min.insync.replicas"),
                setting("retention.ms", TopicSpec.time), setting("message.timestamp.type", TopicSpec.clock),
                setting("max.message.bytes", TopicSpec.size),
            ]
            let verdict = finding.verdict == .ok ? "ok" : finding.verdict.rawValue.uppercased()
            return (cells, verdict, finding.reasons)
        }
    }

    /// Names to the left, numbers to the right.
    var lines: [String] {
        let table = [Self.heads] + rows.map(\.cells)
        let widths = Self.heads.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        let verdicts = rows.map(\.verdict.count).max() ?? 0
        func line(_ cells: [String]) -> String {
            cells.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return column == 0 ? cell + space : space + cell
            }.joined(separator: "  ")
        }
        return [line(Self.heads)]
            + rows.flatMap { row -> [String] in
                let first = line(row.cells)
                let reasons = row.reasons.map(\.harmless)
                let start = "\(first)  \(row.verdict)"
                guard let reason = reasons.first else { return [start] }
                let verdict = row.verdict + String(repeating: " ", count: verdicts - row.verdict.count)
                let indent = String(repeating: " ", count: first.count + 2 + verdicts + 3)
                return ["\(first)  \(verdict)   \(reason)"] + reasons.dropFirst().map { indent + $0 }
            }
    }
}

extension TopicSurvey.Finding {
    /// As one line. Numbers of Kafka's settings are numbers.
    func json(isCreated: Bool) -> String {
        var line: [(String, JSONValue)] = [("topic", .string(topic.spec.name)), ("state", .string(verdict.rawValue))]
        if let app = topic.app { line.append(("app", .string(app.text))) }
        if isCreated { line.append(("created", .bool(true))) }
        line.append(("wanted", Self.members(topic.spec.partitions, topic.spec.replicationFactor, topic.spec.config)))
        if state.exists { line.append(("actual", Self.members(state.partitions, state.replicas, settings))) }
        line.append(("problems", .array(reasons.map { .string($0) })))
        return String(decoding: JSONValue.object(JSONObject(line)).serialized(), as: UTF8.self)
    }

    /// Those that something may be wanted of.
    private static let shown = [
        "min.insync.replicas", "retention.ms", "retention.bytes", "message.timestamp.type", "max.message.bytes",
        "cleanup.policy",
    ]

    private static func members(_ partitions: Int, _ copies: Int, _ settings: [String: String]) -> JSONValue {
        var members: [(String, JSONValue)] = [("partitions", .number(JSONNumber(partitions)))]
        if copies > 0 { members.append(("copies", .number(JSONNumber(copies)))) }
        for key in shown {
            guard let text = settings[key] else { continue }
            members.append((key, Int64(text).map { .number(JSONNumber($0)) } ?? .string(text)))
        }
        return .object(JSONObject(members))
    }
}
