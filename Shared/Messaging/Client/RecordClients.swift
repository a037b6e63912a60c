// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// What a service's loop needs of a member of a consumer group. ``KafkaConsumer`` is one, the simulation has another
/// (docs/simulation.md). Every requirement is described there.
public protocol RecordConsumer: AnyObject {
    var assignment: Set<TopicPartition> { get }
    var isJoined: Bool { get }
    var lastError: KafkaError? { get }

    func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord]
    func takeOutOfRange() -> [TopicPartition]
    func takeVanished() -> Set<String>
    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError)
    func pause(_ partitions: [TopicPartition]) throws(KafkaError)
    func resume(_ partitions: [TopicPartition]) throws(KafkaError)
    @discardableResult
    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool
    @discardableResult
    func close(timeout: Duration) -> Bool
}

/// What a service's loop needs of a producer. ``KafkaProducer`` is one, the simulation has another.
public protocol RecordProducer: AnyObject {
    var fatalError: KafkaError? { get }

    func send(_ record: Record, token: Int) throws(KafkaError)
    func poll(timeout: Duration) -> [DeliveryReport]
    @discardableResult
    func close(timeout: Duration) -> [DeliveryReport]
}

extension KafkaConsumer: RecordConsumer {
    public func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord] {
        try poll(maxRecords: maxRecords, maxBytes: Self.defaultMaxBytes, timeout: timeout)
    }
}

extension KafkaProducer: RecordProducer {}
