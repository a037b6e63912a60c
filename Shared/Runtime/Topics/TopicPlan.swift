// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
public import Messaging

/// What the topics of a deployment are to be like, by its settings. Services create them from this, and
/// ``DeploymentTopics`` lists them from it.
public struct TopicPlan: Sendable {
    public var topics: Topics
    public var partitions: Int
    /// -1: the broker's default.
    public var replicationFactor: Int
    /// How long the topics that services read keep their records.
    public var retention: Duration
    /// How long dead letters are kept.
    public var deadLetterRetention: Duration
    /// What becomes of a topic that is missing.
    public var create: TopicCreate
    /// Whether the gateway has a console, for which it reads more.
    var hasConsole: Bool

    /// - Throws: `ConfigurationProblem`.
    public init(_ settings: EnvironmentSettings) throws(ConfigurationProblem) {
        topics = Topics(prefix: try Self.prefix(settings))
        partitions = try settings.integer(.topicPartitions)
        replicationFactor = try settings.integer(.topicReplicationFactor)
        retention = .seconds(3600) * (try settings.integer(.journalRetention))
        deadLetterRetention = .seconds(3600) * (try settings.integer(.deadLetterRetention))
        create = try settings.choice("TOPIC_CREATE", default: .missing)
        // What is wrong with the setting, the gateway says.
        hasConsole = (try? ConsoleMode(settings)) != .no
    }

    private static func prefix(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> String {
        let prefix = settings.text("TOPIC_PREFIX") ?? ""
        let isLegal = prefix.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || [0x2D, 0x2E, 0x5F].contains(byte)
        }
        guard isLegal, prefix.utf8.count <= 100 else {
            throw ConfigurationProblem("TOPIC_PREFIX", "may have at most 100 characters of A-Z a-z 0-9 . _ -")
        }
        return prefix
    }

    // MARK: What each is to be like

    /// The commands topic takes messages well over our own limit, so that we, not the broker, tell the sender of a
    /// message that is too large.
    func commands(_ topic: String) -> TopicSpec { input(topic, ["max.message.bytes": "2000000"]) }

    /// A topic that a service reads keeps its records for as long as the inbox remembers them, so that a service may
    /// be away for that long; and it is the broker that says when a record was written, since the inbox forgets by
    /// that time.
    func input(_ topic: String, _ config: [String: String] = [:]) -> TopicSpec {
        kept(topic, for: retention, config.merging(["message.timestamp.type": "LogAppendTime"]) { _, own in own })
    }

    /// A dead letter is larger than what it holds by its headers.
    func deadLetters(_ topic: String) -> TopicSpec {
        kept(topic, for: deadLetterRetention, ["max.message.bytes": "3000000"])
    }

    /// In one partition and by the broker's clock, so that everybody reads what is done in one order and finds the same
    /// claims over. What is done about a letter stays for longer than the letter: Kafka removes records by whole segments.
    func deadLetterActions(_ topic: String) -> TopicSpec {
        let retention = deadLetterRetention + .seconds(14 * 86_400)
        var topic = kept(topic, for: retention, ["message.timestamp.type": "LogAppendTime"])
        topic.partitions = 1
        return topic
    }

    /// The newest status of each replica, in one partition; those of replicas that are gone go after a day.
    var status: TopicSpec {
        var topic = kept(
            topics.status, for: .seconds(86_400),
            ["cleanup.policy": "compact,delete", "segment.ms": "3600000"])
        topic.partitions = 1
        return topic
    }

    /// Where nobody but the broker says how long it keeps what.
    func replies(_ topic: String) -> TopicSpec { spec(topic) }

    /// The topic of the answers to the gateway.
    public var gatewayReplies: TopicSpec { replies(topics.gatewayReplies) }

    /// For so long, however much there is: a broker's own `log.retention.bytes` would make it less.
    private func kept(_ topic: String, for time: Duration, _ config: [String: String]) -> TopicSpec {
        let own = ["retention.ms": String(time.inMilliseconds), "retention.bytes": "-1"]
        return spec(topic, config.merging(own) { _, own in own })
    }

    /// All that is wanted of every topic is that nothing goes that nobody has read.
    private func spec(_ topic: String, _ config: [String: String] = [:]) -> TopicSpec {
        TopicSpec(
            name: topic, partitions: partitions, replicationFactor: replicationFactor,
            config: config.merging(["cleanup.policy": "delete"]) { own, _ in own })
    }

    // MARK: Of one service

    /// The topics that a service reads and writes, but for the apps' own.
    public func specs(for service: ServiceTraffic) -> [TopicSpec] {
        let own = [
            commands(topics.commands(service.name)), input(topics.events(service.name)), replies(topics.replies),
            deadLetters(topics.deadLetters(service.name)), deadLetterActions(topics.deadLetterActions(service.name)),
            status,
        ]
        let others = service.sources.flatMap { source -> [TopicSpec] in
            switch source {
            case .commands: []
            case .events: [input(source.topic(topics, of: service.name))]
            case .replies(let services):
                [input(source.topic(topics, of: service.name))]
                    + services.sorted().map { commands(topics.commands($0)) }
            }
        }
        return own + others
    }

    /// The topics that a service writes to, but for the apps' own.
    func written(by service: ServiceTraffic) -> Set<String> {
        Set(
            [topics.events(service.name), topics.replies, topics.deadLetters(service.name), topics.status]
                + service.commanded.map { topics.commands($0) })
    }

    /// The topics that apps have for themselves: for their replies, and for their commands to this service and to those that
    /// it asks.
    func appTopics(_ apps: AppDirectory, for service: ServiceTraffic) -> AppTopics {
        let replies = apps.replyTopics.keys.sorted().map { self.replies(topics.prefix + $0) }
        let owners = apps.ownersOfCommandsTopics
        func own(_ service: String) -> [TopicSpec] { owners.map { commands(topics.commands(service, of: $0)) } }
        let asked = service.asked.flatMap(own)
        let written = replies.map(\.name) + service.commanded.flatMap(own).map(\.name)
        return AppTopics(specs: replies + asked + own(service.name), written: Set(written))
    }
}

/// What a service has to do with topics.
public struct ServiceTraffic: Sendable {
    /// The `<service>` of the topics' names.
    public let name: String
    /// What it reads.
    public let sources: [InputSource]
    /// Whether it writes commands to itself.
    public let commandsItself: Bool

    public init(_ name: String, reading sources: [InputSource] = [.commands], commandsItself: Bool = false) {
        self.name = name
        self.sources = sources
        self.commandsItself = commandsItself
    }

    public init<Service: CommandService>(_: Service.Type) {
        self.init(Service.name, reading: Service.sources, commandsItself: Service.hasDueCommands)
    }

    /// The services that it sends commands to and waits for.
    var asked: [String] {
        sources.flatMap { source in
            if case .replies(let services) = source { services.sorted() } else { [] as [String] }
        }
    }

    /// The services whose commands topics it writes to.
    var commanded: [String] { asked + (commandsItself ? [name] : []) }
}

/// The topics that apps have for themselves, as far as a service has to do with them.
package struct AppTopics: Equatable, Sendable {
    /// All of them: they are made where they are missing, and watched.
    var specs: [TopicSpec] = []
    /// The ones that the service writes to.
    var written: Set<String> = []
}
