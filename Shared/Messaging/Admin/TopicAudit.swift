// SPDX-License-Identifier: Apache-2.0

/// Compares a topic's settings with what is wanted of it. Pure.
enum TopicAudit {
    /// Three replicas and more stay writable without one of them, and then it takes two to lose a message.
    static let replicasForTwoInSync = 3

    /// What is not as it should be, in words for people.
    static func findings(_ spec: TopicSpec, settings: [String: String], replicas: Int) -> [String] {
        func number(_ key: String) -> Int64? { settings[key].flatMap { Int64($0) } }
        var findings: [String] = []
        func say(_ key: String, _ wanted: String) {
            findings.append("\(key) is \(settings[key] ?? "unknown") and should be \(wanted)")
        }
        // -1 stands for "without limit".
        if let wanted = spec.config["retention.ms"].flatMap({ Int64($0) }), let actual = number("retention.ms"),
            actual >= 0, wanted < 0 || actual < wanted
        {
            say("retention.ms", wanted < 0 ? "-1" : "\(wanted) or more")
        }
        if let wanted = spec.config["max.message.bytes"].flatMap({ Int64($0) }),
            let actual = number("max.message.bytes"), actual < wanted
        {
            say("max.message.bytes", "\(wanted) or more")
        }
        if replicas >= replicasForTwoInSync, let actual = number("min.insync.replicas"), actual < 2 {
            say("min.insync.replicas", "2")
        }
        let isCompacted = settings["cleanup.policy"]?.contains("compact") == true
        if isCompacted, spec.config["cleanup.policy"]?.contains("compact") != true { say("cleanup.policy", "delete") }
        if let wanted = spec.config["message.timestamp.type"], let actual = settings["message.timestamp.type"],
            actual != wanted
        {
            say("message.timestamp.type", wanted)
        }
        return findings
    }
}
