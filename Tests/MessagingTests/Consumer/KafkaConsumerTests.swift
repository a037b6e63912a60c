// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct KafkaConsumerTests {
    @Test func whatIsProducedIsConsumedUnchangedAndInOrder() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let topic = broker.topic("in")
        let bytes = [UInt8](0...255)
        let odd = [
            Header("binary", bytes), Header("empty", []),
            Header("null", nil), Header("", [1]),
            Header("größe", [2]), Header("binary", [3]),
        ]
        let sent = [
            Record(topic: topic, key: Array("k".utf8), value: Array("v".utf8), timestampMs: 1_700_000_000_123),
            Record(topic: topic, key: [1], value: nil),
            Record(topic: topic, key: [], value: []),
            Record(topic: topic, key: nil, value: bytes, headers: odd),
            Record(topic: topic, key: bytes, value: [UInt8](repeating: 7, count: 300_000)),
        ]
        let producer = try broker.producer()
        let reports = try producer.deliver(sent)
        #expect(reports.map(\.token) == [0, 1, 2, 3, 4])
        #expect(reports.map(\.offset) == [0, 1, 2, 3, 4])
        #expect(reports.allSatisfy { $0.error == nil && $0.topicPartition == broker.partition("in", 0) })

        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        let records = try consumer.collect(sent.count)
        #expect(records.map(\.offset) == [0, 1, 2, 3, 4])
        #expect(records.map(\.key) == sent.map(\.key))
        #expect(records.map(\.value) == sent.map(\.value))
        #expect(records.map(\.headers) == sent.map(\.headers))
        #expect(records[0].timestampMs == 1_700_000_000_123)
        #expect(records.allSatisfy { $0.topicPartition == broker.partition("in", 0) })
        #expect(consumer.close(timeout: patience))
        producer.close(timeout: .seconds(5))
    }

    /// librdkafka says so once, and says nothing when it is over. What was read stays where it was.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aTopicThatMayNotBeReadAnyMoreIsNamedUntilItMay() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let topic = broker.topic("in")
        let producer = try broker.producer()
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try producer.deliver([Record(topic: topic, value: [1])])
        #expect(try consumer.collect(1).map(\.value) == [[1]])
        try broker.faults().deny(.read, on: topic)
        try producer.deliver([Record(topic: topic, value: [2])])
        var records: [KafkaRecord] = []
        func poll() throws { records += try consumer.poll(maxRecords: 10, timeout: .milliseconds(100)) }
        try wait(until: consumer.unreadable[topic]?.code == KafkaError.Code.topicAuthorizationFailed) { try poll() }
        // What was fetched before the right was taken may still come.
        let until = ContinuousClock.now + .seconds(12)
        while ContinuousClock.now < until {
            try poll()
            #expect(consumer.unreadable[topic] != nil)
        }
        #expect(broker.warnings("kafka consumer error") == 0, "the check of the topics says so")
        // What is paused stays so.
        try consumer.pause([broker.partition("in", 0)])
        try broker.faults().allow(.read, on: topic)
        try wait(until: consumer.unreadable.isEmpty) { try poll() }
        #expect(consumer.paused == [broker.partition("in", 0)])
        try producer.deliver([Record(topic: topic, value: [3])])
        let before = records.count
        for _ in 0..<10 { try poll() }
        #expect(records.count == before)
        try consumer.resume([broker.partition("in", 0)])
        try wait(until: records.last?.value == [3]) { try poll() }
        #expect(records.map(\.value) == [[2], [3]])
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aMissingRightIsNamedThoughItComesTogetherWithARecordThatWasFetchedBefore() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let topic = broker.topic("in")
        let producer = try broker.producer()
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try producer.deliver([Record(topic: topic, value: [1])])
        #expect(try consumer.collect(1).map(\.value) == [[1]])
        // Nobody polls: what is fetched waits, the record first and the refusal behind it.
        try producer.deliver([Record(topic: topic, value: [2])])
        Thread.sleep(forTimeInterval: 2)
        try broker.faults().deny(.read, on: topic)
        Thread.sleep(forTimeInterval: 3)
        #expect(try consumer.poll(maxRecords: 10, timeout: .seconds(1)).map(\.value) == [[2]])
        #expect(consumer.unreadable[topic]?.code == KafkaError.Code.topicAuthorizationFailed)
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func headerNamesThatAreNotTextAreShownRepairedAndPassedOnAsTheyWere() throws {
        let broker = try TestBroker(["in": 1, "copy": 1])
        defer { broker.close() }
        let raw: [UInt8] = [0x61, 0xFF, 0x62]
        try RawProducer.produce(
            topic: broker.topic("in"), headerName: raw, headerValue: [0xFE, 0x00], servers: broker.bootstrapServers)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        let record = try #require(try consumer.collect(1).first)
        let header = try #require(record.headers.first)
        #expect(header.name == "a\u{FFFD}b" && header.rawName == raw && header.value == [0xFE, 0x00])
        #expect(record.key == nil && record.value == nil)
        consumer.close(timeout: .seconds(20))

        let producer = try broker.producer()
        let headers = record.headers + [Header("ü", nil)]
        try producer.deliver([Record(topic: broker.topic("copy"), value: nil, headers: headers)])
        let reader = TestHandler()
        let second = try broker.consumer(["copy"], handler: reader, group: "copies")
        let copy = try #require(try second.collect(1).first)
        #expect(copy.headers == headers)
        #expect(copy.headers.map(\.rawName) == [raw, nil])
        second.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func aLoneMessageDoesNotWaitForABatch() throws {
        let broker = try TestBroker(["in": 3])
        defer { broker.close() }
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        try consumer.join(3)
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("in"), value: [0])])
        _ = try consumer.collect(1)
        try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
        var records: [KafkaRecord] = []
        let elapsed = try time { records = try consumer.poll(maxRecords: 500, timeout: .seconds(60)) }
        #expect(records.map(\.value) == [[1]])
        #expect(elapsed < .seconds(30))
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func aPollReturnsNoMoreThanItWasAskedFor() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        let value = [UInt8](repeating: 1, count: 1000)
        try producer.deliver((0..<50).map { _ in Record(topic: broker.topic("in"), value: value) })
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        var sizes: [Int] = []
        var total = 0
        try wait(until: total >= 20) {
            let count = try consumer.poll(maxRecords: 7, timeout: .milliseconds(100)).count
            sizes.append(count)
            total += count
        }
        #expect(sizes.allSatisfy { $0 <= 7 })
        sizes = []
        consumer.maxBytes = 2500
        try wait(until: total >= 50) {
            let count = try consumer.poll(maxRecords: 500, timeout: .milliseconds(100)).count
            sizes.append(count)
            total += count
        }
        #expect(total == 50)
        #expect(sizes.allSatisfy { $0 <= 3 })
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    /// What has been fetched of one partition is not in the way of another.
    @Test func aPartitionDoesNotWaitForAnothersBacklog() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let topic = broker.topic("in")
        let producer = try broker.producer()
        try producer.deliver((0..<2000).map { _ in Record(topic: topic, value: [0], partition: 0) })
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        var backlog = try consumer.join(2).count
        try wait(until: backlog > 0) { backlog += try consumer.poll(maxRecords: 10, timeout: .milliseconds(100)).count }
        try producer.deliver((0..<20).map { _ in Record(topic: topic, value: [1], partition: 1) })
        var records: [KafkaRecord] = []
        var shared = (polls: 0, records: 0)
        try wait(until: records.count(where: { $0.topicPartition.partition == 1 }) == 20) {
            let polled = try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
            let others = polled.count { $0.topicPartition.partition == 1 }
            // Whoever has its turn may have all of it.
            if others > 0, others < polled.count { shared = (shared.polls + 1, shared.records + others) }
            records += polled
            Thread.sleep(forTimeInterval: 0.05)
        }
        // Half of each, and once what the backlog had no records for: the next of them may still be on their way.
        #expect(backlog + records.count < 1000 && shared.records <= 5 * shared.polls + 4)
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func onlySomePartitionsAreReadAndTheirEndsAreTold() throws {
        let broker = try TestBroker(["in": 3])
        defer { broker.close() }
        let producer = try broker.producer()
        try producer.deliver(
            (0..<60).map { Record(topic: broker.topic("in"), value: [UInt8($0)], partition: Int32($0 % 2)) })
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady, reportsEnds: true)
        var ends: Set<TopicPartition> = []
        // The one that is empty.
        try wait(until: ends.contains(broker.partition("in", 2))) {
            let none = try consumer.poll([broker.partition("in", 2)], upTo: 10)
            #expect(none.isEmpty)
            ends.formUnion(consumer.takeEnds())
            Thread.sleep(forTimeInterval: 0.01)
        }
        #expect(ends.count == 1, "nothing was read of the others")
        var records: [KafkaRecord] = []
        try wait(until: ends.contains(broker.partition("in", 1))) {
            let some = try consumer.poll([broker.partition("in", 1)], upTo: 10)
            #expect(some.count <= 10)
            records += some
            ends.formUnion(consumer.takeEnds())
            Thread.sleep(forTimeInterval: 0.01)
        }
        let values = records.compactMap { $0.value?.first }
        #expect(values == Array(stride(from: UInt8(1), to: 60, by: 2)))
        #expect(!ends.contains(broker.partition("in", 0)))
        let others = try consumer.collect(30)
        #expect(others.allSatisfy { $0.topicPartition.partition == 0 })
        // Told again, when there was more.
        _ = consumer.takeEnds()
        try producer.deliver([Record(topic: broker.topic("in"), value: [1], partition: 2)])
        try wait(until: consumer.takeEnds().contains(broker.partition("in", 2))) {
            _ = try consumer.poll([broker.partition("in", 2)], upTo: 10)
            Thread.sleep(forTimeInterval: 0.01)
        }
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func anEmptyPollLastsItsTimeout() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: TestBroker.steady)
        try consumer.join(1)
        var records: [KafkaRecord] = []
        let elapsed = try time { records = try consumer.poll(maxRecords: 10, timeout: .milliseconds(300)) }
        #expect(records.isEmpty)
        #expect(elapsed >= .milliseconds(290) && elapsed < .seconds(30))
        consumer.close(timeout: .seconds(20))
    }

    @Test func committedOffsetsAreWhereTheNextMemberStarts() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let producer = try broker.producer()
        let sent = (0..<20).map { Record(topic: zero.topic, value: [UInt8($0)], partition: Int32($0 % 2)) }
        try producer.deliver(sent)
        let handler = TestHandler()
        let first = try broker.consumer(["in"], handler: handler)
        _ = try first.collect(20)
        #expect(try first.committed([zero, one], timeout: .seconds(30)) == [:])
        #expect(first.commit([zero: 4], wait: true))
        #expect(first.commit([one: 9], wait: false))
        try wait(until: try first.committed([zero, one], timeout: .seconds(30)) == [zero: 4, one: 9]) {
            _ = try first.poll(maxRecords: 10, timeout: .milliseconds(20))
        }
        #expect(first.close(timeout: patience))
        #expect(handler.revoked.flatMap { $0 }.sorted() == [zero, one])

        let onlooker = TestHandler(otherwise: KafkaOffset.committed)
        let second = try broker.consumer(["in"], handler: onlooker)
        let records = try second.collect(7)
        #expect(records.filter { $0.topicPartition == zero }.map(\.offset) == [4, 5, 6, 7, 8, 9])
        #expect(records.filter { $0.topicPartition == one }.map(\.offset) == [9])
        second.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    @Test func theConsumerKnowsItsCluster() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        let admin = try KafkaAdmin(configuration: broker.configuration(), logger: broker.logs.logger)
        let id = try consumer.clusterID(timeout: .seconds(20))
        #expect(id != nil)
        #expect(try admin.clusterID(timeout: .seconds(20)) == id)
        admin.close(timeout: .seconds(5))
        consumer.close(timeout: .seconds(20))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func anUnknownTopicHindersNoOtherAndIsNotHiddenByIt() throws {
        let broker = try TestBroker(["in": 1, "gone": 1])
        defer { broker.close() }
        try broker.faults().setTopicError(broker.topic("gone"), code: KafkaError.Code.unknownTopicOrPartition)
        let handler = TestHandler()
        let consumer = try broker.consumer(["in", "gone"], handler: handler)
        try wait(until: consumer.lastError != nil && consumer.assignment.count == 1) {
            _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
        }
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
        #expect(try consumer.collect(1).count == 1)
        #expect(consumer.lastError?.code == KafkaError.Code.unknownTopicOrPartition)
        // It lasts, so it is worth a warning in the end.
        try wait(until: broker.warnings("UNKNOWN_TOPIC_OR_PART") == 1) {
            _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
        }
        #expect(consumer.lastError?.code == KafkaError.Code.unknownTopicOrPartition)
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    /// What a real broker says of a topic that was created a moment ago. Nothing is ever sent here.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aTopicThatIsUnknownForAMomentLeavesNoErrorAndNoWarning() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        try broker.faults().setTopicError(broker.topic("in"), code: KafkaError.Code.unknownTopicOrPartition)
        let handler = TestHandler()
        let consumer = try broker.consumer(
            ["in"], handler: handler, settings: ["topic.metadata.refresh.interval.ms": "500"])
        #expect(!consumer.isJoined)
        try wait(until: consumer.lastError?.code == KafkaError.Code.unknownTopicOrPartition) {
            _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(10))
        }
        try broker.faults().setTopicError(broker.topic("in"), code: 0)
        // The embedded broker lets every change of the group wait for nearly a session.
        let joining = try time { try consumer.join(1) }
        #expect(consumer.lastError == nil)
        #expect(consumer.isJoined)
        let end = ContinuousClock.now + ConsumerErrors.patience + .seconds(1)
        while ContinuousClock.now < end { _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(200)) }
        if joining < ConsumerErrors.patience - .seconds(1) { #expect(broker.warnings("UNKNOWN_TOPIC_OR_PART") == 0) }
        #expect(consumer.lastError == nil)
        consumer.close(timeout: .seconds(20))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func readingGoesOnAfterTheBrokerWasAway() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let faults = try broker.faults()
        let producer = try broker.producer()
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try producer.deliver([Record(topic: broker.topic("in"), value: [1])])
        var records = try consumer.collect(1)
        faults.setBroker(up: false)
        #expect(try consumer.poll(maxRecords: 10, timeout: .milliseconds(500)).isEmpty)
        faults.setBroker(up: true)
        try producer.deliver([Record(topic: broker.topic("in"), value: [2])])
        // Whether the partition was lost meanwhile depends on the session; a message may then come twice.
        try wait(until: records.contains { $0.value == [2] }) {
            records += try consumer.poll(maxRecords: 10, timeout: .milliseconds(100))
        }
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }
}
