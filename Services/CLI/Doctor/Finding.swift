// SPDX-License-Identifier: Apache-2.0

import Contracts
import Observability
import WireJSON

/// What one look has shown.
struct Finding: Sendable, Hashable {
    enum Level: String, Sendable, CaseIterable {
        case ok, warn, fail, skip
    }

    var id: CheckID
    var level: Level
    /// Whom it is about: a variable, a topic, a table, a role. Empty for the whole.
    var subject = ""
    var message: String
    /// What to do, a line each.
    var fix: [String] = []
    /// One of ``CheckID/causes``, where a check can fail for several.
    var cause: String?
    var milliseconds: Int64 = 0

    static func ok(_ id: CheckID, _ message: String, subject: String = "") -> Finding {
        Finding(id: id, level: .ok, subject: subject, message: message)
    }

    static func warn(
        _ id: CheckID, _ message: String, subject: String = "", fix: String..., cause: String? = nil
    ) -> Finding {
        assert(cause.map(id.causes.contains) ?? true)
        return Finding(id: id, level: .warn, subject: subject, message: message, fix: fix, cause: cause)
    }

    static func fail(
        _ id: CheckID, _ message: String, subject: String = "", fix: String..., cause: String? = nil
    ) -> Finding {
        assert(cause.map(id.causes.contains) ?? true)
        return Finding(id: id, level: .fail, subject: subject, message: message, fix: fix, cause: cause)
    }

    /// - Parameter need: what it cannot be looked at without.
    static func skip(_ id: CheckID, needs need: String) -> Finding {
        Finding(id: id, level: .skip, message: "needs \(need)")
    }

    /// One object on one line.
    var json: String {
        var object: [(String, JSONValue)] = [
            ("id", .string(id.rawValue)), ("level", .string(level.rawValue)), ("subject", .string(subject)),
            ("message", .string(message)), ("fix", .string(fix.joined(separator: "\n"))),
            ("ms", .number(JSONNumber(milliseconds))),
        ]
        if let cause { object.append(("cause", .string(cause))) }
        let value = JSONValue.object(JSONObject(object))
        return String(decoding: value.serialized(), as: UTF8.self).harmless
    }
}

extension [Finding] {
    /// Everything of a section that nothing was found of.
    func skippingRest(of section: CheckID.Section, needs need: String, but known: Set<CheckID> = []) -> [Finding] {
        let seen = known.union(map(\.id))
        return self + section.checks.filter { !seen.contains($0) }.map { .skip($0, needs: need) }
    }

    /// The same, each with the time that all of them took.
    func taking(_ time: Duration) -> [Finding] {
        map { finding in
            var finding = finding
            finding.milliseconds = time.inMilliseconds
            return finding
        }
    }

    var hasFailures: Bool { contains { $0.level == .fail } }
}

/// Looks, and says how long that took.
func timed(_ look: () throws -> [Finding]) rethrows -> [Finding] {
    let start = ContinuousClock.now
    let found = try look()
    return found.taking(start.duration(to: .now))
}
