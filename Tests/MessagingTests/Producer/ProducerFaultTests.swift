// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import MessagingTestKit
import Testing

@Suite(.dedicatedThread, .enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
struct ProducerFaultTests {
    @Test func transientErrorsEndInDelivery() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let passing = [
            KafkaError.Code.notLeader, KafkaError.Code.requestTimedOut, KafkaError.Code.notEnoughReplicas,
            KafkaError.Code.leaderNotAvailable,
        ]
        try broker.faults().failNext(.produce, with: passing)
        let producer = try broker.producer()
        let reports = try producer.deliver((0..<10).map { Record(topic: broker.topic("out"), value: [$0]) })
        #expect(reports.allSatisfy { $0.error == nil })
        #expect(reports.map(\.token) == Array(0..<10))
        producer.close(timeout: .seconds(5))
    }

    /// ```
    /// producer -- 0 --------> broker: refused
    ///          -- 1, 2 ... -> broker: appended, because it does not know this producer's numbers
    /// ```
    /// librdkafka then concludes that 0 was appended too. Nobody has it. Apache Kafka does the same to a producer that is
    /// new to the partition.
    @Test(arguments: [KafkaError.Code.requestTimedOut, KafkaError.Code.notEnoughReplicas])
    func whatNoBrokerAcknowledgedIsNotDelivered(code: Int32) throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer(["max.in.flight.requests.per.connection": "5", "batch.num.messages": "1"])
        let topic = broker.topic("out")
        try producer.deliver([Record(topic: topic, value: [99])])
        // Every message is a request, and more of them are on their way before the first answer comes.
        try broker.faults().setRoundTrip(.milliseconds(500))
        try broker.faults().failNext(.produce, with: [code])
        try producer.send(Record(topic: topic, value: [0]), token: 0)
        for token in 1..<20 {
            try producer.send(Record(topic: topic, value: [UInt8(token)]), token: token)
        }
        var reports: [DeliveryReport] = []
        try wait(until: reports.count == 20) { reports += producer.poll(timeout: .milliseconds(50)) }
        try broker.faults().setRoundTrip(.zero)
        // Whoever comes last proves that the log was read to its end.
        let last = try broker.producer()
        try last.deliver([Record(topic: topic, value: [100])])
        let tail = try KafkaTail(
            configuration: broker.configuration(), partitions: [topic: 1], from: .beginning, logger: broker.logs.logger)
        var values: Set<Int> = []
        try wait(until: values.contains(100)) {
            let records = tail.poll(maxRecords: 100, timeout: .milliseconds(100))
            values.formUnion(records.compactMap { $0.value?.first.map { Int($0) } })
        }
        #expect(reports.filter { $0.error == nil }.allSatisfy { values.contains($0.token) })
        #expect(reports.allSatisfy { $0.error == nil || $0.error?.disposition == .failed })
        // The fault did arise.
        #expect(reports.first { $0.token == 0 }?.error != nil)
        tail.close()
        last.close(timeout: .seconds(5))
        producer.close(timeout: .seconds(5))
    }

    @Test func aMessageThatTheBrokerFindsTooLargeDoesNotBlockTheNext() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("out"), value: [0])])
        try broker.faults().failNext(.produce, with: [KafkaError.Code.messageTooLarge])
        let bad = try producer.deliver([Record(topic: broker.topic("out"), value: [1])])
        #expect(bad.first?.error?.disposition == .unacceptable)
        #expect(bad.first?.error?.name == "MSG_SIZE_TOO_LARGE")
        #expect(bad.first?.topicPartition.topic == broker.topic("out"))
        let good = try producer.deliver((0..<5).map { Record(topic: broker.topic("out"), value: [$0]) })
        #expect(good.allSatisfy { $0.error == nil })
        #expect(producer.fatalError == nil)
        producer.close(timeout: .seconds(5))
    }

    /// ```
    /// shared: request 1 (0...4) refused: all five fail       single: request 1 (0) refused, 2...5 accepted
    /// ```
    @Test func aMessageCanBeTriedAlone() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        func outcome(_ batching: KafkaProducer.Batching) throws -> [Bool] {
            let producer = try KafkaProducer(
                configuration: broker.configuration(producer: ["linger.ms": "2000"]), logger: broker.logs.logger,
                batching: batching)
            try producer.deliver([Record(topic: broker.topic("out"), value: [9])])
            try broker.faults().failNext(.produce, with: [KafkaError.Code.messageTooLarge])
            let reports = try producer.deliver(
                (0..<5).map { Record(topic: broker.topic("out"), value: [$0]) })
            producer.close(timeout: .seconds(5))
            return reports.sorted { $0.token < $1.token }.map { $0.error == nil }
        }
        #expect(try outcome(.shared) == [false, false, false, false, false])
        #expect(try outcome(.single) == [false, true, true, true, true])
    }

    @Test func anUnknownTopicRefusesAndHindersNoOther() throws {
        let broker = try TestBroker(["out": 1, "gone": 1])
        defer { broker.close() }
        try broker.faults().setTopicError(broker.topic("gone"), code: KafkaError.Code.unknownTopicOrPartition)
        let producer = try broker.producer(["topic.metadata.propagation.max.ms": "500"])
        let reports = try producer.deliver(
            ["gone", "out"].map { Record(topic: broker.topic($0), value: [1]) })
        let errors = Dictionary(uniqueKeysWithValues: reports.map { ($0.token, $0.error) })
        #expect(errors[0]??.disposition == .refused)
        #expect(errors[1] == .some(nil))
        producer.close(timeout: .seconds(5))
    }

    @Test func aBrokerThatComesBackGetsWhatWasSentMeanwhile() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let faults = try broker.faults()
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("out"), value: [0])])
        faults.setBroker(up: false)
        for token in 0..<5 { try producer.send(Record(topic: broker.topic("out"), value: [1]), token: token) }
        #expect(producer.poll(timeout: .milliseconds(300)).isEmpty)
        faults.setBroker(up: true)
        var reports: [DeliveryReport] = []
        try wait(until: reports.count == 5) { reports += producer.poll(timeout: .milliseconds(100)) }
        #expect(reports.allSatisfy { $0.error == nil })
        producer.close(timeout: .seconds(5))
    }

    @Test func aFullQueueHoldsTheSenderBackUntilThereIsRoom() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        try broker.faults().setRoundTrip(.milliseconds(20))
        let producer = try broker.producer(["queue.buffering.max.messages": "10"])
        for token in 0..<100 { try producer.send(Record(topic: broker.topic("out"), value: [1]), token: token) }
        // The reports that made room were kept for the next poll.
        #expect(producer.outstanding == 100)
        var reports = producer.poll(timeout: .zero)
        #expect(reports.count >= 90)
        try wait(until: reports.count == 100) { reports += producer.poll(timeout: .milliseconds(100)) }
        #expect(reports.map(\.token) == Array(0..<100))
        #expect(reports.allSatisfy { $0.error == nil })
        producer.close(timeout: .seconds(5))
    }

    @Test func aQueueThatStaysFullIsAnErrorToBeRetried() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        try broker.faults().setBroker(up: false)
        let producer = try broker.producer(
            ["queue.buffering.max.messages": "10"], maximumBlock: .milliseconds(300))
        for token in 0..<10 { try producer.send(Record(topic: broker.topic("out"), value: [1]), token: token) }
        var error: KafkaError?
        let elapsed = time {
            error = #expect(throws: KafkaError.self) {
                try producer.send(Record(topic: broker.topic("out"), value: [1]), token: 10)
            }
        }
        #expect(error?.code == KafkaError.Code.queueFull)
        #expect(error?.disposition == .retry)
        #expect(elapsed >= .milliseconds(290) && elapsed < .seconds(20))
        #expect(producer.outstanding == 10)
        producer.close(timeout: .zero)
    }

    @Test func closingKeepsItsDeadlineAndReportsWhatWasGivenUp() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        try producer.deliver([Record(topic: broker.topic("out"), value: [0])])
        try broker.faults().setBroker(up: false)
        for token in 0..<5 { try producer.send(Record(topic: broker.topic("out"), value: [1]), token: token) }
        #expect(producer.flush(timeout: .milliseconds(200)).isEmpty)
        #expect(producer.outstanding == 5)
        var reports: [DeliveryReport] = []
        let elapsed = time { reports = producer.close(timeout: .milliseconds(500)) }
        #expect(elapsed < .seconds(20))
        #expect(reports.map(\.token).sorted() == Array(0..<5))
        let purged = [KafkaError.Code.purgedFromQueue, KafkaError.Code.purgedInFlight]
        #expect(reports.allSatisfy { $0.error.map { purged.contains($0.code) } ?? false })
        #expect(producer.outstanding == 0)
    }
}
