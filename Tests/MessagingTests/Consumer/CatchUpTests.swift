// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import MessagingTestKit
import Testing

@testable import Messaging

/// Reading to where partitions end.
@Suite(.dedicatedThread) struct CatchUpTests {
    private let broker: TestBroker
    private let tail: KafkaTail
    private let admin: KafkaAdmin
    private let producer: KafkaProducer
    private var topic: String { broker.topic("out") }

    init() throws {
        broker = try TestBroker(["out": 3])
        producer = try broker.producer()
        tail = try KafkaTail(
            configuration: broker.configuration(), partitions: [broker.topic("out"): 3], from: .beginning,
            logger: broker.logs.logger)
        admin = try KafkaAdmin(configuration: broker.configuration(), logger: broker.logs.logger)
    }

    private func close() {
        tail.close()
        admin.close(timeout: .seconds(1))
        producer.close(timeout: .seconds(1))
        broker.close()
    }

    private func put(_ value: UInt8, _ partitions: [Int32]) throws {
        try producer.deliver(partitions.map { Record(topic: topic, value: [value], partition: $0) })
    }

    /// - Returns: whether it got there, and the values.
    private func read(
        within limit: Duration? = nil, patience: Duration = .seconds(60), unless stop: () throws -> Bool = { false }
    ) throws -> (Bool, [UInt8]) {
        var values: [UInt8] = []
        let isRead = try tail.catchUp(admin, within: limit, patience: patience, unless: stop) {
            #expect(!$0.isEmpty)
            values += $0.compactMap { $0.value?.first }
        }
        return (isRead, values.sorted())
    }

    /// An empty partition has nothing to wait for.
    @Test func allThatThereIsIsReadOnce() throws {
        defer { close() }
        #expect(try read() == (true, []))
        try put(1, [0, 0, 2])
        #expect(try read() == (true, [1, 1, 1]))
        #expect(try read() == (true, []))
        try put(2, [2])
        #expect(try read() == (true, [2]))
    }

    @Test func itEndsWhenItShould() throws {
        defer { close() }
        struct Enough: Error {}
        try put(1, [0, 1])
        #expect(try read { true } == (false, []))
        #expect(throws: Enough.self) { try read { throw Enough() } }
        try put(2, [0])
        #expect(try read(within: .zero).0 == false)
    }

    /// A partition that ends later and gives nothing is named, instead of being waited for without end.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aSilentPartitionIsNamed() throws {
        defer { close() }
        let faults = try broker.faults()
        faults.failNext(.fetch, with: Array(repeating: KafkaError.Code.notLeader, count: 1000))
        try put(1, [1])
        let silence = try #require(throws: KafkaTail.Silence.self) { try read(patience: .milliseconds(300)) }
        #expect(silence.partition == broker.partition("out", 1))
        faults.clearFailures(.fetch)
        #expect(try read() == (true, [1]))
    }

    /// Nobody takes it for an empty one.
    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func aPartitionThatDoesNotSayWhereItEndsIsNamed() throws {
        defer { close() }
        let faults = try broker.faults()
        try put(1, [1])
        faults.setLeader(broker.partition("out", 1), broker: nil)
        let error = try #require(throws: KafkaError.self) { try read() }
        #expect(error.description.contains("\(broker.partition("out", 1)) does not say where it ends"))
    }
}
