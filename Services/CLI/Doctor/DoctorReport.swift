// SPDX-License-Identifier: Apache-2.0

import Contracts
import Observability

/// What `identitybus doctor` prints for people.
struct DoctorReport {
    /// What a section is about: `b-1:9096   SASL_SSL, PLAIN as me`.
    var heads: [CheckID.Section: String] = [:]
    var findings: [Finding]
    var isColoured = false

    private static let titleWidth = 18
    private static let margin = String(repeating: " ", count: 2 + 6 + titleWidth)

    func lines(version: String, now: Timestamp) -> [String] {
        var lines = ["\(version)   \(now.rfc3339.prefix(19).replacing("T", with: " "))Z"]
        for section in CheckID.Section.allCases {
            let mine = findings.filter { $0.id.section == section }
            if mine.isEmpty { continue }
            let head = heads[section] ?? ""
            lines.append(section.rawValue + (head.isEmpty ? "" : "   \(head)"))
            lines += mine.filter { $0.level != .skip }.flatMap(text)
            lines += skipped(mine.filter { $0.level == .skip })
        }
        return lines + [summary]
    }

    var summary: String {
        let counts: [(Finding.Level, String, String)] = [
            (.ok, "ok", "ok"), (.fail, "failed", "failed"), (.warn, "warning", "warnings"),
            (.skip, "skipped", "skipped"),
        ]
        let parts = counts.compactMap { level, one, several -> String? in
            let count = findings.count { $0.level == level }
            return count == 0 ? nil : "\(count) \(count == 1 ? one : several)"
        }
        return parts.joined(separator: ", ")
    }

    private func text(_ finding: Finding) -> [String] {
        let first = "  \(word(finding.level))\(pad(finding.id.title, Self.titleWidth))\(finding.message.harmless)"
        return [first] + finding.fix.map { Self.margin + $0.harmless }
    }

    /// Those that wait for the same stand on one line.
    private func skipped(_ findings: [Finding]) -> [String] {
        var needs: [String] = []
        for finding in findings where !needs.contains(finding.message) { needs.append(finding.message) }
        return needs.map { need in
            let titles = findings.filter { $0.message == need }.map(\.id.title).joined(separator: ", ")
            let gap = String(repeating: " ", count: max(2, Self.titleWidth - titles.count))
            return "  \(word(.skip))\(titles)\(gap)\(need.harmless)"
        }
    }

    private func word(_ level: Finding.Level) -> String {
        let (text, colour) =
            switch level {
            case .ok: ("ok", 32)
            case .warn: ("warn", 33)
            case .fail: ("FAIL", 31)
            case .skip: ("skip", 2)
            }
        return isColoured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m\(pad("", 6 - text.count))" : pad(text, 6)
    }

    private func pad(_ text: String, _ width: Int) -> String {
        // A title that is too long keeps its space.
        text + String(repeating: " ", count: max(text.isEmpty ? 0 : 1, width - text.count))
    }
}
