// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Logging
import MessagingTestKit
import Testing

@testable import Messaging

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
        #expect(admin.close(timeout: patience))
    }

    @Test func boundsAreTheOldestAndTheNextOffset() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let producer = try broker.producer()
        try producer.deliver((0..<3).map { _ in Record(topic: one.topic, value: [1], partition: 1) })
        let admin = try admin(broker)
        let bounds = try admin.bounds(of: [zero, one, broker.partition("in", 77)], timeout: .seconds(20))
        #expect(bounds.count == 2)
        #expect(try #require(bounds[one]) == (0, 3))
        #expect(try #require(bounds[zero]) == (0, 0))
        #expect(try admin.bounds(of: [], timeout: .seconds(1)).isEmpty)
        admin.close(timeout: .seconds(5))
        producer.close(timeout: .seconds(5))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func boundsKeepTheirDeadlineAndGiveWhatTheyHave() throws {
        let broker = try TestBroker(["in": 2])
        defer { broker.close() }
        let (zero, one) = (broker.partition("in", 0), broker.partition("in", 1))
        let admin = try admin(broker)
        #expect(try admin.bounds(of: [zero, one], timeout: .seconds(20)).count == 2)
        try broker.faults().setLeader(zero, broker: nil)
        #expect(Set(try admin.bounds(of: [zero, one], timeout: .seconds(20)).keys) == [one])
        try broker.faults().setLeader(zero, broker: 1)
        try broker.faults().failNext(.listOffsets, with: [KafkaError.Code.unknownTopicOrPartition])
        #expect(try !admin.bounds(of: [zero, one], timeout: .seconds(20)).isEmpty)
        try broker.faults().setRoundTrip(.seconds(30))
        var bounds: [TopicPartition: (low: Int64, high: Int64)] = [zero: (0, 0)]
        let elapsed = try time { bounds = try admin.bounds(of: [zero, one], timeout: .seconds(1)) }
        #expect(bounds.isEmpty)
        #expect(elapsed < .seconds(20))
        try broker.faults().setRoundTrip(.zero)
        admin.close(timeout: .seconds(5))
    }

    /// Nothing is written for asking, on any broker.
    @Test func whatMayNotBeWrittenToIsTold() throws {
        let broker = try TestBroker(["in": 2, "out": 1])
        defer { broker.close() }
        let (readOnly, open) = (broker.topic("in"), broker.topic("out"))
        let admin = try admin(broker)
        defer { admin.close(timeout: .seconds(5)) }
        try admin.watch(topics: [readOnly, open])
        let before = try admin.deniedWrites(to: [readOnly, open], timeout: .seconds(20))
        #expect(before.denied.isEmpty && before.unanswered.isEmpty)
        if TestBroker.isEmbedded {
            try broker.faults().deny(.write, on: readOnly)
            let denied = try admin.deniedWrites(to: [readOnly, open], timeout: .seconds(20)).denied
            #expect(denied.mapValues(\.code) == [readOnly: KafkaError.Code.topicAuthorizationFailed])
            try broker.faults().allow(.write, on: readOnly)
            // A client that was refused passes its messages on again when it has looked at the topic.
            try wait(until: try admin.deniedWrites(to: [readOnly], timeout: .seconds(20)).denied.isEmpty) {
                _ = try admin.topicStates(timeout: .seconds(5))
            }
        }
        let bounds = try admin.bounds(
            of: [broker.partition("in", 0), broker.partition("out", 0)], timeout: .seconds(20))
        #expect(bounds.count == 2 && bounds.values.allSatisfy { $0 == (0, 0) })
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func whoDoesNotAnswerInTimeIsNotSaidToDeny() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let admin = try admin(broker)
        defer { admin.close(timeout: .seconds(5)) }
        try admin.watch(topics: [broker.topic("in")])
        _ = try admin.topicStates(timeout: .seconds(20))
        try broker.faults().setBroker(up: false)
        let topic = broker.topic("in")
        let found = try admin.deniedWrites(to: [topic], timeout: .milliseconds(300))
        #expect(found.denied.isEmpty && found.unanswered == [topic])
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
        #expect(broker.warnings("topic is not as it should be") == 0)
        let other = try self.admin(broker)
        for _ in 0..<2 {
            try other.ensureTopics([TopicSpec(name: broker.topic("a"), partitions: 5)], timeout: .seconds(30))
        }
        #expect(broker.warnings("it has 3 partitions instead of 5") == 1)
        other.close(timeout: .seconds(10))
        #expect(try admin.existingTopics(timeout: .seconds(30))[broker.topic("a")] == 3)
        admin.close(timeout: .seconds(10))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "the embedded broker cannot create topics"))
    func theMissingTopicsAreNamedWhenTheyCannotBeCreated() throws {
        let broker = try TestBroker(["a": 1])
        defer { broker.close() }
        let admin = try admin(broker)
        let specs = ["a", "b", "c"].map { TopicSpec(name: broker.topic($0), partitions: 1) }
        var error: KafkaError?
        let elapsed = time {
            error = #expect(throws: KafkaError.self) { try admin.ensureTopics(specs, timeout: .seconds(90)) }
        }
        #expect(elapsed < .seconds(45))
        #expect(error?.message.contains("missing and not created") == true)
        #expect(error?.message.contains("\(broker.topic("b")), \(broker.topic("c"))") == true)
        #expect(error?.message.contains(broker.topic("a")) == false)
        #expect(error?.disposition == .refused)
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

    /// Every partition can be used when it returns, whoever created the topic.
    @Test(.enabled(if: !TestBroker.isEmbedded, "needs KAFKA_BOOTSTRAP_SERVERS: the embedded broker has no admin API"))
    func createdTopicsCanBeUsedAtOnce() throws {
        let broker = try TestBroker([:])
        let admin = try admin(broker)
        for round in 0..<4 {
            let names = (0..<3).map { broker.topic("made-\(round)-\($0)") }
            try admin.ensureTopics(names.map { TopicSpec(name: $0, partitions: 6) }, timeout: .seconds(30))
            try admin.watch(topics: names)
            let states = try admin.topicStates(timeout: .seconds(10))
            #expect(states.values.allSatisfy { $0.isUsable && $0.partitions == 6 }, "\(states)")
        }
        #expect(broker.warnings("topic is") == 0)
        admin.close(timeout: .seconds(10))
    }

    /// With three brokers two replicas must have a message before it counts; with one it would be lost for ever.
    @Test(.enabled(if: !TestBroker.isEmbedded, "needs KAFKA_BOOTSTRAP_SERVERS: the embedded broker has no admin API"))
    func topicsWithThreeReplicasNeedTwoInSync() throws {
        let broker = try TestBroker([:])
        let admin = try admin(broker)
        let query = ConfigQuery(client: admin.handle.pointer, timeout: .seconds(10))
        let metadata = try MetadataQuery(client: admin.handle.pointer).ask(allTopics: true, timeout: .seconds(10))
        let byDefault = try query.broker(try #require(metadata.brokers.first))["default.replication.factor"]
        var specs = [
            TopicSpec(name: broker.topic("default"), partitions: 1),
            TopicSpec(name: broker.topic("one"), partitions: 1, replicationFactor: 1),
        ]
        if metadata.brokers.count >= 3 {
            specs += [
                TopicSpec(name: broker.topic("three"), partitions: 1, replicationFactor: 3),
                TopicSpec(
                    name: broker.topic("chosen"), partitions: 1, replicationFactor: 3,
                    config: ["min.insync.replicas": "1"]),
            ]
        }
        try admin.ensureTopics(specs, timeout: .seconds(30))
        let settings = try query.topics(specs.map(\.name)).settings.mapValues { $0["min.insync.replicas"] }
        let two = metadata.brokers.count >= 3 && Int(byDefault ?? "") ?? 1 >= 3
        #expect(settings[broker.topic("default")] == (two ? "2" : "1"))
        #expect(settings[broker.topic("one")] == "1")
        if metadata.brokers.count >= 3 {
            #expect(settings[broker.topic("three")] == "2")
            #expect(settings[broker.topic("chosen")] == "1")
        }
        admin.close(timeout: .seconds(10))
    }

    @Test(.enabled(if: !TestBroker.isEmbedded, "needs KAFKA_BOOTSTRAP_SERVERS: the embedded broker has no admin API"))
    func settingsThatPromiseLessAreReportedOnce() throws {
        let broker = try TestBroker([:])
        let admin = try admin(broker)
        let name = broker.topic("poor")
        let poor = [
            "retention.ms": "60000", "max.message.bytes": "1000000", "cleanup.policy": "compact,delete",
            "message.timestamp.type": "CreateTime",
        ]
        try admin.ensureTopics([TopicSpec(name: name, partitions: 1, config: poor)], timeout: .seconds(30))
        #expect(broker.warnings("topic is") == 0)
        let wanted = TopicSpec(
            name: name, partitions: 1,
            config: [
                "retention.ms": "-1", "max.message.bytes": "2000000", "message.timestamp.type": "LogAppendTime",
            ])
        let second = try self.admin(broker)
        try second.ensureTopics([wanted], timeout: .seconds(30))
        try second.ensureTopics([wanted], timeout: .seconds(30))
        #expect(
            broker.warnings(
                "retention.ms is 60000 and should be -1, max.message.bytes is 1000000 and should be 2000000 or more, ")
                == 1)
        #expect(broker.warnings("cleanup.policy is compact,delete and should be delete") == 1)
        #expect(broker.warnings("message.timestamp.type is CreateTime and should be LogAppendTime") == 1)
        admin.close(timeout: .seconds(10))
        second.close(timeout: .seconds(10))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func theStatesOfTheWatchedTopicsAreTold() throws {
        let broker = try TestBroker(["a": 3, "b": 1, "c": 1])
        defer { broker.close() }
        let admin = try admin(broker)
        #expect(try admin.topicStates(timeout: .seconds(20)).isEmpty)
        let (a, b) = (broker.topic("a"), broker.topic("b"))
        try admin.watch(topics: [a, b, a])
        try broker.faults().setLeader(TopicPartition(topic: a, partition: 1), broker: nil)
        try broker.faults().setTopicError(b, code: KafkaError.Code.topicAuthorizationFailed)
        let states = try admin.topicStates(timeout: .seconds(20))
        #expect(states.count == 2)
        #expect(states[a] == TopicState(partitions: 3, leaderless: [1], replicas: 1))
        #expect(states[a]?.isUsable == false && states[a]?.exists == true)
        #expect(states[b]?.error?.code == KafkaError.Code.topicAuthorizationFailed)
        // The broker may be too slow for the last look, which is an error of its own.
        var message = ""
        try wait(until: message.contains("without a leader")) {
            let error = #expect(throws: KafkaError.self) {
                try admin.ensureTopics([TopicSpec(name: a, partitions: 3)], timeout: .seconds(1))
            }
            message = error?.message ?? ""
        }
        #expect(message.contains(a))
        try broker.faults().setLeader(TopicPartition(topic: a, partition: 1), broker: 1)
        try admin.ensureTopics([TopicSpec(name: a, partitions: 3)], timeout: .seconds(20))
        try admin.watch(topics: [a])
        #expect(try admin.topicStates(timeout: .seconds(20)).mapValues(\.isUsable) == [a: true])
        try broker.faults().setBroker(up: false)
        #expect(throws: KafkaError.self) { try admin.topicStates(timeout: .seconds(1)) }
        admin.close(timeout: .seconds(10))
    }

    @Test func topicsThatCannotBeAreRefusedByName() throws {
        let broker = try TestBroker([:])
        defer { broker.close() }
        let admin = try admin(broker)
        let error = #expect(throws: KafkaError.self) {
            try admin.ensureTopics([TopicSpec(name: broker.topic("bad"), partitions: 0)], timeout: .seconds(30))
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
        #expect(admin.close(timeout: patience))
        #expect(throws: KafkaError.self) { try admin.existingTopics(timeout: .milliseconds(300)) }
    }
}
