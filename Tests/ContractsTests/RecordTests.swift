// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@Suite struct RecordTests {
    private func record(_ headers: [Header]) -> KafkaRecord {
        KafkaRecord(
            topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, key: nil, value: nil, headers: headers)
    }

    @Test func theLastHeaderOfANameWins() {
        let record = record([
            Header("a", [1]), Header("b", [2]), Header("a", [3]),
        ])
        #expect(record.header("a") == [3])
        #expect(record.header("b") == [2])
    }

    @Test func aMissingHeaderAndANullOneAreNil() {
        let record = record([Header("a", [1]), Header("a", nil)])
        #expect(record.header("a") == nil)
        #expect(record.header("z") == nil)
    }

    @Test func partitionsAreOrderedByTopicThenNumber() {
        let sorted = [("b", 0), ("a", 10), ("a", 9)].map { TopicPartition(topic: $0.0, partition: $0.1) }.sorted()
        #expect(sorted.map(\.description) == ["a[9]", "a[10]", "b[0]"])
    }
}
