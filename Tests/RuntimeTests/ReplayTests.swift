// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Runtime

@Suite struct ReplayTests {
    private static let end = Timestamp(milliseconds: 1000)
    private static let topics = ["commands", "replies"]

    private static func place(_ topic: String, _ partition: Int32) -> TopicPartition {
        TopicPartition(topic: topic, partition: partition)
    }

    private static func record(_ place: TopicPartition, _ offset: Int64, at time: Int64) -> KafkaRecord {
        KafkaRecord(
            topicPartition: place, offset: offset, timestampMs: time, key: nil, value: nil, headers: [])
    }

    private static func replay(_ partitions: Int32 = 2) -> Replay {
        var replay = Replay(until: end)
        for topic in topics { replay.assign(Set((0..<partitions).map { place(topic, $0) }), of: topic) }
        return replay
    }

    private let a = Self.place("commands", 0)
    private let b = Self.place("commands", 1)
    private let c = Self.place("replies", 0)
    private let d = Self.place("replies", 1)

    @Test func nothingComesBeforeEveryPartitionHasSpoken() {
        var replay = Self.replay()
        replay.add(Self.record(a, 0, at: 30))
        replay.add(Self.record(b, 0, at: 20))
        replay.add(Self.record(c, 0, at: 10))
        #expect(replay.next() == nil)
        #expect(replay.wanted(of: "commands") == [])
        #expect(replay.wanted(of: "replies") == [d])
        replay.reachedEnd(d)
        #expect(replay.next()?.topicPartition == c)
        // More of it may be older than the others.
        #expect(replay.next() == nil)
        #expect(!replay.isOver)
    }

    @Test func recordsOfOneTimeComeByTopicPartitionAndOffset() {
        var replay = Self.replay()
        for place in [d, c, b, a] {
            for offset in Int64(0)..<2 { replay.add(Self.record(place, offset, at: 7)) }
            replay.reachedEnd(place)
        }
        var order: [TopicPartition] = []
        while let record = replay.next() { order.append(record.topicPartition) }
        #expect(order == [a, a, b, b, c, c, d, d])
        #expect(replay.isOver)
    }

