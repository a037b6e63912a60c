// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct RecordTimesTests {
    private static let partitions: Int32 = 12

    @Test func eachPartitionTellsTheTimeOfTheRecordAtItsOffset() throws {
        let broker = try TestBroker(["in": Int(Self.partitions)])
        defer { broker.close() }
        let producer = try broker.producer()
        // Larger than what is asked for, so that a broker sends whole batches.
        try producer.deliver(
            (0..<Self.partitions).flatMap { partition in
                (0..<40).map { place in
                    Record(
                        topic: broker.topic("in"), value: [UInt8](repeating: 7, count: 10_000), partition: partition,
                        timestampMs: Self.time(partition, Int64(place)))
                }
            })
        producer.close(timeout: .seconds(5))
        let offsets = Dictionary(
            uniqueKeysWithValues: (0..<Self.partitions).map { (broker.partition("in", $0), Int64(20 + $0)) })

        let times = RecordTimes.look(
            offsets, broker.configuration(), timeout: .seconds(10), logger: Logger(label: "times"))

        #expect(times == Dictionary(uniqueKeysWithValues: offsets.map { ($0, Self.time($0.partition, $1)) }))
    }

    @Test func aPartitionWithoutARecordThereTellsNone() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let producer = try broker.producer()
        try producer.deliver([
            Record(topic: broker.topic("in"), value: [1], partition: 0, timestampMs: Self.time(0, 0)),
            Record(topic: broker.topic("in"), value: [1], partition: 1, timestampMs: Self.time(1, 0)),
        ])
        producer.close(timeout: .seconds(5))

        let times = RecordTimes.look(
            [broker.partition("in", 0): 1, broker.partition("in", 1): 0], broker.configuration(), timeout: .seconds(2),
            logger: Logger(label: "times"))

        #expect(times == [broker.partition("in", 1): Self.time(1, 0)])
    }

    private static func time(_ partition: Int32, _ offset: Int64) -> Int64 {
        1_700_000_000_000 + Int64(partition) * 1_000_000 + offset * 1000
    }
}
