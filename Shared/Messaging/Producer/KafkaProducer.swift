// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
public import Contracts
public import Logging

/// What a service's loop needs of a producer. ``KafkaProducer`` is one, the simulation has another.
public protocol RecordProducer: AnyObject {
    var fatalError: KafkaError? { get }

    func send(_ record: Record, token: Int) throws(KafkaError)
    func poll(timeout: Duration) -> [DeliveryReport]
    @discardableResult
    func close(timeout: Duration) -> [DeliveryReport]
    /// Whether something was sent to the topic, and not so many topics of others since that it is forgotten.
    func hasSent(to topic: String) -> Bool
}

/// An idempotent producer.
///
/// **Threading.** Confined to one thread. Reports come only out of ``poll(timeout:)``, ``flush(timeout:)`` and
/// ``close(timeout:)``.
///
/// **Ordering.** Messages of one partition are written in the order of `send`, also when librdkafka sends some of them
/// again. Reports of one partition come in that order; reports of different partitions in any. One exception: when a
/// request is refused and the next one, already on its way, is accepted. Kafka refuses that one too, except from a
/// producer whose messages it has not yet seen in that partition (or not for a day). The messages of the first request
/// are then reported as `.failed`. `max.in.flight.requests.per.connection=1` excludes it, at the price of waiting; the
/// embedded broker, which never checks, needs that.
///
/// **Durability.** A report without an error means that all in-sync replicas have the message, in the words of a broker.
/// Waiting for that never ends by itself. After the loss of an acknowledgement a real broker recognises the repeated
/// message and drops it; the embedded broker does not.
public final class KafkaProducer: RecordProducer {
    public func hasSent(to topic: String) -> Bool { topics.knows(topic) }

    /// Messages sent whose report the caller has not been given yet.
    public private(set) var outstanding = 0

    /// The error after which this producer does nothing any more. Asked anew by `send`, `poll`, `flush` and `close`.
    public private(set) var fatalError: KafkaError?

    /// How messages travel.
    public enum Batching: Sendable, Hashable {
        /// Messages of one partition that wait together go in one request.
        case shared

        /// As ``shared``, and no message passes an earlier one of its partition that a broker refused for good: the producer
        /// ends itself with a fatal error instead. The reports of what was refused say why.
        case ordered

        /// Every message goes in a request of its own. Slow: for finding out whether a message that was refused with
        /// others of its batch is itself too large.
        case single
    }

    /// The most bytes a message may have (`message.max.bytes`), with key, headers and some 70 bytes of overhead, before
    /// compression. A larger one is refused at once; whether the topic takes one of that size is another matter.
    public let messageMaxBytes: Int

    let handle: ClientHandle
    private let logger: Logger
    private let collector = DeliveryCollector()
    private let statistics: StatisticsReporter
    private let topics: TopicHandles
    private let arguments = MessageArguments()
    private let maximumBlock: Duration
    private var isClosed = false

    /// Creates the producer; connecting goes on in the background.
    ///
    /// - Parameter maximumBlock: how long `send` waits for room in a full local queue.
    /// - Parameter batching: whether messages share requests.
    /// - Parameter wakeUp: signalled when there are reports to poll after there were none.
    /// - Throws: when a setting is refused.
    public init(
        configuration: KafkaConfiguration, logger: Logger, maximumBlock: Duration = .seconds(30),
        batching: Batching = .shared, wakeUp: WakeUp? = nil
    ) throws(KafkaConfigurationError) {
        var configuration = configuration
        switch batching {
        case .shared: break
        case .ordered: configuration.producer["enable.gapless.guarantee"] = "true"
        case .single: configuration.producer["batch.num.messages"] = "1"
        }
        let callbacks = ClientCallbacks(logger: logger)
        statistics = StatisticsReporter(clientID: configuration.clientID, role: .producer)
        callbacks.statistics = statistics
        callbacks.deliveries = collector
        callbacks.wakeUp = wakeUp
        handle = try ClientHandle(role: .producer, configuration: configuration, callbacks: callbacks)
        wakeUp?.watch(giving: rd_kafka_queue_get_main(handle.pointer))
        messageMaxBytes = try handle.number("message.max.bytes")
        topics = TopicHandles(client: handle.pointer, collector: collector)
        self.logger = logger
        self.maximumBlock = maximumBlock
    }

