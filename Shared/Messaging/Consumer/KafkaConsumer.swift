// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts
import Glibc
public import Logging

/// What a service's loop needs of a member of a consumer group. ``KafkaConsumer`` is one, the simulation has another
/// (docs/simulation.md). Every requirement is described there.
public protocol RecordConsumer: AnyObject {
    var assignment: Set<TopicPartition> { get }
    var isJoined: Bool { get }
    var hasJoined: Bool { get }
    var hasSettled: Bool { get }
    var problem: String? { get }
    var isRefused: Bool { get }
    var unreadable: [String: KafkaError] { get }
    var rebalance: Rebalance? { get }

    func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord]
    func poll(_ partitions: Set<TopicPartition>, upTo share: Int) throws(KafkaError) -> [KafkaRecord]
    func takeEnds() -> Set<TopicPartition>
    func takeOutOfRange() -> [TopicPartition]
    func takeVanished() -> Set<String>
    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError)
    func pause(_ partitions: [TopicPartition]) throws(KafkaError)
    func resume(_ partitions: [TopicPartition]) throws(KafkaError)
    @discardableResult
    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool
    func leave() -> Bool
    @discardableResult
    func close(timeout: Duration) -> Bool
}

extension RecordConsumer {
    public var hasJoined: Bool { isJoined }
    public var hasSettled: Bool { isJoined }
    public func leave() -> Bool { true }
    public var problem: String? { nil }
    public var isRefused: Bool { false }
    public var rebalance: Rebalance? { nil }
    public var unreadable: [String: KafkaError] { [:] }
}

/// A member of a consumer group.
///
/// **Threading.** Confined to one thread: all calls, and all calls of the ``RebalanceHandler``, happen there. Nothing
/// is read, and no rebalance is answered, except inside `poll` and `close`; a consumer that does not poll for
/// `max.poll.interval.ms` (5 minutes) loses its partitions.
///
/// **Ordering.** Records of one partition come in the order of their offsets. Between partitions there is no order, but no
/// partition waits for another: of what a poll returns, each that has records has an equal share.
///
/// **Offsets.** Nothing is committed unless ``commit(_:wait:)`` is called.
public final class KafkaConsumer: RecordConsumer {
    /// The most bytes of keys and values that one poll collects before it returns what it has.
    public var maxBytes = 16 << 20

    let handle: ClientHandle
    let logger: Logger
    let rebalancer: Rebalancer
    let queues: PartitionQueues
    private let wakeUp: WakeUp
    private var reader = RecordReader()
    private let subscribed = ContinuousClock.now
    /// Set when closing is over. While it goes on the handler may still commit.
    private(set) var isClosed = false
    private var isClosing = false
    /// Set when it has asked to leave its group.
    var isLeaving = false
    /// Whether it stays a member of its group when it goes.
    let isStatic: Bool
    private let sessionTimeout: Duration

