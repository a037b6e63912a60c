// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import MessagingTestKit
import Testing

@Suite(.dedicatedThread) struct EmbeddedBrokerTests {
    @Test func aTopicIsCreatedOnce() throws {
        let broker = try EmbeddedBroker(topics: [TopicSpec(name: "a", partitions: 2)])
        defer { broker.close() }
        try broker.createTopic(TopicSpec(name: "b", partitions: 1))
        let error = #expect(throws: KafkaError.self) { try broker.createTopic(TopicSpec(name: "a", partitions: 2)) }
        #expect(error?.code == KafkaError.Code.topicAlreadyExists)
    }

    @Test func theAddressIsOnTheLoopbackInterface() throws {
        let broker = try EmbeddedBroker()
        #expect(broker.bootstrapServers.hasPrefix("127.0.0.1:"))
        broker.close()
        broker.close()
        #expect(throws: KafkaError.self) { try broker.createTopic(TopicSpec(name: "a", partitions: 1)) }
        broker.failNext(.produce, with: [KafkaError.Code.notLeader])
        broker.setBroker(up: false)
    }

    @Test func aPartitionMovesBetweenBrokersAndBackFromNone() throws {
        let broker = try EmbeddedBroker(topics: [TopicSpec(name: "a", partitions: 1)], brokers: 2)
        defer { broker.close() }
        let configuration = KafkaConfiguration(bootstrapServers: broker.bootstrapServers)
        let producer = try KafkaProducer(configuration: configuration, logger: LogRecorder().logger)
        let partition = TopicPartition(topic: "a", partition: 0)
        try producer.deliver([Record(topic: "a", value: [1])])
        for leader: Int32 in [2, 1] {
            broker.setLeader(partition, broker: nil)
            try producer.send(Record(topic: "a", value: [2]), token: 7)
            #expect(producer.poll(timeout: .milliseconds(200)).isEmpty)
            broker.setLeader(partition, broker: leader)
            let reports = producer.flush(timeout: patience)
            #expect(reports.map(\.token) == [7])
            #expect(reports.first?.error == nil)
        }
        producer.close(timeout: .seconds(5))
    }

    /// As with `message.timestamp.type=LogAppendTime`: what producers say of the time does not count, to whoever reads.
    @Test(arguments: ["false", "true"]) func theBrokerDatesSomeTopics(_ checksSums: String) throws {
        let broker = try EmbeddedBroker(
            topics: ["a", "b"].map { TopicSpec(name: $0, partitions: 1) }, dating: { $0 == "a" })
        defer { broker.close() }
        let configuration = KafkaConfiguration(
            bootstrapServers: broker.bootstrapServers, consumer: ["check.crcs": checksSums])
        let producer = try KafkaProducer(configuration: configuration, logger: LogRecorder().logger)
        let (start, future) = (Timestamp.now.milliseconds, Timestamp.now.milliseconds + 3_600_000)
        let times = [future, 1, future]
        for topic in ["a", "b"] {
            try producer.deliver(times.map { Record(topic: topic, value: [7], partition: 0, timestampMs: $0) })
        }
        producer.close(timeout: .seconds(5))
        for _ in 0..<2 {
            // From what the relay keeps, and from the broker itself.
            let tail = try KafkaTail(
                configuration: configuration, partitions: ["a": 1, "b": 1], from: .beginning,
                logger: LogRecorder().logger)
            defer { tail.close() }
            var found: [KafkaRecord] = []
            try wait(until: found.count == 6) { found += tail.poll(maxRecords: 10, timeout: .milliseconds(50)) }
            let (dated, others) = (
                found.filter { $0.topicPartition.topic == "a" }, found.filter { $0.topicPartition.topic == "b" }
            )
            #expect(others.map(\.timestampMs) == times && others.allSatisfy { $0.clock == .producer })
            #expect(dated.allSatisfy { $0.clock == .broker && $0.value == [7] })
            #expect(dated.allSatisfy { (start...Timestamp.now.milliseconds).contains($0.timestampMs) })
            broker.setBroker(up: true)
        }
    }

    /// ```
    /// a[0]: stuck ......................... delivered
    /// a[1]: delivered   delivered
    /// ```
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func onePartitionCanBeStuck() throws {
        let broker = try TestBroker(["a": 2])
        defer { broker.close() }
        let producer = try broker.producer()
        let records = (0..<2).map { Record(topic: broker.topic("a"), value: [1], partition: $0) }
        try producer.deliver(records)
        try broker.faults().setLeader(broker.partition("a", 0), broker: nil)
        var reports: [DeliveryReport] = []
        for round in 0..<3 {
            for record in records { try producer.send(record, token: round * 2 + Int(record.partition ?? 0)) }
            try wait(until: reports.count == round + 1) { reports += producer.poll(timeout: .milliseconds(50)) }
        }
        #expect(reports.map(\.token) == [1, 3, 5])
        #expect(producer.outstanding == 3)
        try broker.faults().setLeader(broker.partition("a", 0), broker: 1)
        try wait(until: reports.count == 6) { reports += producer.poll(timeout: .milliseconds(50)) }
        #expect(reports.suffix(3).map(\.token) == [0, 2, 4])
        #expect(reports.compactMap(\.error).isEmpty)
        producer.close(timeout: .seconds(5))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func oneTopicCanRefuseForAWhile() throws {
        let broker = try TestBroker(["a": 2, "b": 1])
        defer { broker.close() }
        let producer = try broker.producer(["topic.metadata.refresh.interval.ms": "300"])
        let (a, b) = (broker.topic("a"), broker.topic("b"))
        /// Sends one message; what became of it.
        func outcome(_ topic: String) throws -> KafkaError? {
            do throws(KafkaError) {
                try producer.send(Record(topic: topic, key: [1], value: [1]), token: 1)
            } catch {
                return error
            }
            var reports: [DeliveryReport] = []
            try wait(until: !reports.isEmpty) { reports += producer.poll(timeout: .milliseconds(50)) }
            return reports[0].error
        }
        #expect(try outcome(a) == nil)
        try broker.faults().hide(a)
        // The client believes in a topic that has gone until it asks again.
        try wait(until: try outcome(a)?.disposition == .refused) {}
        for _ in 0..<3 {
            #expect(try outcome(a)?.disposition == .refused)
            #expect(try outcome(b) == nil)
        }
        try broker.faults().show(a)
        try wait(until: try outcome(a) == nil) {}
        try broker.faults().failNext(.produce, with: [KafkaError.Code.topicAuthorizationFailed])
        #expect(try outcome(a)?.code == KafkaError.Code.topicAuthorizationFailed)
        #expect(try outcome(b) == nil)
        try wait(until: try outcome(a) == nil) {}
        producer.close(timeout: .seconds(5))
    }
}
