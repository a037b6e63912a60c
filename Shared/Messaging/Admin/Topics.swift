// SPDX-License-Identifier: Apache-2.0

/// A topic that should exist.
public struct TopicSpec: Sendable, Hashable {
    /// The topic's name.
    public var name: String

    /// The number of partitions it is created with.
    public var partitions: Int

    /// The number of replicas, -1 for the broker's default.
    public var replicationFactor: Int

    /// Topic settings such as `retention.ms`, given to the broker at creation only.
    public var config: [String: String]

    public init(name: String, partitions: Int, replicationFactor: Int = -1, config: [String: String] = [:]) {
        self.name = name
        self.partitions = partitions
        self.replicationFactor = replicationFactor
        self.config = config
    }
}

/// How a topic is doing, as one broker sees it.
public struct TopicState: Sendable, Hashable {
    /// Why there is nothing to tell: the topic is unknown, or there is no right to see it. `nil` for one that exists.
    public var error: KafkaError?

    /// The number of partitions, 0 with an error.
    public var partitions: Int

    /// Partitions that nobody can write to or read from at the moment, in order.
    public var leaderless: [Int32]

    /// The smallest number of replicas of a partition, be they in sync or not.
    public var replicas: Int

    public init(error: KafkaError? = nil, partitions: Int = 0, leaderless: [Int32] = [], replicas: Int = 0) {
        self.error = error
        self.partitions = partitions
        self.leaderless = leaderless
        self.replicas = replicas
    }

    public var exists: Bool { error == nil }

    /// Whether every partition can be used.
    public var isUsable: Bool { exists && partitions > 0 && leaderless.isEmpty }

    static let unknown = TopicState(error: KafkaError(code: KafkaError.Code.unknownTopicOrPartition))
}

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