    /// Creates the consumer and subscribes. Joining the group goes on in the background and shows as a call of
    /// `handler` inside a later `poll`. Topics that do not exist are not created; they are picked up when they appear.
    ///
    /// - Parameter handler: held weakly. Without it, partitions start at the group's committed offsets.
    /// - Parameter wakeUp: signalled when there is something to poll after there was nothing. A poll that waits waits for
    ///   it. Without one the consumer has its own.
    /// - Throws: ``KafkaConfigurationError`` for settings, ``KafkaError`` for a subscription that is refused, and for a
    ///   process without file descriptors.
    public init(
        configuration: KafkaConfiguration,
        groupID: String,
        topics: [String],
        handler: any RebalanceHandler,
        wakeUp: WakeUp? = nil,
        logger: Logger
    ) throws {
        var logger = logger
        logger[metadataKey: "group"] = "\(groupID)"
        self.logger = logger
        let callbacks = ClientCallbacks(logger: logger)
        let statistics = StatisticsReporter(clientID: configuration.clientID, role: .consumer, group: groupID)
        let wakeUp = try wakeUp ?? WakeUp()
        self.wakeUp = wakeUp
        callbacks.statistics = statistics
        callbacks.wakeUp = wakeUp
        handle = try ClientHandle(role: .consumer, configuration: configuration, groupID: groupID, callbacks: callbacks)
        queues = PartitionQueues(client: handle.pointer, wakeUp: wakeUp)
        rebalancer = Rebalancer(
            client: handle.pointer, queues: queues, handler: handler, statistics: statistics, logger: logger)
        callbacks.rebalance = { [weak rebalancer] code, list in rebalancer?.handle(code, list) }
        rd_kafka_poll_set_consumer(handle.pointer)
        wakeUp.watch(giving: rd_kafka_queue_get_consumer(handle.pointer))
        isStatic = configuration.groupInstance != nil
        sessionTimeout = configuration.sessionTimeout
        guard let list = PartitionList(topics: topics) else { throw KafkaError(code: KafkaError.Code.fatal) }
        let code = rd_kafka_subscribe(handle.pointer, list.pointer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
    }

    /// A consumer that was forgotten leaves its group without telling the handler, and nobody waits for that.
    deinit {
        if isClosed { return }
        rebalancer.forgetAll()
        _ = leaveGroup(by: Deadline(after: .zero))
        _ = end(hasLeft: false, timeout: .zero)
    }

    /// The partitions that are ours, as of the last `poll`.
    public var assignment: Set<TopicPartition> { rebalancer.tracker.partitions }

    /// Whether the partitions of ``assignment`` are lost already: true between the loss and the `poll` that tells the
    /// handler about it.
    public var isAssignmentLost: Bool { !isClosed && rd_kafka_assignment_lost(handle.pointer) != 0 }

    /// Whether the group has given us an assignment (be it an empty one) and we have not lost it or been thrown out
    /// since. A member without partitions is not told by librdkafka when it is thrown out for silence.
    public var isJoined: Bool { rebalancer.isMember && !isAssignmentLost }

    /// Whether the group has ever given us an assignment.
    public var hasJoined: Bool { rebalancer.hasBeenAssigned }

    /// Whether the group has given us what we are to have. Who joins a group in which others have everything gets nothing
    /// at first: they give up a part, and it comes with the next assignment. Nothing is our share when it has been that for
    /// a session.
    public var hasSettled: Bool {
        guard isJoined, let since = rebalancer.assignedSince else { return false }
        return rebalancer.hasHadPartitions || since.duration(to: .now) >= sessionTimeout
    }

    /// The newest error that `poll` kept to itself and that is still in force (an unknown topic, a missing permission,
    /// a broker that is away), as of the last `poll`.
    ///
    /// An error of a partition ends with a record that comes behind it, or when it is not repeated within ten seconds of
    /// being fetched anew. One of a topic ends with an assignment or a record of that topic, or when the group has given
    /// us nothing at all. Any other ends with an assignment, a record, or after ten seconds without repetition.
    public var lastError: KafkaError? { rebalancer.errors.current }

    /// What ``lastError`` says, in words for people.
    public var problem: String? { rebalancer.errors.problem }

    /// Whether this member has no right to be one of its group.
    public var isRefused: Bool { lastError?.code == KafkaError.Code.groupAuthorizationFailed }

    /// The topics of which an assigned partition cannot be read, and why, as of the last `poll`. Over when a record has come
    /// from it, and otherwise ten seconds after the cause is gone.
    public var unreadable: [String: KafkaError] { rebalancer.errors.unreadable }

    /// The rebalance that the group is in the midst of, as librdkafka told last: every `statistics.interval.ms`, 5 s.
    public var rebalance: Rebalance? { rebalancer.rebalance }

    /// Waits for the first record, at most `timeout`, then takes what is there without waiting: all of the partitions that
    /// have little, then of those with a backlog, one after the other.
    ///
    /// Returns early with fewer records when ``maxBytes`` are reached. Records of a partition that is no longer ours when
    /// `poll` returns are not among them. An empty answer means that nothing came in time.
    ///
    /// - Throws: an error whose disposition is `.fatal`: close this consumer and make another one (librdkafka is beyond
    ///   repair, or did not take an assignment that the handler was told of). Also `_STATE` when called after `close` or
    ///   from inside the handler. All other errors are logged (not more than once in a minute for each topic) and kept in
    ///   ``lastError``, while waiting goes on; those that are usual while a group or a topic comes into being are
    ///   logged as warnings only when they last for ten seconds.
    public func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord] {
        try checkUsable()
        handle.renewPassword()
        let deadline = Deadline(after: timeout)
        var records: [KafkaRecord] = []
        while true {
            let bytes = try serve(maxRecords, &records)
            try queues.take((maxRecords - records.count, maxBytes - bytes)) { message throws(KafkaError) in
                try read(message, &records)
            }
            if !records.isEmpty || deadline.isOver { break }
            wakeUp.wait(timeout: min(deadline.remaining, Self.longestWait))
        }
        if !rebalancer.errors.isEmpty { reviewErrors() }
        return records
    }