    /// One partition lagged. Of two records of the other one nothing is told: they come in their own place.
    @Test func recordsComeInTheOrderOfTheirDecisions() {
        var replay = Self.replay(1)
        for (offset, decidedAt) in [Int64(500), 600].enumerated() {
            replay.add(Self.record(a, Int64(offset), at: 1), decidedAt: decidedAt)
        }
        for (offset, decidedAt) in [Int64(20), nil, 550, nil].enumerated() {
            replay.add(Self.record(c, Int64(offset), at: 30 * Int64(offset)), decidedAt: decidedAt)
        }
        replay.reachedEnd(a)
        replay.reachedEnd(c)
        var order: [String] = []
        while let record = replay.next() { order.append("\(record.topicPartition.topic) \(record.offset)") }
        #expect(
            order == [
                "replies 0", "replies 1", "commands 0", "replies 2", "replies 3", "commands 1",
            ])
    }

    /// A producer wrote a time of the far future, another none.
    @Test func aPartitionKeepsItsOrderWhateverItsTimesAre() {
        var replay = Self.replay(1)
        for (offset, time) in [Int64(10), 1 << 60, 20, -1].enumerated() {
            replay.add(Self.record(a, Int64(offset), at: time))
        }
        for (offset, time) in [Int64(-1), 15, 900].enumerated() {
            replay.add(Self.record(c, Int64(offset), at: time))
        }
        replay.reachedEnd(c)
        var order: [String] = []
        while let record = replay.next() { order.append("\(record.topicPartition.topic) \(record.offset)") }
        #expect(
            order == [
                "replies 0", "commands 0", "replies 1", "replies 2", "commands 1", "commands 2", "commands 3",
            ])
        // What is of the future is not waited for: the end of a log that grows may never come.
        #expect(replay.isOver)
    }

    @Test func whatIsOfThePresentWaitsForThePastAndIsNotWaitedFor() {
        var replay = Self.replay(1)
        replay.add(Self.record(a, 0, at: 1000))
        #expect(replay.next() == nil)
        replay.add(Self.record(c, 0, at: 999))
        #expect(replay.next()?.topicPartition == c)
        #expect(replay.next() == nil)
        replay.reachedEnd(c)
        #expect(replay.next()?.topicPartition == a)
        #expect(replay.isOver)
    }

    @Test func whatIsReadAnewComesOnceAndIsWaitedForAgain() {
        var replay = Self.replay(1)
        for offset in Int64(0)..<3 { replay.add(Self.record(a, offset, at: offset)) }
        replay.reachedEnd(a)
        replay.reachedEnd(c)
        #expect(replay.next()?.offset == 0)
        // A record that is given twice counts once.
        replay.add(Self.record(a, 2, at: 2))
        replay.forget([a])
        #expect(replay.next() == nil)
        #expect(!replay.isOver)
        for offset in Int64(1)..<3 { replay.add(Self.record(a, offset, at: offset)) }
        replay.reachedEnd(a)
        #expect(replay.next()?.offset == 1)
        #expect(replay.next()?.offset == 2)
        #expect(replay.next() == nil)
        #expect(replay.isOver)
    }

    @Test func whatIsTakenAwayIsNotWaitedFor() {
        var replay = Self.replay(2)
        replay.add(Self.record(a, 0, at: 5))
        replay.add(Self.record(b, 0, at: 1))
        replay.reachedEnd(c)
        replay.assign([a], of: "commands")
        #expect(replay.next() == nil)
        replay.assign([c], of: "replies")
        #expect(replay.next()?.topicPartition == a)
        // Of what is not assigned nothing is taken in.
        replay.add(Self.record(b, 1, at: 6))
        replay.reachedEnd(a)
        #expect(replay.isOver)
    }

    /// However the records of the partitions come in, they go out as one order of all says.
    @Test(arguments: 0..<50) func anyArrivalGivesOneOrder(_ seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var logs: [TopicPartition: [KafkaRecord]] = [:]
        for place in [a, b, c, d] {
            var time: Int64 = 0
            logs[place] = (0..<Int64.random(in: 0...30, using: &random)).map { offset in
                time += Int64.random(in: 0...3, using: &random)
                return Self.record(place, offset, at: time)
            }
        }
        let expected = logs.values.flatMap { $0 }.sorted {
            ($0.timestampMs, $0.topicPartition, $0.offset) < ($1.timestampMs, $1.topicPartition, $1.offset)
        }
        var replay = Self.replay()
        var rest = logs
        var order: [KafkaRecord] = []
        while !replay.isOver {
            for topic in Self.topics {
                for place in replay.wanted(of: topic).sorted() where Bool.random(using: &random) {
                    let count = min(rest[place]?.count ?? 0, Int.random(in: 0...5, using: &random))
                    for record in rest[place]?.prefix(count) ?? [] { replay.add(record) }
                    rest[place]?.removeFirst(count)
                    if rest[place]?.isEmpty ?? true { replay.reachedEnd(place) }
                }
            }
            while let record = replay.next() { order.append(record) }
        }
        #expect(order.map(\.topicPartition) == expected.map(\.topicPartition))
        #expect(order.map(\.offset) == expected.map(\.offset))
    }
}

@Suite struct PastTimesTests {
    private let now = Timestamp(milliseconds: 5000)

    private func time(_ timestamp: Int64, past end: Int64?) -> Int64 {
        let place = TopicPartition(topic: "commands", partition: 0)
        let record = KafkaRecord(
            topicPartition: place, offset: 0, timestampMs: timestamp, key: nil, value: nil, headers: [])
        return PastTimes(end: end.map { Timestamp(milliseconds: $0) }).time(of: record, now: now).milliseconds
    }

    @Test func onlyThePastHasItsOwnTime() {
        #expect(time(10, past: nil) == 5000)
        #expect(time(10, past: 100) == 10)
        #expect(time(100, past: 100) == 5000)
        #expect(time(-1, past: 100) == 5000)
        // The clock went back.
        #expect(time(6000, past: 7000) == 5000)
    }
}
