// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// An error of librdkafka or of the broker. Never carries a secret or a message's content.
public struct KafkaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The number: a Kafka protocol error when positive, one of librdkafka's own when negative.
    public let code: Int32

    /// librdkafka's name for the number, such as `_TRANSPORT` or `MSG_SIZE_TOO_LARGE`.
    public let name: String

    /// A sentence for people.
    public let message: String

    /// The client is unusable: close it and make a new one.
    public let isFatal: Bool

    /// Why no broker could be reached, where that is what it is about.
    public let failure: BrokerFailure?

    /// What the caller should do.
    public var disposition: Disposition {
        if isFatal { return .fatal }
        if Self.retryCodes.contains(code) { return .retry }
        if Self.refusedCodes.contains(code) { return .refused }
        return Self.unacceptableCodes.contains(code) ? .unacceptable : .failed
    }

    public var description: String { failure?.description ?? "\(name): \(message)" }

    /// In words for people: without librdkafka's name where the sentence says the same.
    public var words: String {
        switch code {
        case _ where failure != nil: description
        case Code.groupAuthorizationFailed: "no right to join it (Read and Describe)"
        case Code.topicAuthorizationFailed, Code.unknownTopicOrPartition, Code.unknownTopic, Code.timedOut: message
        default: description
        }
    }

    /// In words for people: what this client's Kafka user may not do.
    /// - Parameter right: the verb, and in brackets Kafka's name of the right.
    public static func noRight(_ right: String, topics: [String]) -> String {
        "no right to \(right) the \(topics.count == 1 ? "topic" : "topics") \(topics.joined(separator: ", "))"
    }

    /// In words for people: why a topic cannot be read.
    public func unreadable(_ topic: String) -> String { refusal(of: topic, "read", right: "read (Read)") }

    /// In words for people: why a topic takes no messages.
    package func unwritable(_ topic: String) -> String {
        refusal(of: topic, "written to", right: "write (Write) to")
    }

    /// In words for people: why nothing can be done with a topic.
    package func unusable(_ topic: String) -> String { refusal(of: topic, "used", right: "see (Describe)") }

    private func refusal(of topic: String, _ verb: String, right: String) -> String {
        switch code {
        case Code.topicAuthorizationFailed: Self.noRight(right, topics: [topic])
        case Code.unknownTopicOrPartition, Code.unknownTopic, Code.unknownPartition: "topic \(topic) does not exist"
        default: "topic \(topic) cannot be \(verb): \(self)"
        }
    }

    /// An error with librdkafka's own name for the code, and its own text where `message` is `nil`.
    public init(code: Int32, message: String? = nil, isFatal: Bool = false) {
        let native = rd_kafka_resp_err_t(rawValue: code)
        self.code = code
        self.name = rd_kafka_err2name(native).map { String(cString: $0) } ?? "ERR_\(code)"
        self.message = message ?? rd_kafka_err2str(native).map { String(cString: $0) } ?? "error \(code)"
        self.isFatal = isFatal || code == Code.fatal
        failure = nil
    }

    /// One that says why no broker could be reached.
    package init(code: Int32, failure: BrokerFailure) {
        self.code = code
        name = rd_kafka_err2name(rd_kafka_resp_err_t(rawValue: code)).map { String(cString: $0) } ?? "ERR_\(code)"
        message = failure.description
        isFatal = false
        self.failure = failure
    }

    init(_ native: rd_kafka_resp_err_t, message: String? = nil, isFatal: Bool = false) {
        self.init(code: native.rawValue, message: message, isFatal: isFatal)
    }

    /// Takes what `error` says and destroys it.
    init(consuming error: OpaquePointer) {
        self.init(
            rd_kafka_error_code(error),
            message: rd_kafka_error_string(error).map { String(cString: $0) },
            isFatal: rd_kafka_error_is_fatal(error) != 0)
        rd_kafka_error_destroy(error)
    }

    /// The fatal error that a client is in, if it is in one.
    static func fatal(of client: OpaquePointer) -> KafkaError? {
        if rd_kafka_fatal_error(client, nil, 0) == RD_KAFKA_RESP_ERR_NO_ERROR { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
            text.initialize(repeating: 0)
            let code = rd_kafka_fatal_error(client, text.baseAddress, text.count)
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR, let start = text.baseAddress else { return nil }
            let isOfRights = code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED
            return KafkaError(
                code, message: String(cString: start) + (isOfRights ? rightsOfProducers : ""), isFatal: true)
        }
    }
}

extension KafkaError {
    private static let rightsOfProducers = " (needs the right WRITE on a topic, or IDEMPOTENT_WRITE on the cluster)"

    /// What to do about an error. For anything but a produced message, only `.fatal` tells it from the others.
    public enum Disposition: Sendable, Hashable {
        /// The client's own queue is full: wait for deliveries and do it again.
        case retry

