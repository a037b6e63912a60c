// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import Messaging
import Observability
import Storage
import Synchronization
import Testing
import WireJSON

@testable import Runtime

/// For a while, under load, a part of Kafka refuses what the service writes: for `REFUSAL_SECONDS` (20).
@Suite struct RefusalTests {
    enum Refusal: CaseIterable {
        /// A partition of the events topic has no leader.
        case partition
        /// The events topic is unknown.
        case topic
        /// The topic of the dead letters is unknown, and every hundredth record is one.
        case deadLetters
    }

    static let seconds = ProcessInfo.processInfo.environment["REFUSAL_SECONDS"].flatMap(Int.init) ?? 20
    static let partitions = 4
    /// Commands a second, over sixteen keys. What is held back stays below a lane's limit, where deciding would pause.
    static let rate = 40

    @Test(arguments: Refusal.allCases) func nothingIsLostDoubledMisplacedOrSlow(_ refusal: Refusal) async throws {
        let run = try Run(refusal)
        try await onThread { try run.play() }
    }

    /// Blocking work must not hold up the tests that run beside it.
    private func onThread(_ work: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let thread = Thread { continuation.resume(with: Result(catching: work)) }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }
}

/// One deployment of the fake service, a sender and a reader.
///
/// `@unchecked Sendable` is safe: it is made by the test and then used by one thread only.
private final class Run: @unchecked Sendable {
    private let refusal: RefusalTests.Refusal
    private let loop: TestLoop
    private let events = "identity.fake.events.v1"
    private let replies = "identity.replies.v1"
    private let letters = "identity.fake.dlq.v1"

    init(_ refusal: RefusalTests.Refusal) throws {
        self.refusal = refusal
        loop = try TestLoop(partitions: RefusalTests.partitions)
    }

    func play() throws {
        try loop.run(FakeService()) {
            let sent = try load()
            let count = sent.commands.count
            let replied = try loop.broker.readAll(replies, RefusalTests.partitions, distinct: count, id)
            // The fake service tells of each command twice.
            let told = try loop.broker.readAll(events, RefusalTests.partitions, distinct: 2 * count, id)
            let set = try loop.broker.readAll(letters, RefusalTests.partitions, distinct: sent.letters, offset)
            #expect(Set(replied.compactMap(commandID)) == Set(sent.commands.map(\.id)))
            #expect(Set(told.map(id)).count == 2 * count)
            #expect(Set(set.map(offset)).count == sent.letters, "only what cannot be read is a dead letter")
            for (key, ids) in Dictionary(grouping: sent.commands, by: \.key) {
                let inOrder = ids.map(\.id)
                #expect(firsts(replied.filter { text($0.key) == key }.compactMap(commandID)) == inOrder, "\(key)")
                let values = firsts(told.filter { text($0.key) == key }.compactMap(value)).filter { $0 != "again" }
                #expect(values == ids.map(\.value), "\(key)")
            }
        }
    }

    private struct Command {
        var id: String
        var key: String
        var value: String
    }

    /// Sends at an even rate; breaks something after three seconds and mends it before the last three.
    private func load() throws -> (commands: [Command], letters: Int) {
        let producer = try loop.broker.producer()
        defer { producer.close(timeout: .seconds(5)) }
        let watcher = try loop.broker.tail(replies, RefusalTests.partitions)
        defer { watcher.close() }
        var commands: [Command] = []
        var letters = 0
        var answered: [Int: Int] = [:]
        var sent: [Int: Int] = [:]
        let first = Command(id: "first", key: "demo/k0", value: "first")
        try producer.send(try record(first), token: 0)
        commands.append(first)
        let patience = ContinuousClock.now + .seconds(180)
        while watcher.poll(maxRecords: 1, timeout: .milliseconds(50)).isEmpty, ContinuousClock.now < patience {}
        let start = ContinuousClock.now
        let total = RefusalTests.seconds + 6
        var second = -1
        for number in 0..<(total * RefusalTests.rate) {
            let due = start + .milliseconds(number * 1000 / RefusalTests.rate)
            while ContinuousClock.now < due {
                let now = Int((ContinuousClock.now - start).components.seconds)
                answered[now, default: 0] += watcher.poll(maxRecords: 1000, timeout: .milliseconds(5)).count
            }
            if number / RefusalTests.rate != second {
                second = number / RefusalTests.rate
                let now = Int((ContinuousClock.now - start).components.seconds)
                answered[now, default: 0] += watcher.poll(maxRecords: 10_000, timeout: .zero).count
                if second == 3 { refuse(true) }
                if second == total - 4, refusal != .partition {
                    let isReady = loop.health.report.ready.allSatisfy { $0.ok }
                    #expect(!isReady, "a topic that refuses is told")
                }
                if second == total - 3 { refuse(false) }
                _ = producer.poll(timeout: .zero)
            }
            let command = Command(id: "c\(number)", key: "demo/k\(number % 16)", value: "v\(number)")
            try producer.send(try record(command), token: number)
            commands.append(command)
            sent[Int((ContinuousClock.now - start).components.seconds), default: 0] += 1
            if number % 100 == 99 {
                letters += 1
                try producer.send(
                    Record(topic: Fixture.topic, key: Array(command.key.utf8), value: [0x7B]), token: number)
            }
        }
        // Replies go to the topic that accepts everything: they come at more than half of the rate. Measured against what
        // could be sent, and over the whole time: other tests run beside this one, and a disk may stand still for a while.
        let broken = 3..<(total - 3)
        let counts = [sent, answered].map { counts in broken.reduce(0) { $0 + (counts[$1] ?? 0) } }
        #expect(counts[1] > counts[0] / 2, "of \(counts[0]) in seconds \(broken)")
        return (commands, letters)
    }

    private func refuse(_ isOn: Bool) {
        let broker = loop.broker.broker
        let code = isOn ? KafkaError.Code.unknownTopicOrPartition : 0
        switch refusal {
        case .partition: broker.setLeader(TopicPartition(topic: events, partition: 1), broker: isOn ? nil : 1)
        case .topic: broker.setTopicError(events, code: code)
        case .deadLetters: broker.setTopicError(letters, code: code)
        }
    }

    private func record(_ command: Command) throws -> Record {
        let record = try Fixture.record(
            Fixture.attributes(id: command.id),
            ["key": .string(String(command.key.dropFirst(5))), "value": .string(command.value)], key: command.key)
        return Record(
            topic: Fixture.topic, key: record.key, value: record.value, headers: record.headers)
    }

    // MARK: What is read

    private func json(_ record: KafkaRecord) -> JSONValue? { try? JSONValue(parsing: record.value ?? []) }
    private func id(_ record: KafkaRecord) -> String { json(record)?["id"]?.stringValue ?? "" }
    private func commandID(_ record: KafkaRecord) -> String? { json(record)?["data"]?["commandId"]?.stringValue }
    private func value(_ record: KafkaRecord) -> String? { json(record)?["data"]?["value"]?.stringValue }
    private func offset(_ record: KafkaRecord) -> String {
        ["dlq_original_partition", "dlq_original_offset"].map { text(record.header($0)) }.joined(separator: "@")
    }
    private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }
    private func firsts(_ texts: [String]) -> [String] {
        var seen: Set<String> = []
        return texts.filter { seen.insert($0).inserted }
    }
}
