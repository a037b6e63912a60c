// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts

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

    /// Gives all handles back.
    func removeAll() {
        for handle in handles.values { rd_kafka_topic_destroy(handle) }
        handles = [:]
        collector.names = [:]
    }
}