    /// Takes what is there of these partitions, at most `share` records of each, without waiting. Records of the others stay
    /// where they are. All partitions that are assigned have their part of ``maxBytes``, so that what is kept of each until
    /// the next one can be given out fits into memory.
    ///
    /// - Throws: as ``poll(maxRecords:timeout:)``.
    public func poll(_ partitions: Set<TopicPartition>, upTo share: Int) throws(KafkaError) -> [KafkaRecord] {
        try checkUsable()
        handle.renewPassword()
        var records: [KafkaRecord] = []
        _ = try serve(share, &records)
        try queues.take(of: partitions, (share, maxBytes / max(1, assignment.count))) { message throws(KafkaError) in
            try read(message, &records)
        }
        if !rebalancer.errors.isEmpty { reviewErrors() }
        return records
    }

    /// Not everything that is to be done signals.
    private static var longestWait: Duration { .seconds(1) }

    /// Does what comes beside the partitions' records: rebalances and other calls back, and errors. A partition whose
    /// queue could not be had is read here too.
    /// - Returns: how many bytes of records came.
    private func serve(_ maxRecords: Int, _ records: inout [KafkaRecord]) throws(KafkaError) -> Int {
        var bytes = 0
        while records.count < maxRecords, bytes < maxBytes {
            let message = rd_kafka_consumer_poll(handle.pointer, 0)
            defer { if let message { rd_kafka_message_destroy(message) } }
            rebalancer.tracker.discardRemoved(from: &records)
            if let refusal = rebalancer.refusal { throw refusal }
            guard let message else { break }
            bytes += try read(message, &records)
        }
        return bytes
    }

    /// Takes in a message, which may be an error.
    /// - Returns: how many bytes it has.
    private func read(
        _ message: UnsafeMutablePointer<rd_kafka_message_t>, _ records: inout [KafkaRecord]
    ) throws(KafkaError) -> Int {
        if message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR {
            try note(message)
            return 0
        }
        guard let record = reader.read(message, assignment: rebalancer.tracker) else { return 0 }
        records.append(record)
        rebalancer.errors.received(from: record.topicPartition)
        return (record.key?.count ?? 0) + (record.value?.count ?? 0)
    }

    /// Leaves the group and ends the client. The handler is told about the partitions that are given up.
    ///
    /// Only the first call does anything. Must not be called from inside the handler.
    ///
    /// - Returns: false when the time was up. The client is then abandoned: it ends in the background or stays in
    ///   memory, and the group notices by the session time-out. The service may exit either way.
    @discardableResult
    public func close(timeout: Duration) -> Bool {
        if isClosed || rebalancer.isActive { return isClosed }
        isClosing = true
        let deadline = Deadline(after: timeout)
        let left = leaveGroup(by: deadline)
        isClosed = true
        rebalancer.forgetAll()
        let ended = end(hasLeft: left, timeout: deadline.remaining)
        if !left || !ended {
            logger.debug("kafka consumer did not close in time; it keeps closing in the background")
        }
        return left && ended
    }

