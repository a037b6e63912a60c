// SPDX-License-Identifier: Apache-2.0

import Messaging
import Testing

@Suite struct KafkaRecordTests {
    private func record(_ headers: [KafkaHeader]) -> KafkaRecord {
        KafkaRecord(
            topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, key: nil, value: nil, headers: headers)
    }

    @Test func theLastHeaderOfANameWins() {
        let record = record([
            KafkaHeader(name: "a", value: [1]), KafkaHeader(name: "b", value: [2]), KafkaHeader(name: "a", value: [3]),
        ])
        #expect(record.header("a") == [3])
        #expect(record.header("b") == [2])
    }

    @Test func aMissingHeaderAndANullOneAreNil() {
        let record = record([KafkaHeader(name: "a", value: [1]), KafkaHeader(name: "a", value: nil)])
        #expect(record.header("a") == nil)
        #expect(record.header("z") == nil)
    }

    @Test func partitionsAreOrderedByTopicThenNumber() {
        let sorted = [("b", 0), ("a", 10), ("a", 9)].map { TopicPartition(topic: $0.0, partition: $0.1) }.sorted()
        #expect(sorted.map(\.description) == ["a[9]", "a[10]", "b[0]"])
    }
}
