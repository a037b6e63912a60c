// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import MessagingTestKit
import Testing

@Suite(.dedicatedThread) struct RebalanceTests {
    @Test func readingStartsWhereTheHandlerSays() throws {
        let broker = try TestBroker(["in": 4])
        defer { broker.close() }
        let producer = try broker.producer()
        let topic = broker.topic("in")
        try producer.deliver(
            (0..<40).map { Record(topic: topic, value: [UInt8($0)], partition: Int32($0 % 4)) })
        let handler = TestHandler(starts: [
            broker.partition("in", 0): 7, broker.partition("in", 1): KafkaOffset.beginning,
            broker.partition("in", 2): KafkaOffset.end,
        ])
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        let records = try consumer.collect(3 + 10 + 10)
        let offsets = Dictionary(grouping: records, by: \.topicPartition.partition).mapValues { $0.map(\.offset) }
        #expect(offsets == [0: [7, 8, 9], 1: Array(0...9), 3: Array(0...9)])
        #expect(handler.assigned.map { $0.sorted() } == [(0..<4).map { broker.partition("in", $0) }])
        #expect(consumer.assignment.count == 4)
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
        #expect(handler.revoked.flatMap { $0 }.count == 4)
        #expect(handler.lost.isEmpty)
        #expect(consumer.assignment.isEmpty)
    }

    @Test func theHandlerMayAskAndCommitButNotPollOrClose() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let partition = broker.partition("in", 0)
        let producer = try broker.producer()
        try producer.deliver((0..<3).map { _ in Record(topic: partition.topic, value: [1]) })
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        var answers: [String] = []
        handler.onAssign = { [unowned consumer] _ in
            answers.append("\((try? consumer.committed([partition], timeout: .seconds(30)))?.count ?? -1)")
            answers.append("\((try? consumer.poll(maxRecords: 1, timeout: .zero)) == nil)")
            answers.append("\(consumer.close(timeout: .seconds(1)))")
        }
        handler.onRevoke = { [unowned consumer] _ in
            answers.append("\(consumer.commit([partition: 2], wait: true))")
        }
        _ = try consumer.collect(3)
        #expect(consumer.close(timeout: patience))
        #expect(answers == ["0", "true", "false", "true"])

        let onlooker = TestHandler(otherwise: KafkaOffset.committed)
        let next = try broker.consumer(["in"], handler: onlooker)
        #expect(try next.collect(1).map(\.offset) == [2])
        next.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    /// ```
    /// first:   joins, reads all six ........ gives three up ........ reads three
    /// second:                   joins ....................... gets three
    /// sender:  one message to every partition, again and again
    /// ```
    /// Both keep their progress in one place, as services keep it in the database: then each message must be read
    /// exactly once, in order, by whoever has the partition when `poll` returns.
    @Test func aSecondMemberTakesOverWithoutLossOrRepetition() throws {
        let broker = try TestBroker(["in": 6])
        defer { broker.close() }
        // More than a busy machine needs, and every change of the group takes as long.
        let patient = ["session.timeout.ms": "10000"]
        let world = RebalanceWorld(topic: broker.topic("in"), partitions: 6, producer: try broker.producer())
        let first = try world.member { try broker.consumer(["in"], handler: $0, settings: patient) }
        try world.run(until: { first.consumer.assignment.count == 6 && world.consumed > 100 })
        let second = try world.member { try broker.consumer(["in"], handler: $0, settings: patient) }
        try world.run(until: { second.consumer.assignment.count == 3 && first.consumer.assignment.count == 3 })
        let before = world.consumed
        try world.run(until: { world.consumed > before + 100 })
        #expect(first.consumer.assignment.isDisjoint(with: second.consumer.assignment))
        #expect(first.handler.revoked.flatMap { $0 }.count == 3)
        // Cooperative: the partitions that stay are never taken away in between.
        #expect(first.handler.assigned.flatMap { $0 }.count == 6)

        #expect(second.consumer.close(timeout: patience))
        world.members.removeLast()
        try world.run(until: { first.consumer.assignment.count == 6 })
        try world.finish()
        #expect(world.violations.isEmpty)
        #expect(first.handler.lost.isEmpty && second.handler.lost.isEmpty)
        first.consumer.close(timeout: .seconds(20))
        world.producer.close(timeout: .seconds(5))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aMemberThrownOutOfTheGroupLosesItsPartitionsAndComesBack() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try consumer.join(2)
        let unknown = [Int32](repeating: KafkaError.Code.unknownMember, count: 1)
        try broker.faults().failNext(.heartbeat, with: unknown)
        try wait(until: !handler.lost.isEmpty) { _ = try consumer.poll(maxRecords: 1, timeout: .milliseconds(50)) }
        #expect(handler.lost.flatMap { $0 }.count == 2)
        #expect(!consumer.isJoined)
        #expect(handler.revoked.isEmpty)
        #expect(!consumer.commit([broker.partition("in", 0): 1], wait: true))
        try consumer.join(2)
        #expect(handler.assigned.flatMap { $0 }.count == 4)
        #expect(!consumer.isAssignmentLost && consumer.isJoined)
        consumer.close(timeout: .seconds(20))
    }

    /// Its group would answer when the group is another one already, and what librdkafka 2.0.2 makes of that is the loss of
    /// all partitions.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aMemberOnItsWayIntoTheGroupCommitsNothing() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try broker.faults().setRoundTrip(.milliseconds(300))
        let consumer = try broker.consumer(["in"], handler: TestHandler())
        let offsets: [TopicPartition: Int64] = [broker.partition("in", 0): 0]
        var wasTaken: [Bool] = []
        try wait(until: consumer.isJoined) {
            wasTaken.append(consumer.commit(offsets, wait: false))
            _ = try consumer.poll(maxRecords: 1, timeout: .milliseconds(20))
        }
        #expect(wasTaken.contains(false))
        #expect(consumer.commit(offsets, wait: true))
        consumer.close(timeout: .seconds(20))
    }

    /// The handler has claimed what is then not read: the consumer must not go on as if nothing were wrong.
    @Test func aRefusedAssignmentEndsTheConsumer() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let handler = TestHandler(otherwise: -5)
        let consumer = try broker.consumer(["in"], handler: handler)
        var failure: KafkaError?
        try wait(until: failure != nil) {
            do throws(KafkaError) {
                _ = try consumer.poll(maxRecords: 1, timeout: .milliseconds(100))
            } catch {
                failure = error
            }
        }
        #expect(failure?.disposition == .fatal)
        #expect(failure?.message.contains("invalid start offset") == true)
        #expect(consumer.close(timeout: patience))
        let next = try broker.consumer(["in"], handler: TestHandler())
        try next.join(1)
        next.close(timeout: .seconds(20))
    }

    @Test func withoutAHandlerReadingStartsAtTheCommittedOffsets() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
        let handler = TestHandler()
        let first = try broker.consumer(["in"], handler: handler)
        try first.join(1)
        #expect(first.commit([broker.partition("in", 0): 0], wait: true))
        first.close(timeout: .seconds(20))
        let consumer = try broker.consumer(["in"], handler: TestHandler())
        #expect(try consumer.collect(1).map(\.offset) == [0])
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }
}
