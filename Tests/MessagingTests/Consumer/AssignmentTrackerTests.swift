// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Messaging

@Suite struct AssignmentTrackerTests {
    private let a = TopicPartition(topic: "t", partition: 0)
    private let b = TopicPartition(topic: "t", partition: 1)

    private func record(_ partition: TopicPartition, _ offset: Int64) -> KafkaRecord {
        KafkaRecord(topicPartition: partition, offset: offset, key: nil, value: nil)
    }

    @Test func recordsOfRemovedPartitionsAreDiscardedOnce() {
        var tracker = AssignmentTracker()
        tracker.add([a, b])
        var records = [record(a, 1), record(b, 1), record(a, 2)]
        tracker.discardRemoved(from: &records)
        #expect(records.count == 3)
        tracker.remove([a])
        tracker.discardRemoved(from: &records)
        #expect(records.map(\.topicPartition) == [b])
        // What comes after the return of a partition belongs to the new assignment.
        tracker.add([a])
        records.append(record(a, 1))
        tracker.discardRemoved(from: &records)
        #expect(records.map(\.topicPartition) == [b, a])
    }

    @Test func aPartitionThatWentAndCameBackLosesWhatWasReadBefore() {
        var tracker = AssignmentTracker()
        tracker.add([a])
        var records = [record(a, 1)]
        tracker.remove([a])
        tracker.add([a])
        tracker.discardRemoved(from: &records)
        #expect(records.isEmpty)
        #expect(tracker.partitions == [a])
    }

    @Test func aRestartLosesWhatWasReadBeforeAndKeepsTheRest() {
        var tracker = AssignmentTracker()
        tracker.add([a, b])
        tracker.paused = [a]
        tracker.outOfRange = [a, b]
        var records = [record(a, 1), record(b, 1)]
        tracker.restart([a])
        tracker.discardRemoved(from: &records)
        #expect(records.map(\.topicPartition) == [b])
        #expect(tracker.partitions == [a, b] && tracker.paused == [a] && tracker.outOfRange == [b])
        tracker.remove([a, b])
        #expect(tracker.paused.isEmpty && tracker.outOfRange.isEmpty)
    }

    @Test func everyChangeIsCounted() {
        var tracker = AssignmentTracker()
        tracker.add([a])
        tracker.remove([a])
        #expect(tracker.changes == 2)
        #expect(tracker.partitions.isEmpty)
    }
}
