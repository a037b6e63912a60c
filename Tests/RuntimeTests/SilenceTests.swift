// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Runtime

/// What neither an event nor a reply tells of.
@Suite struct SilenceTests {
    @Test func oneNoteTellsOfThoseOfOneAppPartitionAndTime() {
        let decided: [(app: AppID, partition: Int32, time: Int64)] = [
            ("a", 0, 1), ("a", 0, 1), ("b", 0, 1), ("a", 1, 1), ("a", 0, 2), ("a", 0, 1),
        ]
        var silence = Silence()
        let records = decided.indices.map { place in
            KafkaRecord(
                topicPartition: TopicPartition(topic: "commands", partition: decided[place].partition),
                offset: Int64(place), timestampMs: 0, key: nil, value: nil, headers: [])
        }
        let entries = records.map { Entry($0, incarnation: 0, type: "", outcome: .noted, []) }
        for (place, one) in decided.enumerated() {
            silence.add(
                .init(app: one.app, record: records[place]), entries[place], at: Timestamp(milliseconds: one.time)
            ) { $0.decisions.append("m\(place)") }
        }
        let notes = silence.take()
        #expect(notes.map(\.told.decisions) == [["m2"], ["m3"], ["m4"], ["m0", "m1", "m5"]])
        #expect(notes.map(\.told.last) == ["m2", "m3", "m4", "m5"])
        #expect(notes.map(\.subject.record.offset) == [2, 3, 4, 5])
        #expect(notes.map(\.decidedAt.milliseconds) == [1, 1, 2, 1])
        #expect(notes.allSatisfy { $0.entry === entries[Int($0.subject.record.offset)] })
        #expect(silence.take().isEmpty)
    }
}
