// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Foundation
import Histogram
import Messaging
import Synchronization
import WireJSON

/// How long a reply takes at a fixed rate of commands. Open loop: commands are sent when they are due, whether or not
/// replies come, and a reply's time counts from when its command was due.
struct Latency {
    let engine: Engine
    let rate: Int
    let seconds: Int
    let histogram: Histogram<UInt32>
    let missing: Int
    /// How late the sender was at worst; a large number means that the machine is too busy to measure on.
    let sendDelay: Duration
    let cpuSeconds: Double

    private static let warmUpSeconds = 3

    static func run(_ stage: Stage, rate: Int, seconds: Int) throws -> Latency {
        let count = rate * (seconds + warmUpSeconds)
        let workload = try Workload(commands: count, topic: stage.commands, seed: 2)
        let service = try stage.start()
        defer { service.stop() }
        _ = try service.assignment()
        let counter = try OutputCounter(stage.broker)
        try Preload.send(workload.registrations, to: stage.broker)
        try counter.wait(replies: workload.registrations.count, deadLetters: 0, whileRunning: service)
        counter.close()
        let factory = CommandFactory(topic: stage.commands)
        let records = try (0..<count).map { number in
            try factory.link(
                install: number % workload.registrations.count, person: number % workload.registrations.count,
                id: "paced-\(number)")
        }
        return try measure(stage, service, records, rate: rate, seconds: seconds)
    }

    private static func measure(
        _ stage: Stage, _ service: ServiceProcess, _ records: [ProducerRecord], rate: Int, seconds: Int
    ) throws -> Latency {
        let tail = try stage.broker.tail([stage.broker.topics.replies], from: .end, fetchWait: 1)
        defer { tail.close() }
        let start = ContinuousClock.now + .milliseconds(200)
        let interval = Duration.seconds(1) / rate
        let sender = PacedSender(records: records, kafka: stage.broker.kafka, start: start, interval: interval)
        let before = service.status
        sender.begin()
        // Microseconds, up to a minute.
        var histogram = Histogram<UInt32>(highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: .three)
        var seen = Set<Int>()
        let end = start + interval * records.count + .seconds(10)
        while seen.count < records.count, ContinuousClock.now < end, service.isRunning {
            let replies = tail.poll(maxRecords: 1000, timeout: .milliseconds(20))
            let now = ContinuousClock.now
            for number in replies.compactMap(number) where seen.insert(number).inserted {
                guard number >= rate * warmUpSeconds else { continue }
                let elapsed = now - (start + interval * number)
                _ = histogram.record(UInt64(max(0, elapsed.inSeconds * 1e6)))
            }
        }
        let cpu = service.status.cpuSeconds - before.cpuSeconds
        let delay = try sender.finish()
        return Latency(
            engine: stage.engine, rate: rate, seconds: seconds, histogram: histogram,
            missing: records.count - seen.count, sendDelay: delay, cpuSeconds: cpu)
    }

    /// The number of the command that a reply answers.
    private static func number(_ reply: KafkaRecord) -> Int? {
        guard let value = reply.value, case .object(let envelope)? = try? JSONValue(parsing: value),
            case .object(let data)? = envelope["data"], case .string(let id)? = data["commandId"]
        else { return nil }
        return id.hasPrefix("paced-") ? Int(id.dropFirst("paced-".count)) : nil
    }

    func report() -> String {
        func milliseconds(_ microseconds: UInt64) -> String { (Double(microseconds) / 1000).shown + " ms" }
        var table = Table("latency at \(rate)/s for \(seconds) s, \(engine.name)", "measured", "aim")
        table.add("p50", milliseconds(histogram.valueAtPercentile(50)), "<= 5 ms")
        table.add("p90", milliseconds(histogram.valueAtPercentile(90)))
        table.add("p99", milliseconds(histogram.valueAtPercentile(99)), "<= 30 ms")
        table.add("p99.9", milliseconds(histogram.valueAtPercentile(99.9)))
        table.add("max", milliseconds(histogram.maxRecorded))
        table.add("replies measured", Double(histogram.totalCount).shown)
        table.add("commands without a reply", String(missing), "0")
        table.add("worst delay of the sender", milliseconds(UInt64(sendDelay.inSeconds * 1e6)))
        table.add("CPU of the service", (cpuSeconds / Double(seconds + Self.warmUpSeconds)).percent)
        return table.text
    }
}

/// Sends each record when it is due, from a thread of its own.
final class PacedSender: Sendable {
    private struct Outcome {
        var isOver = false
        var delay = Duration.zero
        var problem: String?
    }

    private let records: [ProducerRecord]
    private let kafka: KafkaConfiguration
    private let start: ContinuousClock.Instant
    private let interval: Duration
    private let outcome = Mutex(Outcome())

    init(records: [ProducerRecord], kafka: KafkaConfiguration, start: ContinuousClock.Instant, interval: Duration) {
        self.records = records
        self.kafka = kafka
        self.start = start
        self.interval = interval
    }

    func begin() {
        let thread = Thread { [self] in
            var worst = Duration.zero
            var problem: String?
            do {
                worst = try send()
            } catch {
                problem = "\(error)"
            }
            outcome.withLock { $0 = Outcome(isOver: true, delay: worst, problem: problem) }
        }
        thread.start()
    }

    /// - Returns: how late the latest record was sent.
    func finish() throws -> Duration {
        while !outcome.withLock(\.isOver) { usleep(1000) }
        let result = outcome.withLock { $0 }
        if let problem = result.problem { throw BenchError(problem) }
        return result.delay
    }

    private func send() throws -> Duration {
        let producer = try KafkaProducer(configuration: kafka, logger: .quiet)
        defer { producer.close(timeout: .seconds(5)) }
        var worst = Duration.zero
        for (number, record) in records.enumerated() {
            let due = start + interval * number
            while true {
                let left = due - ContinuousClock.now
                if left <= .zero { break }
                // The last moment is spun away: sleeping wakes up too late.
                if left > .microseconds(200) { usleep(UInt32((left.inSeconds - 0.0001) * 1e6)) }
            }
            worst = max(worst, ContinuousClock.now - due)
            try producer.send(record, token: number)
            if let error = producer.poll(timeout: .zero).lazy.compactMap(\.error).first { throw error }
        }
        return worst
    }
}
