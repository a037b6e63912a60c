// SPDX-License-Identifier: Apache-2.0

import Contracts
import Explanation
import Supervision
import WireJSON

/// Decisions as the services have them.
enum FactLines {
    /// For engineers.
    static func lines(_ fact: Fact) -> [String] {
        let outcome = fact.outcome + (fact.reason.map { " \($0)" } ?? "")
        var lines = [
            "\(fact.decidedAt.rfc3339)  \(fact.service)  \(RecordLine.short(fact.type))  \(outcome)  from "
                + "\(fact.source.text.isEmpty ? "?" : fact.source.text) \(fact.commandId)"
                + (fact.authId.map { ", key \($0)" } ?? ""),
            "    record   \(fact.topic)/\(fact.partition)@\(fact.offset)",
        ]
        if let trace = fact.traceId { lines.append("    trace    \(trace)") }
        for event in fact.events { lines.append(told("event   ", event)) }
        for command in fact.commands { lines.append(told("sent    ", command)) }
        if fact.hasSecret == true {
            lines.append("    answered with a secret, which is not shown")
        } else {
            let result = fact.result.map { RecordLine().pairs($0) } ?? ""
            let parts = [fact.message, result.isEmpty ? nil : result].compactMap(\.self)
            if !parts.isEmpty { lines.append("    answered \(parts.joined(separator: "  "))") }
        }
        return lines
    }

    private static func told(_ verb: String, _ told: Fact.Told) -> String {
        "    \(verb) \(RecordLine.short(told.type))  \(told.data == .null ? "too long to be shown" : RecordLine().pairs(told.data))"
    }
}