    deinit { topics.removeAll() }

    /// Puts a message into the local queue. It is on its way by itself from there.
    ///
    /// Does not wait, except when the queue is full: then until deliveries make room, at most `maximumBlock`. Their
    /// reports are kept for the next `poll`.
    ///
    /// - Parameter token: any number; comes back in the report.
    /// - Throws: when the message was not taken; there will be no report for it. Any
    ///   ``KafkaError/Disposition``: `.retry` when the queue stayed full, `.refused` when the topic is known not to exist
    ///   or to be forbidden.
    public func send(_ record: Record, token: Int) throws(KafkaError) {
        try checkUsable()
        if topics.isFull, outstanding == 0 { topics.removeAll() }
        let topic = try topics.handle(for: record.topic)
        var deadline: Deadline?
        while true {
            do {
                try arguments.produce(record, to: topic, token: token, client: handle.pointer)
                outstanding += 1
                return
            } catch {
                let limit = deadline ?? Deadline(after: maximumBlock)
                deadline = limit
                if error.code != KafkaError.Code.queueFull || limit.isOver { throw error }
                rd_kafka_poll(handle.pointer, min(limit.remaining, .milliseconds(100)).kafkaMilliseconds)
                try checkUsable()
            }
        }
    }

    /// The reports that have come in, waiting at most `timeout` for the first.
    ///
    /// After a fatal error, the reports of everything that was not delivered come with that error.
    public func poll(timeout: Duration) -> [DeliveryReport] {
        if isClosed { return takeReports() }
        handle.renewPassword()
        purgeIfFatal()
        let wait = collector.isEmpty ? timeout : .zero
        rd_kafka_poll(handle.pointer, wait.kafkaMilliseconds)
        return takeReports()
    }

    /// Sends what is queued without lingering and waits until everything has a report, at most `timeout`.
    ///
    /// - Returns: the reports so far; ``outstanding`` says how many are missing.
    public func flush(timeout: Duration) -> [DeliveryReport] {
        if isClosed { return takeReports() }
        purgeIfFatal()
        let code = rd_kafka_flush(handle.pointer, timeout.kafkaMilliseconds)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR, code != RD_KAFKA_RESP_ERR__TIMED_OUT {
            logger.warning(
                "kafka flush failed", metadata: ["event": "producer.flush-failed", "error": "\(KafkaError(code))"])
        }
        purgeIfFatal()
        return takeReports()
    }

    /// Flushes, gives up what could not be delivered in time, and ends the client. Only the first call does anything.
    ///
    /// - Returns: the last reports; messages that were given up have the error `_PURGE_QUEUE` (not delivered) or
    ///   `_PURGE_INFLIGHT` (perhaps delivered). None is missing.
    @discardableResult
    public func close(timeout: Duration) -> [DeliveryReport] {
        if isClosed { return [] }
        let deadline = Deadline(after: timeout)
        var reports = flush(timeout: timeout)
        if outstanding > 0 {
            purge()
            let grace = Deadline(after: .milliseconds(500))
            while outstanding > 0, !grace.isOver { reports += poll(timeout: grace.remaining) }
        }
        isClosed = true
        topics.removeAll()
        statistics.close()
        if !handle.destroy(timeout: max(deadline.remaining, .milliseconds(500))) {
            logger.debug("kafka producer did not close in time; it keeps closing in the background")
        }
        identitybus_give_memory_back()
        return reports
    }

    private func takeReports() -> [DeliveryReport] {
        let reports = collector.take()
        outstanding -= reports.count
        return reports
    }

    private func checkUsable() throws(KafkaError) {
        if isClosed { throw KafkaError(RD_KAFKA_RESP_ERR__STATE, message: "the producer is closed") }
        purgeIfFatal()
        if let fatalError { throw fatalError }
    }

    /// A client with a fatal error delivers nothing any more, so its messages are given back at once.
    private func purgeIfFatal() {
        guard fatalError == nil, let error = handle.fatalError else { return }
        // Who makes another one says so.
        logger.debug("kafka producer failed for good", metadata: ["error": "\(error)"])
        fatalError = error
        collector.fatalError = error
        purge()
    }

