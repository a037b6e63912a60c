// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
import Contracts
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct KafkaProducerTests {
    @Test func everyMessageHasOneReportAndPartitionsKeepTheirOrder() throws {
        let broker = try TestBroker(["out": 4])
        defer { broker.close() }
        let producer = try broker.producer()
        let count = 2000
        for token in 0..<count {
            try producer.send(
                Record(topic: broker.topic("out"), key: Array("\(token % 37)".utf8), value: [1]), token: token)
        }
        #expect(producer.outstanding == count)
        var reports: [DeliveryReport] = []
        try wait(until: reports.count == count) { reports += producer.poll(timeout: .milliseconds(100)) }
        #expect(producer.outstanding == 0)
        #expect(Set(reports.map(\.token)) == Set(0..<count))
        for ofPartition in Dictionary(grouping: reports, by: \.topicPartition).values {
            #expect(ofPartition.map(\.token) == ofPartition.map(\.token).sorted())
            #expect(ofPartition.map(\.offset) == Array(0..<Int64(ofPartition.count)))
        }
        #expect(producer.close(timeout: .seconds(5)).isEmpty)
    }

    @Test func theSameKeyGoesToThePartitionThatJavasClientsChoose() throws {
        let broker = try TestBroker(["out": 12])
        defer { broker.close() }
        let producer = try broker.producer()
        let reports = try producer.deliver(
            ["21", "foobar", "a-little-bit-long-string"].map {
                Record(topic: broker.topic("out"), key: Array($0.utf8), value: [1])
            })
        // murmur2 & 0x7fffffff, modulo 12, of the values in Kafka's own UtilsTest.
        let hashes: [Int32] = [-973_932_308, -790_332_482, -985_981_536]
        let byToken = Dictionary(uniqueKeysWithValues: reports.map { ($0.token, $0.topicPartition.partition) })
        #expect(byToken == [0: 0, 1: 1, 2: 2].mapValues { (hashes[$0] & 0x7fff_ffff) % 12 })
        producer.close(timeout: .seconds(5))
    }

    @Test func thePartitionOfAKeyIsKnownWithoutABroker() {
        let configuration = KafkaConfiguration(bootstrapServers: "nowhere:1")
        // The values in Kafka's own UtilsTest.
        let hashes: [String: Int32] = [
            "21": -973_932_308, "foobar": -790_332_482, "a-little-bit-long-string": -985_981_536,
            "a-little-bit-longer-string": -1_486_304_829,
            "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58_897_971, "abc": 479_470_107,
        ]
        for (key, hash) in hashes {
            for count in [1, 2, 12, 1000] {
                let partition = configuration.partition(of: Array(key.utf8), among: count)
                #expect(partition == (hash & 0x7fff_ffff) % Int32(count), "\(key)")
            }
            #expect(configuration.partition(of: Array(key.utf8), among: 0) == nil)
        }
    }

    @Test func producersChooseThePartitionThatIsToldOfAKey() throws {
        let broker = try TestBroker(["out": 7])
        defer { broker.close() }
        let producer = try broker.producer()
        let keys = [""] + (0..<50).map { "key-\($0)" }
        let reports = try producer.deliver(
            keys.map { Record(topic: broker.topic("out"), key: Array($0.utf8), value: [1]) })
        for report in reports {
            let told = broker.configuration().partition(of: Array(keys[report.token].utf8), among: 7)
            #expect(told == report.topicPartition.partition)
        }
        producer.close(timeout: .seconds(5))
    }

    @Test(arguments: [
        ("murmur2", true), ("murmur2_random", true), ("consistent_random", false), ("random", false),
    ]) func anotherPartitionerIsNotGuessed(_ name: String, _ isKnown: Bool) {
        let settings = ["partitioner": name]
        let own = KafkaConfiguration(bootstrapServers: "nowhere:1", producer: settings)
        let common = KafkaConfiguration(bootstrapServers: "nowhere:1", common: settings)
        #expect((own.partition(of: [1], among: 3) != nil) == isKnown)
        #expect((common.partition(of: [1], among: 3) != nil) == isKnown)
    }

    @Test func tokensOfEverySizeComeBack() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        let tokens = [0, 1, -1, Int.max, Int.min]
        for token in tokens {
            try producer.send(Record(topic: broker.topic("out"), value: nil), token: token)
        }
        #expect(producer.flush(timeout: patience).map(\.token) == tokens)
        producer.close(timeout: .seconds(5))
    }

    @Test func aFixedPartitionIsKept() throws {
        let broker = try TestBroker(["out": 3])
        defer { broker.close() }
        let producer = try broker.producer()
        let reports = try producer.deliver(
            [Record(topic: broker.topic("out"), key: [1], value: [1], partition: 2)])
        #expect(reports.first?.topicPartition == broker.partition("out", 2))
        producer.close(timeout: .seconds(5))
    }

    @Test func aMessageTooLargeForThisClientIsRefusedForGood() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        #expect(producer.messageMaxBytes == 4_000_000)
        let huge = Record(
            topic: broker.topic("out"), value: [UInt8](repeating: 0, count: 4_100_000),
            headers: [Header("h", [1])])
        let error = #expect(throws: KafkaError.self) { try producer.send(huge, token: 1) }
        #expect(error?.code == KafkaError.Code.messageTooLarge)
        #expect(error?.disposition == .unacceptable)
        #expect(producer.outstanding == 0)
        try producer.deliver([Record(topic: broker.topic("out"), value: [1])])
        producer.close(timeout: .seconds(5))
    }

    @Test func aMessageThatWasNotTakenHasNoReport() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        #expect(throws: KafkaError.self) {
            try producer.send(
                Record(topic: String(repeating: "x", count: 600), value: [1]), token: 1)
        }
        #expect(producer.outstanding == 0)
        try producer.deliver([Record(topic: broker.topic("out"), value: [1])])
        producer.close(timeout: .seconds(5))
    }

    @Test func afterClosingNothingIsTaken() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer()
        producer.close(timeout: .seconds(5))
        #expect(producer.close(timeout: .seconds(5)).isEmpty)
        #expect(producer.poll(timeout: .zero).isEmpty && producer.flush(timeout: .zero).isEmpty)
        let error = #expect(throws: KafkaError.self) {
            try producer.send(Record(topic: broker.topic("out"), value: [1]), token: 1)
        }
        #expect(error?.code == KafkaError.Code.wrongState)
    }

    @Test func reportsKeepTheirTopicsWhenThereAreMoreTopicsThanHandles() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let collector = DeliveryCollector()
        let producer = try broker.producer()
        let topics = TopicHandles(client: producer.handle.pointer, collector: collector)
        for number in 0..<TopicHandles.limit { _ = try topics.handle(for: "\(broker.topic("out"))-\(number)") }
        #expect(topics.isFull)
        topics.removeAll()
        #expect(!topics.isFull && collector.names.isEmpty)
        let one = try topics.handle(for: broker.topic("out"))
        #expect(try topics.handle(for: broker.topic("out")) == one)
        topics.removeAll()
        producer.close(timeout: .seconds(5))
    }

    @Test func aFatalErrorGivesEverythingBack() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let producer = try broker.producer(["linger.ms": "60000"])
        for token in 0..<3 { try producer.send(Record(topic: broker.topic("out"), value: [1]), token: token) }
        rd_kafka_test_fatal_error(producer.handle.pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "test")
        var reports: [DeliveryReport] = []
        try wait(until: reports.count == 3) { reports += producer.poll(timeout: .milliseconds(50)) }
        #expect(reports.allSatisfy { $0.error?.disposition == .fatal })
        #expect(producer.fatalError?.disposition == .fatal)
        #expect(producer.outstanding == 0)
        let error = #expect(throws: KafkaError.self) {
            try producer.send(Record(topic: broker.topic("out"), value: [1]), token: 4)
        }
        #expect(error?.disposition == .fatal)
        producer.close(timeout: .seconds(5))
    }
}
