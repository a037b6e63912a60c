// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Testing

@testable import Runtime

@Suite struct ConsumersTests {
    /// A member of a group whose topic has so many records left.
    private final class Member: RecordConsumer {
        let topic: String
        var left: Int
        var assignment: Set<TopicPartition> { [] }
        var isJoined: Bool { true }
        var lastError: KafkaError? { nil }

        init(_ topic: String, _ left: Int) { (self.topic, self.left) = (topic, left) }

        func poll(maxRecords: Int, timeout: Duration) -> [KafkaRecord] {
            let count = min(maxRecords, left)
            left -= count
            return (0..<count).map { offset in
                KafkaRecord(
                    topicPartition: TopicPartition(topic: topic, partition: 0), offset: Int64(offset), timestampMs: 0,
                    key: nil, value: nil, headers: [])
            }
        }

        func takeOutOfRange() -> [TopicPartition] { [] }
        func takeVanished() -> Set<String> { [] }
        func restart(_ starts: [TopicPartition: Int64]) {}
        func pause(_ partitions: [TopicPartition]) {}
        func resume(_ partitions: [TopicPartition]) {}
        func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool { true }
        func close(timeout: Duration) -> Bool { true }
    }

    /// A backlog of commands holds up neither answers nor events, and the other way round.
    @Test func noTopicWaitsForAnother() throws {
        let left = ["commands": 100_000, "replies": 20, "events": 500]
        let consumers = Consumers(
            left.keys.sorted().map { Consumers.Source(topic: $0, group: $0) },
            make: { Member($0.topic, left[$0.topic] ?? 0) }, wait: { _ in })
        try consumers.join()
        let records = try consumers.poll(limit: 1000, timeout: .zero)
        let counts = Dictionary(grouping: records, by: \.topicPartition.topic).mapValues(\.count)
        #expect(counts == ["replies": 20, "commands": 490, "events": 490])
    }
}
