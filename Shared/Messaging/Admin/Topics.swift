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

/// What becomes of a topic that is missing.
public enum TopicCreate: String, Sendable, CaseIterable {
    /// It is created.
    case missing
    /// Somebody else has to create it.
    case never
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

/// Something that a topic promises less of than is wanted.
public struct TopicFlaw: Sendable, Hashable {
    /// The name of the topic's setting, or `partitions` or `copies`.
    public var setting: String
    /// As Kafka says it.
    public var actual: String
    public var wanted: String
    /// Whether it is the least that is wanted.
    var isLeast: Bool

    package init(setting: String, actual: String, wanted: String, isLeast: Bool = false) {
        self.setting = setting
        self.actual = actual
        self.wanted = wanted
        self.isLeast = isLeast
    }

    /// As a line of the log says it.
    var logged: String { "\(setting) is \(actual) and should be \(wanted)\(isLeast ? " or more" : "")" }

    /// In words for people: what it is, what is wanted, and what may come of it.
    public var words: String {
        switch setting {
        case "retention.ms":
            "retention \(TopicSpec.time(actual)), wants \(TopicSpec.time(wanted)): what nobody has read by then is lost"
        case "retention.bytes":
            "keeps \(TopicSpec.size(actual)) of a partition (retention.bytes), wants all: what is more is lost before its time"
        case "max.message.bytes":
            "max.message.bytes \(TopicSpec.size(actual)), wants \(TopicSpec.size(wanted)): Kafka refuses what is larger"
        case "min.insync.replicas":
            "min.insync.replicas \(actual), wants \(wanted): an acknowledged message can be lost with one broker"
        case "cleanup.policy": "cleanup.policy \(actual), wants \(wanted): records go that nobody has read"
        case "message.timestamp.type":
            "time by \(TopicSpec.clock(actual)), wants \(TopicSpec.clock(wanted)): "
                + "a sender's wrong clock makes the inbox forget too early or too late"
        case "partitions": "\(actual) partitions, wants \(wanted): no more than \(actual) loops share the work"
        case "copies": "copies \(actual), wants \(wanted): the loss of a broker's disk loses messages"
        default: "\(setting) \(actual), wants \(wanted)"
        }
    }
}

extension TopicSpec {
    /// Three replicas and more stay writable without one of them, and then it takes two to lose a message.
    package static let replicasForTwoInSync = 3

    /// What such a topic is created with, where it gets so many copies: with three or more, only `min.insync.replicas=2`
    /// lets an acknowledged message survive the loss of a broker.
    package func config(copies: Int) -> [String: String] {
        copies < Self.replicasForTwoInSync ? config : config.merging(["min.insync.replicas": "2"]) { own, _ in own }
    }

    /// What a topic with these settings promises less of than is wanted; empty where all is well. What is unknown is passed
    /// over. Pure.
    ///
    /// - Parameters:
    ///   - settings: the topic's, by their names in Kafka.
    ///   - copies: of the partition that has the fewest.
    public func flaws(settings: [String: String], copies: Int) -> [TopicFlaw] {
        var flaws: [TopicFlaw] = []
        func least(_ key: String, _ wanted: String?, without limit: Int64? = nil) {
            guard let wanted = wanted.flatMap({ Int64($0) }), let actual = settings[key].flatMap({ Int64($0) }),
                actual != limit, wanted == limit || actual < wanted
            else { return }
            flaws.append(
                TopicFlaw(setting: key, actual: "\(actual)", wanted: "\(wanted)", isLeast: wanted != limit))
        }
        // -1 stands for "without limit".
        least("retention.ms", config["retention.ms"], without: -1)
        least("retention.bytes", config["retention.bytes"], without: -1)
        least("max.message.bytes", config["max.message.bytes"])
        if let actual = settings["min.insync.replicas"].flatMap({ Int64($0) }), copies >= Self.replicasForTwoInSync,
            actual < 2
        {
            flaws.append(TopicFlaw(setting: "min.insync.replicas", actual: "\(actual)", wanted: "2"))
        }
        if let actual = settings["cleanup.policy"], actual.contains("compact"),
            config["cleanup.policy"]?.contains("compact") != true
        {
            flaws.append(TopicFlaw(setting: "cleanup.policy", actual: actual, wanted: "delete"))
        }
        if let wanted = config["message.timestamp.type"], let actual = settings["message.timestamp.type"],
            actual != wanted
        {
            flaws.append(TopicFlaw(setting: "message.timestamp.type", actual: actual, wanted: wanted))
        }
        return flaws
    }

    // MARK: Words for people

    /// Milliseconds as `14 d`, `36 h` or `90 s`.
    package static func time(_ milliseconds: String) -> String {
        guard let value = Int64(milliseconds) else { return milliseconds }
        if value < 0 { return "for ever" }
        for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")] as [(Int64, String)]
        where value >= unit && value % unit == 0 {
            return "\(value / unit) \(name)"
        }
        return value < 1000 ? "\(value) ms" : "\(value / 1000) s"
    }

    /// Bytes as `2.0 MB`.
    package static func size(_ bytes: String) -> String {
        guard let value = Int64(bytes) else { return bytes }
        if value < 1000 { return "\(value) B" }
        if value < 1_000_000 { return "\(value / 1000) kB" }
        return "\(value / 1_000_000).\(value % 1_000_000 / 100_000) MB"
    }

    /// Who says when a record was written.
    package static func clock(_ type: String) -> String {
        type == "LogAppendTime" ? "broker" : type == "CreateTime" ? "sender" : type
    }
}
