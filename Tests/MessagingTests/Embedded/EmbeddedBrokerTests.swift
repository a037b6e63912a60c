// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging
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
        try producer.deliver([ProducerRecord(topic: "a", value: [1])])
        for leader: Int32 in [2, 1] {
            broker.setLeader(partition, broker: nil)
            try producer.send(ProducerRecord(topic: "a", value: [2]), token: 7)
            #expect(producer.poll(timeout: .milliseconds(200)).isEmpty)
            broker.setLeader(partition, broker: leader)
            let reports = producer.flush(timeout: patience)
            #expect(reports.map(\.token) == [7])
            #expect(reports.first?.error == nil)
        }
        producer.close(timeout: .seconds(5))
    }
}
