// SPDX-License-Identifier: Apache-2.0

/// One header of a record. Names may repeat inside a record; the order is kept.
public struct Header: Sendable, Hashable {
    /// For people and for comparing: bytes that are not UTF-8 are replaced with U+FFFD.
    public let name: String
    /// The name's bytes when they are not UTF-8, otherwise `nil`: what is passed on, as in a dead letter, keeps them.
    public let rawName: [UInt8]?
    /// `nil` for a null value, which is not the same as an empty one.
    public var value: [UInt8]?

    public init(_ name: String, _ value: [UInt8]?) {
        self.name = name
        rawName = nil
        self.value = value
    }

    public init(_ name: String, _ value: String) {
        self.init(name, Array(value.utf8))
    }

    /// A header as it was read: Kafka does not demand that names be UTF-8.
    public init(nameBytes: [UInt8], _ value: [UInt8]?) {
        name = String(decoding: nameBytes, as: UTF8.self)
        rawName = Array(name.utf8) == nameBytes ? nil : nameBytes
        self.value = value
    }
}

/// The header names of the wire form.
public enum HeaderName {
    public static let contentType = "content-type"
    public static let signature = "signature"
    /// W3C Trace Context, for those who read headers and no envelopes.
    public static let traceParent = "traceparent"
    /// CloudEvents attributes in binary mode.
    public static let attributePrefix = "ce_"
    public static let structuredContentType = "application/cloudevents+json"
}

/// A record to be written, as it will stand on its topic.
public struct Record: Sendable, Hashable {
    /// The topic. It is not created on the way.
    public var topic: String
    /// The key, which also chooses the partition (murmur2, as Java's clients do); `nil` spreads records at random.
    public var key: [UInt8]?
    /// The value; `nil` is a tombstone.
    public var value: [UInt8]?
    /// The headers, sent in this order.
    public var headers: [Header]
    /// A fixed partition, or `nil` to let the key choose.
    public var partition: Int32?
    /// Milliseconds since 1970 UTC, or `nil` for the moment of sending.
    public var timestampMs: Int64?

    public init(
        topic: String, key: [UInt8]? = nil, value: [UInt8]?, headers: [Header] = [], partition: Int32? = nil,
        timestampMs: Int64? = nil
    ) {
        self.topic = topic
        self.key = key
        self.value = value
        self.headers = headers
        self.partition = partition
        self.timestampMs = timestampMs
    }
}

/// A record as it was read, copied out of the client's buffers: it may be kept and sent anywhere.
public struct KafkaRecord: Sendable {
    /// Where the message was read.
    public var topicPartition: TopicPartition

    /// The message's offset in its partition.
    public var offset: Int64

    /// Milliseconds since 1970 UTC, by ``clock``; -1 when the message has none.
    public var timestampMs: Int64

    /// Whose clock a record's time is by: the topic's `message.timestamp.type` says it.
    public enum Clock: Sendable { case producer, broker }
    public var clock: Clock

    /// The key, `nil` for a message without one. An empty key is not `nil`.
    public var key: [UInt8]?

    /// The value, `nil` for a tombstone. An empty value is not `nil`.
    public var value: [UInt8]?

    /// The headers in the order of the message.
    public var headers: [Header]

    public init(
        topicPartition: TopicPartition,
        offset: Int64,
        timestampMs: Int64 = -1,
        clock: Clock = .producer,
        key: [UInt8]?,
        value: [UInt8]?,
        headers: [Header] = []
    ) {
        self.topicPartition = topicPartition
        self.offset = offset
        self.timestampMs = timestampMs
        self.clock = clock
        self.key = key
        self.value = value
        self.headers = headers
    }

    /// The bytes of the last header of that name; `nil` when there is none or when its value is null.
    public func header(_ name: String) -> [UInt8]? {
        headers.last { $0.name == name }?.value
    }
}

/// The address of one partition. Ordered by topic name, then by number, so that lists of partitions have one order.
public struct TopicPartition: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let topic: String
    /// From 0.
    public let partition: Int32

    public init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    /// `topic[partition]`.
    public var description: String { "\(topic)[\(partition)]" }

    public static func < (left: TopicPartition, right: TopicPartition) -> Bool {
        (left.topic, left.partition) < (right.topic, right.partition)
    }
}

/// Topic names (docs/contracts.md "Topics"): `identity.<service>.commands.v1`, `.events.v1`, `.dlq.v1`, and
/// `identity.replies.v1`. A prefix (`TOPIC_PREFIX`) keeps runs that share a broker apart.
public struct Topics: Sendable, Hashable {
    public let prefix: String
    public let replies: String

    /// What the `source` of every message of the deployment's own services begins with; nobody else may use it.
    public static let ownSources = "identitybus/"
    /// The `source` of the commands that the gateway sends, and the only one that its key may use.
    public static let gatewaySource = "identitybus/gateway"
    /// Of what the command-line tool sends.
    public static let toolSource = "identitybus-cli"

    public init(prefix: String = "") {
        self.prefix = prefix
        replies = "\(prefix)identity.replies.v1"
    }

    public func commands(_ service: String) -> String { "\(prefix)identity.\(service).commands.v1" }

    /// The commands topic of a service that an app has for itself (`ownCommandsTopics` in the apps file).
    public func commands(_ service: String, of app: AppID) -> String { "\(commands(service)).\(app)" }