    /// Ends the client unless that would abort the process.
    ///
    /// librdkafka 2.0.2 asserts, while it destroys a member of a cooperative-sticky group, that the member has had an
    /// assignment at least once. One that was stopped between joining and its first assignment is therefore left in
    /// memory, with idle threads; it has left its group all the same. A protocol of `NONE` means that it never joined.
    private func end(hasLeft: Bool, timeout: Duration) -> Bool {
        let neverJoined = rd_kafka_rebalance_protocol(handle.pointer).map { String(cString: $0) } == "NONE"
        if rebalancer.hasBeenAssigned || (hasLeft && neverJoined) {
            return handle.destroy(timeout: timeout, hasLeft: hasLeft)
        }
        logger.debug("kafka consumer was closed while joining; it stays in memory")
        handle.abandon()
        return true
    }

    func checkOpen() throws(KafkaError) {
        if isClosed { throw KafkaError(RD_KAFKA_RESP_ERR__STATE, message: "the consumer is closed") }
    }

    func checkUsable() throws(KafkaError) {
        try checkOpen()
        if rebalancer.isActive || isClosing {
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, message: "not allowed inside the rebalance handler")
        }
    }

    /// Closing through the consumer's own queue keeps the handler on this thread and leaves the deadline to us;
    /// `rd_kafka_consumer_close` has none, and hangs in 2.0.2 under some rebalances.
    private func leaveGroup(by deadline: Deadline) -> Bool {
        guard let queue = rd_kafka_queue_get_consumer(handle.pointer) else { return true }
        defer { rd_kafka_queue_destroy(queue) }
        if let error = rd_kafka_consumer_close_queue(handle.pointer, queue) {
            logger.debug(
                "kafka consumer closes without leaving its group",
                metadata: ["error": "\(KafkaError(consuming: error))"])
            return true
        }
        return EndingClient.serve(handle.pointer, by: deadline)
    }

    /// Keeps an error that came in place of a message; throws it when the client is beyond repair.
    private func note(_ message: UnsafePointer<rd_kafka_message_t>) throws(KafkaError) {
        let code = message.pointee.err
        if code == RD_KAFKA_RESP_ERR__PARTITION_EOF {
            if case .partition(let partition) = place(of: message) { rebalancer.tracker.ends.insert(partition) }
            return
        }
        if let fatal = handle.fatalError { throw fatal }
        let text = rd_kafka_message_errstr(message).map { String(cString: $0) }
        var error = KafkaError(code, message: text)
        if KafkaError.unreachableCodes.contains(error.code), let told = handle.trouble.newest {
            error = KafkaError(code: error.code, failure: told)
        }
        let place = self.place(of: message)
        if code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET {
            // One of a partition that went away meanwhile concerns nobody.
            if case .partition(let partition) = place { rebalancer.tracker.outOfRange.insert(partition) }
            return
        }
        if let topic = place.topic,
            [KafkaError.Code.unknownTopicOrPartition, KafkaError.Code.unknownTopic].contains(error.code),
            assignment.contains(where: { $0.topic == topic })
        {
            rebalancer.tracker.vanished.insert(topic)
        }
        if code == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED { rebalancer.isMember = false }
        let mayPass =
            Self.passingCodes.contains(code.rawValue)
            || (!rebalancer.hasBeenAssigned && error.disposition == .failed
                && subscribed.duration(to: .now) < ConsumerErrors.patience)
        if rebalancer.errors.note(error, at: place, mayPass: mayPass, now: .now) {
            warn(error, place)
        } else {
            logger.debug("kafka consumer error", metadata: ["topic": "\(place.description)", "error": "\(error)"])
        }
    }

    /// What a topic that has just been created, or whose leader is moving, is answered with for a moment.
    private static let passingCodes: Set<Int32> = [
        KafkaError.Code.unknownTopicOrPartition, KafkaError.Code.unknownTopic, KafkaError.Code.leaderNotAvailable,
    ]

    private func reviewErrors() {
        let (lasting, unread) = rebalancer.errors.turn(now: .now)
        for (place, error) in lasting { warn(error, place) }
        PartitionList.fetchAnew(unread.intersection(assignment).subtracting(paused), of: handle.pointer)
    }

    private func warn(_ error: KafkaError, _ place: ConsumerErrors.Place) {
        // That no broker answers, and that a right is missing, is said once for all clients, where it is looked at.
        let isSaidElsewhere =
            KafkaError.unreachableCodes.contains(error.code) || KafkaError.missingRights.contains(error.code)
        logger.log(
            level: isSaidElsewhere ? .debug : .warning, "kafka consumer error",
            metadata: ["event": "group.error", "topic": "\(place.description)", "error": "\(error)"])
    }

    /// librdkafka gives errors of a whole topic the partition number 0, as errors of partition 0.
    private func place(of message: UnsafePointer<rd_kafka_message_t>) -> ConsumerErrors.Place {
        guard let handle = message.pointee.rkt else { return .client }
        let topic = String(cString: rd_kafka_topic_name(handle))
        let partition = TopicPartition(topic: topic, partition: message.pointee.partition)
        return rebalancer.tracker.partitions.contains(partition) ? .partition(partition) : .topic(topic)
    }
}

