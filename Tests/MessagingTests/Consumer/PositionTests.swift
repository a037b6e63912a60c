// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import MessagingTestKit
import Testing

/// Restarting, pausing and lost positions.
@Suite(.dedicatedThread) struct PositionTests {
    private func fill(_ broker: TestBroker, _ count: Int, partitions: Int = 1) throws {
        let producer = try broker.producer()
        let reports = try producer.deliver(
            (0..<count * partitions).map {
                Record(topic: broker.topic("in"), value: [1], partition: Int32($0 % partitions))
            })
        #expect(reports.compactMap(\.error).isEmpty)
        producer.close(timeout: .seconds(5))
    }

    private func offsets(_ records: [KafkaRecord], _ partition: TopicPartition) -> [Int64] {
        records.filter { $0.topicPartition == partition }.map(\.offset)
    }

    @Test(arguments: [3 as Int64, 40, KafkaOffset.beginning])
    func aRestartReadsAnewFromThere(start: Int64) throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        try fill(broker, 50, partitions: 2)
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        // Some are with us, the others wait in librdkafka's queue.
        var first: [KafkaRecord] = []
        try wait(until: !offsets(first, zero).isEmpty) {
            first += try consumer.poll(maxRecords: 5, timeout: .milliseconds(100))
        }
        try consumer.restart([zero: start, broker.partition("in", 77): 1])
        var later: [KafkaRecord] = []
        let expected = Array(max(start, 0)..<50)
        try wait(until: offsets(later, zero).last == 49 && offsets(first + later, one).last == 49) {
            later += try consumer.poll(maxRecords: 5, timeout: .milliseconds(100))
        }
        #expect(offsets(later, zero) == expected)
        // The neighbour is not disturbed.
        #expect(offsets(first + later, one) == Array(0..<50))
        #expect(handler.assigned.count == 1 && handler.revoked.isEmpty && handler.lost.isEmpty)
        #expect(consumer.isJoined)
        consumer.close(timeout: .seconds(20))
    }

    /// Again and again, at every state of fetching.
    @Test func manyRestartsKeepTheOrder() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try fill(broker, 100)
        let partition = broker.partition("in", 0)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        try consumer.join(1)
        for turn in 0..<100 {
            let start = Int64((turn * 37) % 99)
            try consumer.restart([partition: start])
            if turn % 3 == 0 { continue }
            let records = try consumer.collect(1)
            #expect(records.map(\.offset) == Array(start..<start + Int64(records.count)))
        }
        consumer.close(timeout: .seconds(20))
    }

    @Test func aPositionThatTheLogDoesNotHaveIsToldOnceAndMended() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        try fill(broker, 10, partitions: 2)
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let handler = TestHandler(starts: [zero: 1000])
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        var records = try consumer.collect(10)
        var lost: [TopicPartition] = []
        try wait(until: !lost.isEmpty) {
            records += try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
            lost += consumer.takeOutOfRange()
        }
        #expect(lost == [zero])
        #expect(consumer.takeOutOfRange().isEmpty)
        #expect(consumer.lastError == nil)
        #expect(broker.warnings("OFFSET") == 0)
        #expect(offsets(records, zero).isEmpty)
        #expect(offsets(records, one) == Array(0..<10))
        let bounds = try #require(try broker.bounds(of: zero))
        #expect(bounds == (0, 10))
        try consumer.restart([zero: bounds.low + 7])
        #expect(try consumer.collect(3).map(\.offset) == [7, 8, 9])
        #expect(consumer.takeOutOfRange().isEmpty)
        consumer.close(timeout: .seconds(20))
    }

    @Test func aGroupWithoutAnOffsetHasNoPosition() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try fill(broker, 3)
        let partition = broker.partition("in", 0)
        let handler = TestHandler(otherwise: KafkaOffset.committed)
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        var lost: [TopicPartition] = []
        try wait(until: !lost.isEmpty) {
            let records = try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
            #expect(records.isEmpty)
            lost += consumer.takeOutOfRange()
        }
        #expect(lost == [partition])
        consumer.close(timeout: .seconds(20))
    }

    /// The embedded broker keeps about 5 MB a partition, so the log's beginning overtakes a member that pauses.
    @Test(.enabled(if: TestBroker.isEmbedded, "fills the embedded broker's small log"))
    func aLogThatOvertakesItsReaderIsNoticed() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try fill(broker, 3)
        let partition = broker.partition("in", 0)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        _ = try consumer.collect(3)
        try consumer.pause([partition])
        let producer = try broker.producer(["compression.type": "none"])
        let value = [UInt8](repeating: 7, count: 900_000)
        for _ in 0..<10 { try producer.deliver([Record(topic: partition.topic, value: value)]) }
        try consumer.resume([partition])
        var lost: [TopicPartition] = []
        try wait(until: !lost.isEmpty) {
            let records = try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
            #expect(records.isEmpty)
            lost += consumer.takeOutOfRange()
        }
        let bounds = try #require(try broker.bounds(of: partition))
        #expect(bounds.low > 3 && bounds.high == 13)
        try consumer.restart([partition: bounds.low])
        #expect(try consumer.collect(1).first?.offset == bounds.low)
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func aPauseKeepsThePlace() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        try fill(broker, 50, partitions: 2)
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        var before: [KafkaRecord] = []
        try wait(until: offsets(before, zero).count >= 5) {
            before += try consumer.poll(maxRecords: 5, timeout: .milliseconds(100))
        }
        try consumer.pause([zero, broker.partition("in", 77)])
        #expect(consumer.paused == [zero])
        var meanwhile: [KafkaRecord] = []
        try wait(until: offsets(before + meanwhile, one).last == 49) {
            meanwhile += try consumer.poll(maxRecords: 5, timeout: .milliseconds(100))
        }
        meanwhile += try consumer.poll(maxRecords: 5, timeout: .milliseconds(500))
        #expect(offsets(meanwhile, zero).isEmpty)
        try consumer.resume([zero])
        #expect(consumer.paused.isEmpty)
        var after: [KafkaRecord] = []
        try wait(until: offsets(after, zero).last == 49) {
            after += try consumer.poll(maxRecords: 5, timeout: .milliseconds(100))
        }
        #expect(offsets(before + after, zero) == Array(0..<50))
        #expect(offsets(before + meanwhile + after, one) == Array(0..<50))
        consumer.close(timeout: .seconds(20))
    }

    @Test func aRestartedPartitionStaysPaused() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try fill(broker, 10)
        let partition = broker.partition("in", 0)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        _ = try consumer.collect(10)
        try consumer.pause([partition])
        try consumer.restart([partition: 4])
        #expect(consumer.paused == [partition])
        #expect(try consumer.poll(maxRecords: 10, timeout: .milliseconds(500)).isEmpty)
        try consumer.resume([partition])
        #expect(try consumer.collect(6).map(\.offset) == Array(4..<10))
        consumer.close(timeout: .seconds(20))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aPauseEndsWithTheOwnership() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try fill(broker, 3)
        let partition = broker.partition("in", 0)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try consumer.join(1)
        try consumer.pause([partition])
        try broker.faults().failNext(.heartbeat, with: [KafkaError.Code.unknownMember])
        try wait(until: !handler.lost.isEmpty) { _ = try consumer.poll(maxRecords: 9, timeout: .milliseconds(50)) }
        #expect(consumer.paused.isEmpty)
        #expect(try consumer.collect(3).map(\.offset) == [0, 1, 2])
        consumer.close(timeout: .seconds(20))
    }

    @Test func positionsAreNotForTheHandler() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let partition = broker.partition("in", 0)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        var codes: [Int32] = []
        handler.onAssign = { [unowned consumer] _ in
            do throws(KafkaError) { try consumer.restart([partition: 0]) } catch { codes.append(error.code) }
            do throws(KafkaError) { try consumer.pause([partition]) } catch { codes.append(error.code) }
            do throws(KafkaError) { try consumer.resume([partition]) } catch { codes.append(error.code) }
        }
        try consumer.join(1)
        #expect(codes == [KafkaError.Code.wrongState, KafkaError.Code.wrongState, KafkaError.Code.wrongState])
        consumer.close(timeout: .seconds(20))
        #expect(throws: KafkaError.self) { try consumer.restart([partition: 0]) }
    }
}
