// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Runtime

/// What neither an event nor a reply tells of.
@Suite struct SilenceTests {
    private func entry(_ partition: Int32, _ offset: Int64) -> Entry {
        let place = TopicPartition(topic: "commands", partition: partition)
        let record = KafkaRecord(
            topicPartition: place, offset: offset, timestampMs: 0, key: nil, value: nil, headers: [])
        return Entry(record, incarnation: 0, type: "", outcome: .noted, [])
    }

    @Test func oneNoteTellsOfThoseOfOneAppPartitionAndTime() {
        let decided: [(app: AppID, partition: Int32, time: Int64)] = [
            ("a", 0, 1), ("a", 0, 1), ("b", 0, 1), ("a", 1, 1), ("a", 0, 2), ("a", 0, 1),
        ]
        var silence = Silence()
        let entries = decided.indices.map { entry(decided[$0].partition, Int64($0)) }
        let ids = decided.indices.map { "m\($0)" }
        for (place, one) in decided.enumerated() {
            silence.add(ids[place], one.app, entries[place], at: Timestamp(milliseconds: one.time), place: place)
        }
        let notes = silence.take()
        #expect(notes.map(\.decisions) == [[ids[2]], [ids[3]], [ids[4]], [ids[0], ids[1], ids[5]]])
        #expect(notes.map(\.place) == [2, 3, 4, 5])
        #expect(notes.map(\.decidedAt.milliseconds) == [1, 1, 2, 1])
        #expect(notes.map { $0.entry === entries[$0.place] } == [true, true, true, true])
        #expect(silence.take().isEmpty)
    }
}