    /// Whether an app of this id can have commands topics of its own. Without a dot the names stay apart from all others,
    /// also where Kafka takes a dot and an underscore for the same.
    public static func canOwnCommandsTopics(_ app: AppID) -> Bool {
        let legal = app.text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == 0x2D || byte == 0x5F
        }
        return legal && (1...100).contains(app.text.utf8.count)
    }

    /// Whether a topic holds commands, of whichever deployment and whichever app. The form tells.
    public static func isOfCommands(_ topic: String) -> Bool {
        let withoutLast = topic[..<(topic.lastIndex(of: ".") ?? topic.endIndex)]
        return [topic[...], withoutLast].contains { $0.hasSuffix(".commands.v1") }
    }

    /// Whether a topic holds what is done about dead letters, of whichever deployment.
    package static func isOfDeadLetterActions(_ topic: String) -> Bool { topic.hasSuffix(".dlq-actions.v1") }

    public func events(_ service: String) -> String { "\(prefix)identity.\(service).events.v1" }
    public func deadLetters(_ service: String) -> String { "\(prefix)identity.\(service).dlq.v1" }
    /// Where operators write what they do about a service's dead letters.
    public func deadLetterActions(_ service: String) -> String { "\(prefix)identity.\(service).dlq-actions.v1" }

    /// Where each replica of a service writes how it is doing (``ReplicaStatus``).
    public var status: String { "\(prefix)identity.status.v1" }

    /// Where the replies to what the gateway sends come back.
    public var gatewayReplies: String { replies(to: "gateway") }

    /// The services that there are.
    public static let services = ["link", "user", "sync", "verification"]

    /// Where the replies to what a service forwards come back.
    public func replies(to service: String) -> String { "\(prefix)identity.replies.\(service).v1" }

    /// Whether a reply topic is one of a service or the gateway. What is said there is believed to be about their own
    /// commands, so nobody else may have answers sent to it. The form tells, and no list: a service missing from one
    /// would believe answers to commands that others sent.
    public func isOwn(replyTopic: String) -> Bool {
        guard replyTopic.hasPrefix(prefix) else { return false }
        let words = replyTopic.dropFirst(prefix.count).split(separator: ".", omittingEmptySubsequences: false)
        return words.count == 4 && replies(to: String(words[2])) == replyTopic
    }

    /// The consumer group of a service. The prefix applies, so that runs do not share offsets either.
    public func group(_ service: String) -> String { "\(prefix)identity.\(service)" }

    /// The consumer group of a service that reads an app's own commands topic.
    public func group(_ service: String, of app: AppID) -> String { "\(group(service)).commands.\(app)" }

    /// What the names of all reply topics begin with.
    public var anyReplies: String { "\(prefix)\(Self.repliesStem)" }

    private static let repliesStem = "identity.replies."

    /// The topic that a `replyto` names: `identity.replies.<anything>`, with or without the prefix. Anything else is
    /// refused, so that a command cannot make a service write into a topic that is not for replies.
    /// - Returns: `nil` when the name is not allowed.
    public func replyTopic(_ replyTo: String?) -> String? {
        guard let replyTo else { return replies }
        let name = !prefix.isEmpty && replyTo.hasPrefix(prefix) ? String(replyTo.dropFirst(prefix.count)) : replyTo
        let stem = Self.repliesStem
        let legal = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == 0x2E || byte == 0x2D || byte == 0x5F
        }
        guard name.hasPrefix(stem), name.utf8.count > stem.utf8.count, legal, prefix.utf8.count + name.utf8.count <= 249
        else { return nil }
        return prefix + name
    }
}

/// What a dead letter adds to the original key, value and headers (docs/contracts.md "Dead letters").
public struct DeadLetter: Sendable, Hashable {
    public enum Step: String, Sendable, Hashable {
        case decode, authenticate, decide, publish
    }

    /// A named reason, such as `NOT_JSON` or `SIGNATURE_INVALID`.
    public var reason: String
    public var step: Step
    /// One line for operators; no personal data, no secret. Cut at 8 KiB.
    public var error: String
    public var attempts: Int
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    /// Of the original record, in milliseconds since 1970; -1 when it has none.
    public var timestampMs: Int64
    public var group: String

    public init(
        reason: String, step: Step, error: String, attempts: Int = 1, topic: String, partition: Int32, offset: Int64,
        timestampMs: Int64, group: String
    ) {
        self.reason = reason
        self.step = step
        self.error = error
        self.attempts = attempts
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestampMs = timestampMs
        self.group = group
    }

    /// At most 8 KiB, whole characters.
    private static func cut(_ text: String) -> String {
        var text = text[...]
        while text.utf8.count > 8 * 1024 { text = text.dropLast(max(1, (text.utf8.count - 8 * 1024) / 4)) }
        return String(text)
    }

    /// The headers to append to the original ones.
    public func headers(now: Timestamp) -> [Header] {
        [
            Header("dlq_reason", reason), Header("dlq_step", step.rawValue),
            Header("dlq_timestamp", now.rfc3339),
            Header("dlq_error", Self.cut(error)),
            Header("dlq_attempts", String(attempts)), Header("dlq_original_topic", topic),
            Header("dlq_original_partition", String(partition)),
            Header("dlq_original_offset", String(offset)),
            Header("dlq_original_timestamp", String(timestampMs)), Header("dlq_group", group),
        ]
    }
}
