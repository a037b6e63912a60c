// SPDX-License-Identifier: Apache-2.0

import Contracts
import Dispatch
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct WakeUpTests {
    @Test func waitingEndsWithASignalOrItsTime() throws {
        let wakeUp = try WakeUp()
        let idle = time { #expect(!wakeUp.wait(timeout: .milliseconds(100))) }
        #expect(idle >= .milliseconds(100))
        wakeUp.signal()
        wakeUp.signal()
        #expect(wakeUp.wait(timeout: .seconds(40)))
        #expect(!wakeUp.wait(timeout: .zero))
        wakeUp.signal()
        wakeUp.clear()
        #expect(!wakeUp.wait(timeout: .zero))
        DispatchQueue(label: "wake-up").asyncAfter(deadline: .now() + 0.1) { wakeUp.signal() }
        let woken = time { #expect(wakeUp.wait(timeout: .seconds(40))) }
        #expect(woken < .seconds(30))
    }

    /// Nothing but records wakes: statistics would do it every few seconds.
    private static let quiet = TestBroker.steady.merging(["statistics.interval.ms": "0"]) { $1 }

    /// What was fetched before a partition is paused or read anew, and not polled, is dropped and fetched again. That wakes
    /// too. The thread does as ``WakeUp`` says: it sleeps only when a poll gave nothing.
    @Test(arguments: [Again.resume, .resumeAtOnce, .restart, .restartWhilePaused])
    func whatIsReadAgainWakes(_ again: Again) throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let wakeUp = try WakeUp()
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler, settings: Self.quiet, wakeUp: wakeUp)
        try consumer.join(1)
        let producer = try broker.producer()
        let partition = broker.partition("in", 0)
        for offset in 0..<3 as Range<Int64> {
            wakeUp.clear()
            try wait(until: try consumer.poll(maxRecords: 10, timeout: .zero).isEmpty) {}
            try producer.deliver([Record(topic: broker.topic("in"), value: [0])])
            // It is fetched, and not polled.
            #expect(wakeUp.wait(timeout: .seconds(40)))
            switch again {
            case .resume:
                try consumer.pause([partition])
                try idle(consumer, wakeUp, for: .milliseconds(200))
                try consumer.resume([partition])
            case .resumeAtOnce:
                try consumer.pause([partition])
                try consumer.resume([partition])
            case .restart: try consumer.restart([partition: offset])
            case .restartWhilePaused:
                try consumer.pause([partition])
                try consumer.restart([partition: offset])
                try idle(consumer, wakeUp, for: .milliseconds(200))
                try consumer.resume([partition])
            }
            var records = try consumer.poll(maxRecords: 10, timeout: .zero)
            while records.isEmpty {
                try #require(wakeUp.wait(timeout: .seconds(40)), "\(again), offset \(offset)")
                records = try consumer.poll(maxRecords: 10, timeout: .zero)
            }
            #expect(records.map(\.offset) == [offset])
        }
        consumer.close(timeout: .seconds(20))
        producer.close(timeout: .seconds(5))
    }

    enum Again { case resume, resumeAtOnce, restart, restartWhilePaused }

    /// Polls whenever it is woken, and nothing comes.
    private func idle(_ consumer: KafkaConsumer, _ wakeUp: WakeUp, for time: Duration) throws {
        let end = ContinuousClock.now + time
        while ContinuousClock.now < end {
            #expect(try consumer.poll(maxRecords: 10, timeout: .zero).isEmpty)
            wakeUp.wait(timeout: max(.zero, ContinuousClock.now.duration(to: end)))
        }
    }

    /// The member and the producer share a thread that sleeps while both have nothing.
    @Test func aMessageWakesTheThreadOfTwoConsumers() throws {
        let broker = try TestBroker(["a": 1, "b": 1])
        defer { broker.close() }
        let wakeUp = try WakeUp()
        let handlers = [TestHandler(), TestHandler()]
        let consumers = try ["a", "b"].enumerated().map { index, name in
            try broker.consumer(
                [name], handler: handlers[index], group: "group-\(name)", settings: Self.quiet, wakeUp: wakeUp)
        }
        try wait(until: consumers.allSatisfy { $0.assignment.count == 1 }) {
            for consumer in consumers { _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(20)) }
        }
        let producer = try broker.producer()
        try producer.deliver(["a", "b"].map { Record(topic: broker.topic($0), value: [0]) })
        for consumer in consumers { _ = try consumer.collect(1) }
        var slowest: Duration = .zero
        for turn in 0..<10 {
            // Another thread sends, at a moment when this one sleeps.
            let topic = broker.topic(turn % 2 == 0 ? "a" : "b")
            let sender = Sender(producer)
            // In this order: what comes in between, statistics for one, is then polled or wakes.
            wakeUp.clear()
            for consumer in consumers { #expect(try consumer.poll(maxRecords: 10, timeout: .zero).isEmpty) }
            sender.send(Record(topic: topic, value: [1]), after: .milliseconds(50))
            var records: [KafkaRecord] = []
            let begun = ContinuousClock.now
            while records.isEmpty, ContinuousClock.now < begun + patience {
                wakeUp.wait(timeout: .seconds(40))
                for consumer in consumers { records += try consumer.poll(maxRecords: 10, timeout: .zero) }
            }
            #expect(records.map(\.topicPartition.topic) == [topic])
            let woken = ContinuousClock.now
            slowest = max(slowest, woken - sender.sent)
        }
        // The sleep itself is 40 s. A few milliseconds when the machine has nothing else to do; it may have.
        #expect(slowest < .seconds(30), "\(slowest)")
        for consumer in consumers { consumer.close(timeout: .seconds(20)) }
        producer.close(timeout: .seconds(5))
    }

    @Test func aReportWakesTheProducersThread() throws {
        let broker = try TestBroker(["out": 1])
        defer { broker.close() }
        let wakeUp = try WakeUp()
        let producer = try broker.producer(wakeUp: wakeUp)
        try producer.deliver([Record(topic: broker.topic("out"), value: [0])])
        wakeUp.clear()
        _ = producer.poll(timeout: .zero)
        try producer.send(Record(topic: broker.topic("out"), value: [1]), token: 7)
        var reports: [DeliveryReport] = []
        let elapsed = try time {
            try wait(until: !reports.isEmpty) {
                wakeUp.wait(timeout: .seconds(40))
                reports += producer.poll(timeout: .zero)
            }
        }
        #expect(reports.map(\.token) == [7])
        #expect(elapsed < .seconds(30))
        producer.close(timeout: .seconds(5))
    }

    /// Sends from another thread. Nobody else uses the producer meanwhile.
    private final class Sender: @unchecked Sendable {
        private let producer: KafkaProducer
        private let done = DispatchSemaphore(value: 0)
        private var moment = ContinuousClock.now

        init(_ producer: KafkaProducer) { self.producer = producer }

        func send(_ record: Record, after delay: DispatchTimeInterval) {
            DispatchQueue(label: "sender").asyncAfter(deadline: .now() + delay) {
                self.moment = .now
                try? self.producer.send(record, token: 1)
                self.done.signal()
            }
        }

        /// When the message was handed over.
        var sent: ContinuousClock.Instant {
            done.wait()
            return moment
        }
    }
}