        /// The topic does not take messages now and may take them later: it is not there, there is no right to write to
        /// it, it is configured that way. Nothing is wrong with the message.
        case refused

        /// No topic that is configured like this one will ever accept the message as it is: it is too large, or not what
        /// a message must be. One that is too large together with others of its batch may be accepted alone
        /// (``KafkaProducer/Batching/single``).
        case unacceptable

        /// librdkafka, which by itself tries for ever, has given the message up. Whether the topic has it is not known,
        /// and messages behind it may be on their way: to keep their order, make the producer anew and send all that was
        /// not delivered again.
        case failed

        /// The client must be closed and made anew.
        case fatal
    }

    /// The error numbers that callers and tests need by name; every other number may occur as well.
    public enum Code {
        public static let fatal = RD_KAFKA_RESP_ERR__FATAL.rawValue
        public static let transport = RD_KAFKA_RESP_ERR__TRANSPORT.rawValue
        public static let timedOut = RD_KAFKA_RESP_ERR__TIMED_OUT.rawValue
        public static let queueFull = RD_KAFKA_RESP_ERR__QUEUE_FULL.rawValue
        public static let wrongState = RD_KAFKA_RESP_ERR__STATE.rawValue
        public static let purgedFromQueue = RD_KAFKA_RESP_ERR__PURGE_QUEUE.rawValue
        public static let purgedInFlight = RD_KAFKA_RESP_ERR__PURGE_INFLIGHT.rawValue
        public static let unknownTopic = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC.rawValue
        public static let unknownPartition = RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION.rawValue
        public static let unknownTopicOrPartition = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART.rawValue
        public static let invalidMessage = RD_KAFKA_RESP_ERR_INVALID_MSG.rawValue
        public static let messageTooLarge = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE.rawValue
        public static let notLeader = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION.rawValue
        public static let leaderNotAvailable = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE.rawValue
        public static let requestTimedOut = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT.rawValue
        public static let notEnoughReplicas = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS.rawValue
        public static let recordListTooLarge = RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE.rawValue
        public static let invalidRecord = RD_KAFKA_RESP_ERR_INVALID_RECORD.rawValue
        public static let policyViolation = RD_KAFKA_RESP_ERR_POLICY_VIOLATION.rawValue
        public static let topicAuthorizationFailed = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED.rawValue
        public static let clusterAuthorizationFailed = RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED.rawValue
        public static let groupAuthorizationFailed = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED.rawValue
        public static let unknownMember = RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID.rawValue
        package static let fencedInstance = RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID.rawValue
        public static let rebalanceInProgress = RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS.rawValue
        public static let invalidReplicationFactor = RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR.rawValue
        public static let invalidPartitions = RD_KAFKA_RESP_ERR_INVALID_PARTITIONS.rawValue
        public static let invalidConfig = RD_KAFKA_RESP_ERR_INVALID_CONFIG.rawValue
        public static let topicAlreadyExists = RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS.rawValue
    }

    static let missingRights: Set<Int32> = [Code.topicAuthorizationFailed, Code.groupAuthorizationFailed]

    /// Errors that only say that no broker could be reached or has answered.
    package static let unreachableCodes: Set<Int32> = Set(
        [
            RD_KAFKA_RESP_ERR__TRANSPORT,
            RD_KAFKA_RESP_ERR__TIMED_OUT,
            RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE,
            RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
            RD_KAFKA_RESP_ERR__RESOLVE,
            RD_KAFKA_RESP_ERR__SSL,
            RD_KAFKA_RESP_ERR__AUTHENTICATION,
            RD_KAFKA_RESP_ERR__WAIT_COORD,
        ].map(\.rawValue))

    static let retryCodes: Set<Int32> = [RD_KAFKA_RESP_ERR__QUEUE_FULL.rawValue]

    static let refusedCodes: Set<Int32> = Set(
        [
            RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
            RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
            RD_KAFKA_RESP_ERR_INVALID_CONFIG,
            RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS,
        ].map(\.rawValue))

    static let unacceptableCodes: Set<Int32> = Set(
        [
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
            RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE,
            RD_KAFKA_RESP_ERR_INVALID_MSG,
            RD_KAFKA_RESP_ERR_INVALID_RECORD,
            RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
            RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT,
            RD_KAFKA_RESP_ERR__INVALID_ARG,
        ].map(\.rawValue))

    /// Errors of an offset commit that say "the group has moved on": the offsets are only a hint, so nothing is wrong.
    static let softCommitCodes: Set<Int32> = Set(
        [
            RD_KAFKA_RESP_ERR__NO_OFFSET,
            RD_KAFKA_RESP_ERR__STATE,
            RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST,
            RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
            RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
            RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
        ].map(\.rawValue))
}