    private func purge() {
        _ = rd_kafka_purge(handle.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
    }
}

/// What became of one message given to ``KafkaProducer/send(_:token:)``. Each accepted message has exactly one report.
public struct DeliveryReport: Sendable {
    /// The number given with the message.
    public let token: Int

    /// `nil` when all in-sync replicas have the message.
    public let error: KafkaError?

    /// Where the message went; the partition is -1 when it failed before one was chosen.
    public let topicPartition: TopicPartition

    /// The message's offset; -1001 when unknown, which is always so for a failed message.
    public let offset: Int64

    public init(token: Int, error: KafkaError?, topicPartition: TopicPartition, offset: Int64) {
        self.token = token
        self.error = error
        self.topicPartition = topicPartition
        self.offset = offset
    }
}

/// Gathers delivery reports until the producer's owner asks for them. Confined to the thread that polls.
final class DeliveryCollector {
    private var reports: [DeliveryReport] = []

    /// Names by topic handle. The handles belong to ``TopicHandles``, which outlive the messages that use them.
    var names: [OpaquePointer: String] = [:]

    /// Set when the client has failed for good: every undelivered message then failed for that reason.
    var fatalError: KafkaError?

    var isEmpty: Bool { reports.isEmpty }

    func collect(_ report: UnsafePointer<rd_kafka_message_t>) {
        let message = report.pointee
        var error: KafkaError?
        if message.err != RD_KAFKA_RESP_ERR_NO_ERROR {
            // What was purged because of a fatal error failed for that reason; what was refused has one of its own.
            let isPurged = [RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT].contains(message.err)
            error = (isPurged ? fatalError : nil) ?? KafkaError(message.err)
        } else if message.offset == Int64(RD_KAFKA_OFFSET_INVALID) {
            // librdkafka 2.0.2 counts a message as delivered whose request was refused when a later request of the same
            // partition is accepted. That is right only for a broker that checks the producer's sequence numbers, and
            // even Kafka does not for a producer whose messages it has not yet seen in that partition. What a broker
            // has acknowledged has an offset.
            error = KafkaError(RD_KAFKA_RESP_ERR__INCONSISTENT, message: "no broker has acknowledged the message")
        }
        let name = message.rkt.flatMap { names[$0] ?? rd_kafka_topic_name($0).map { String(cString: $0) } } ?? ""
        reports.append(
            DeliveryReport(
                token: Int(bitPattern: message._private),
                error: error,
                topicPartition: TopicPartition(topic: name, partition: message.partition),
                offset: error == nil ? message.offset : Int64(RD_KAFKA_OFFSET_INVALID)))
    }

    /// All reports so far, in the order in which they came.
    func take() -> [DeliveryReport] {
        defer { reports = [] }
        return reports
    }
}

/// The argument list of `rd_kafka_produceva`, allocated once and filled anew for every message.
final class MessageArguments {
    private let buffer = UnsafeMutablePointer<rd_kafka_vu_t>.allocate(capacity: 8)

    /// Stands where an empty key or value needs an address: a null address would make it a null field.
    private let empty = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)

    init() {
        buffer.initialize(repeating: rd_kafka_vu_t(), count: 8)
    }

    deinit {
        buffer.deallocate()
        empty.deallocate()
    }

    /// Hands the message to librdkafka, which copies everything.
    ///
    /// - Throws: what librdkafka says when it did not take the message; nothing of it is kept then.
    func produce(
        _ record: Record, to topic: OpaquePointer, token: Int, client: OpaquePointer
    ) throws(KafkaError) {
        set(0, RD_KAFKA_VTYPE_RKT) { $0.rkt = topic }
        set(1, RD_KAFKA_VTYPE_PARTITION) { $0.i32 = record.partition ?? RD_KAFKA_PARTITION_UA }
        set(2, RD_KAFKA_VTYPE_MSGFLAGS) { $0.i = RD_KAFKA_MSG_F_COPY }
        set(3, RD_KAFKA_VTYPE_OPAQUE) { $0.ptr = UnsafeMutableRawPointer(bitPattern: token) }
        set(4, RD_KAFKA_VTYPE_TIMESTAMP) { $0.i64 = record.timestampMs ?? 0 }
        let headers = try Self.headerList(record.headers)
        if let headers { set(5, RD_KAFKA_VTYPE_HEADERS) { $0.headers = headers } }
        let count = headers == nil ? 5 : 6
        let error = withBytes(record.key) { key, keySize in
            withBytes(record.value) { value, valueSize in
                set(count, RD_KAFKA_VTYPE_KEY) { $0.mem = .init(ptr: key, size: keySize) }
                set(count + 1, RD_KAFKA_VTYPE_VALUE) { $0.mem = .init(ptr: value, size: valueSize) }
                return rd_kafka_produceva(client, buffer, count + 2)
            }
        }
        guard let error else { return }
        // The list becomes librdkafka's only together with the message.
        if let headers { rd_kafka_headers_destroy(headers) }
        throw KafkaError(consuming: error)
    }