/// Copies messages out of librdkafka's buffers.
///
/// Keeps the topic's name as one string per topic handle: making it anew would be the dearest part of reading a
/// message. A handle lives at least as long as one of its partitions is assigned, so the names are forgotten whenever
/// the assignment changes.
struct RecordReader {
    private struct Topic {
        let handle: OpaquePointer
        let name: String
        let partitions: Set<Int32>
    }

    private var topics: [Topic] = []
    private var current = 0
    private var changes = -1

    /// The record, or `nil` for a message of a partition that is not assigned.
    mutating func read(
        _ pointer: UnsafePointer<rd_kafka_message_t>, assignment: AssignmentTracker
    ) -> KafkaRecord? {
        let message = pointer.pointee
        guard let handle = message.rkt else { return nil }
        if changes != assignment.changes {
            topics = []
            changes = assignment.changes
        }
        let topic = topic(of: handle, assignment: assignment)
        guard topic.partitions.contains(message.partition) else { return nil }
        let (time, clock) = Self.timestamp(pointer)
        return KafkaRecord(
            topicPartition: TopicPartition(topic: topic.name, partition: message.partition),
            offset: message.offset,
            timestampMs: time,
            clock: clock,
            key: Self.bytes(message.key, message.key_len),
            value: Self.bytes(message.payload, message.len),
            headers: Self.headers(pointer))
    }

    private static func timestamp(_ message: UnsafePointer<rd_kafka_message_t>) -> (Int64, KafkaRecord.Clock) {
        var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(message, &type)
        return (
            type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : time,
            type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? .broker : .producer
        )
    }

    private static func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> [Header] {
        var list: OpaquePointer?
        guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list else { return [] }
        let count = rd_kafka_header_cnt(list)
        var headers: [Header] = []
        headers.reserveCapacity(count)
        for index in 0..<count {
            var name: UnsafePointer<CChar>?
            var value: UnsafeRawPointer?
            var size = 0
            let code = rd_kafka_header_get_all(list, index, &name, &value, &size)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let name else { break }
            // Validating is cheaper than comparing afterwards, and nearly all names are UTF-8.
            if let text = String(validatingCString: name) {
                headers.append(Header(text, bytes(value, size)))
            } else if let raw = bytes(name, strlen(name)) {
                headers.append(Header(nameBytes: raw, bytes(value, size)))
            }
        }
        return headers
    }

    private mutating func topic(of handle: OpaquePointer, assignment: AssignmentTracker) -> Topic {
        if current < topics.count, topics[current].handle == handle { return topics[current] }
        if let known = topics.firstIndex(where: { $0.handle == handle }) {
            current = known
            return topics[known]
        }
        let name = rd_kafka_topic_name(handle).map { String(cString: $0) } ?? ""
        let numbers = assignment.partitions.lazy.filter { $0.topic == name }.map(\.partition)
        let topic = Topic(handle: handle, name: name, partitions: Set(numbers))
        current = topics.count
        topics.append(topic)
        return topic
    }

    /// A null pointer is a null field; a length of 0 alone is an empty one.
    private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
        guard let start else { return nil }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }
}
