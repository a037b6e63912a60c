// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Logging
import Messaging
import Testing

@Suite(.dedicatedThread) struct KafkaAdminTests {
    private func admin(_ broker: TestBroker) throws -> KafkaAdmin {
        try KafkaAdmin(configuration: broker.configuration(), logger: broker.logs.logger)
    }

    @Test func existingTopicsAreListedAndNoneIsMadeUp() throws {
        let broker = try TestBroker(["a": 3, "b": 1])
        defer { broker.close() }
        let admin = try admin(broker)
        let topics = try admin.existingTopics(timeout: .seconds(30))
        #expect(topics[broker.topic("a")] == 3)
        #expect(topics[broker.topic("b")] == 1)
        #expect(topics[broker.topic("c")] == nil)
        #expect(try admin.existingTopics(timeout: .seconds(30))[broker.topic("c")] == nil)
        #expect(admin.close(timeout: .seconds(10)))
    }

    @Test func theClusterHasAnId() throws {
        let broker = try TestBroker([:])
        defer { broker.close() }
        let admin = try admin(broker)
        let id = try admin.clusterID(timeout: .seconds(30))
        #expect(id?.isEmpty == false)
        #expect(try admin.clusterID(timeout: .seconds(30)) == id)
        admin.close(timeout: .seconds(10))
    }

    @Test func nothingIsAskedForWhenAllTopicsExist() throws {
        let broker = try TestBroker(["a": 3])
        defer { broker.close() }
        let admin = try admin(broker)
        try admin.ensureTopics([TopicSpec(name: broker.topic("a"), partitions: 3)], timeout: .seconds(30))
        #expect(!broker.logs.lines.contains { $0.level == .warning && $0.text.contains("partitions instead") })
        try admin.ensureTopics([TopicSpec(name: broker.topic("a"), partitions: 5)], timeout: .seconds(30))
        #expect(broker.logs.lines.contains { $0.text == "Topic has 3 partitions instead of 5" })
        #expect(try admin.existingTopics(timeout: .seconds(30))[broker.topic("a")] == 3)
        admin.close(timeout: .seconds(10))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "the embedded broker cannot create topics"))
    func theMissingTopicsAreNamedWhenTheyCannotBeCreated() throws {
        let broker = try TestBroker(["a": 1])
        defer { broker.close() }
        let admin = try admin(broker)
        let specs = ["a", "b", "c"].map { TopicSpec(name: broker.topic($0), partitions: 1) }
        let error = #expect(throws: KafkaError.self) { try admin.ensureTopics(specs, timeout: .seconds(1)) }
        #expect(error?.message.contains("missing and not created") == true)
        #expect(error?.message.contains("\(broker.topic("b")), \(broker.topic("c"))") == true)
        #expect(error?.message.contains(broker.topic("a")) == false)
        #expect(error?.disposition == .failed)
        admin.close(timeout: .seconds(10))
    }

    @Test(.enabled(if: !TestBroker.isEmbedded, "needs KAFKA_BOOTSTRAP_SERVERS: the embedded broker has no admin API"))
    func missingTopicsAreCreatedOnce() throws {
        let broker = try TestBroker(["a": 1])
        let (first, second) = (try admin(broker), try admin(broker))
        let specs = ["a", "b"].map {
            TopicSpec(name: broker.topic($0), partitions: 2, config: ["retention.ms": "60000"])
        }
        try first.ensureTopics(specs, timeout: .seconds(30))
        try second.ensureTopics(specs, timeout: .seconds(30))
        let topics = try second.existingTopics(timeout: .seconds(30))
        #expect(topics[broker.topic("a")] == 1)
        #expect(topics[broker.topic("b")] == 2)
        first.close(timeout: .seconds(10))
        second.close(timeout: .seconds(10))
    }

    @Test func topicsThatCannotBeAreRefusedByName() throws {
        let broker = try TestBroker([:])
        defer { broker.close() }
        let admin = try admin(broker)
        let error = #expect(throws: KafkaError.self) {
            try admin.ensureTopics([TopicSpec(name: broker.topic("bad"), partitions: 0)], timeout: .seconds(5))
        }
        #expect(error?.message.contains(broker.topic("bad")) == true)
        admin.close(timeout: .seconds(10))
    }

    @Test func anUnreachableClusterIsAnErrorToBeRetried() throws {
        let configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1")
        let admin = try KafkaAdmin(configuration: configuration, logger: LogRecorder().logger)
        let error = #expect(throws: KafkaError.self) { try admin.existingTopics(timeout: .milliseconds(300)) }
        #expect(error?.disposition == .failed)
        #expect(try admin.clusterID(timeout: .milliseconds(100)) == nil)
        #expect(admin.close(timeout: .seconds(10)))
        #expect(throws: KafkaError.self) { try admin.existingTopics(timeout: .milliseconds(300)) }
    }
}