    private func set(_ index: Int, _ type: rd_kafka_vtype_t, _ fill: (inout rd_kafka_vu_t.__Unnamed_union_u) -> Void) {
        buffer[index].vtype = type
        fill(&buffer[index].u)
    }

    private func withBytes<R>(_ bytes: [UInt8]?, _ body: (UnsafeMutableRawPointer?, Int) -> R) -> R {
        guard let bytes else { return body(nil, 0) }
        if bytes.isEmpty { return body(empty, 0) }
        return bytes.withUnsafeBytes { body(UnsafeMutableRawPointer(mutating: $0.baseAddress), $0.count) }
    }

    private static func headerList(_ headers: [Header]) throws(KafkaError) -> OpaquePointer? {
        if headers.isEmpty { return nil }
        guard let list = rd_kafka_headers_new(headers.count) else { return nil }
        for header in headers {
            let code = add(header, to: list)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                rd_kafka_headers_destroy(list)
                throw KafkaError(code)
            }
        }
        return list
    }

    private static func add(_ header: Header, to list: OpaquePointer) -> rd_kafka_resp_err_t {
        guard let raw = header.rawName else { return add(header.name, -1, header.value, to: list) }
        return raw.withUnsafeBytes { bytes in
            let text = bytes.bindMemory(to: CChar.self)
            guard let start = text.baseAddress else { return RD_KAFKA_RESP_ERR__INVALID_ARG }
            return add(start, text.count, header.value, to: list)
        }
    }

    /// - Parameter nameSize: -1 for a name that ends with a zero.
    private static func add(
        _ name: UnsafePointer<CChar>, _ nameSize: Int, _ value: [UInt8]?, to list: OpaquePointer
    ) -> rd_kafka_resp_err_t {
        guard let value else { return rd_kafka_header_add(list, name, nameSize, nil, 0) }
        // An empty array may have no address, and a null address would make it a null value.
        if value.isEmpty { return rd_kafka_header_add(list, name, nameSize, "", 0) }
        return value.withUnsafeBytes { rd_kafka_header_add(list, name, nameSize, $0.baseAddress, $0.count) }
    }
}

/// librdkafka's handles of the topics that are produced to, made once each: naming the topic anew for every message
/// costs more than the rest of sending it. Confined to the producer's thread.
final class TopicHandles {
    /// Reply topics are named by senders, so their number has no bound; that of the handles has.
    static let limit = 1000

    private let client: OpaquePointer
    private let collector: DeliveryCollector
    private var handles: [String: OpaquePointer] = [:]

    init(client: OpaquePointer, collector: DeliveryCollector) {
        self.client = client
        self.collector = collector
    }

    /// Whether the next new topic should find the others gone; that is allowed only while no message is on its way.
    var isFull: Bool { handles.count >= Self.limit }

    /// - Throws: when librdkafka refuses the name.
    func handle(for topic: String) throws(KafkaError) -> OpaquePointer {
        if let known = handles[topic] { return known }
        guard let made = rd_kafka_topic_new(client, topic, nil) else {
            throw KafkaError(rd_kafka_last_error(), message: "librdkafka refuses the topic name")
        }
        handles[topic] = made
        collector.names[made] = topic
        return made
    }

    func knows(_ topic: String) -> Bool { handles[topic] != nil }

    /// Gives all handles back.
    func removeAll() {
        for handle in handles.values { rd_kafka_topic_destroy(handle) }
        handles = [:]
        collector.names = [:]
    }
}
