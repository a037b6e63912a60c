// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import Supervision

/// Which records somebody wants to see.
struct RecordFilter {
    var app: String?
    /// The Kafka key; `*` stands for anything.
    var key: String?
    /// Of a command: itself, its replies, and what follows from it.
    var id: String?
    var since: Timestamp?
    var until: Timestamp?

    func passes(_ record: KafkaRecord) -> Bool {
        // What has no time is of no other time either.
        if record.timestampMs >= 0 {
            if let since, record.timestampMs < since.milliseconds { return false }
            if let until, record.timestampMs > until.milliseconds { return false }
        }
        if app == nil, key == nil, id == nil { return true }
        let facts = RecordFacts(record)
        if let app, facts.app != app { return false }
        if let key, facts.key.map({ fnmatch(key, $0, 0) == 0 }) != true { return false }
        if let id, !facts.ids.contains(id) { return false }
        return true
    }
}

/// The topics of one deployment.
struct TopicChoice {
    let topics: Topics
    /// `*` stands for anything; empty for everything that services tell.
    let patterns: [String]
    /// Whether topics of other deployments count.
    let isEverybodys: Bool

    private static let told = ["*.events.v1", "identity.replies.*", "*.dlq.v1"]

    var shownPatterns: String { (patterns.isEmpty ? Self.told : patterns).joined(separator: ", ") }

    func contains(_ topic: String) -> Bool {
        if isEverybodys {
            // Whatever stands before `identity.` is somebody's prefix.
            let own = topic.firstRange(of: "identity.").map { String(topic[$0.lowerBound...]) }
            return matches([topic] + [own].compactMap(\.self))
        }
        guard topic.hasPrefix(topics.prefix) else { return false }
        let name = String(topic.dropFirst(topics.prefix.count))
        return name.hasPrefix("identity.") && matches([topic, name])
    }

    private func matches(_ names: [String]) -> Bool {
        (patterns.isEmpty ? Self.told : patterns).contains { pattern in
            names.contains { fnmatch(pattern, $0, 0) == 0 }
        }
    }
}
