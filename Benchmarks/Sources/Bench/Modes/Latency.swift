// SPDX-License-Identifier: Apache-2.0

import Contracts
import Histogram
import Messaging

/// How long a reply takes at a fixed rate of commands. Open loop: commands are sent when they are due, whether or not
/// replies come, and a reply's time counts from when its command was due.
struct Latency {
    let name: String
    let engine: Engine
    let rate: Int
    let seconds: Int
    let histogram: Histogram<UInt32>
    let missing: Int
    let statuses: [String: Int]
    let expected: Set<String>
    /// How late the sender was at worst; a large number means that the machine is too busy to measure on.
    let sendDelay: Duration
    let cpuSeconds: Double
    let complaints: [String]

    static let warmUpSeconds = 3
    /// Microseconds, up to a minute.
    static var emptyHistogram: Histogram<UInt32> {
        Histogram(highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: .three)
    }

    /// - Parameter workload: of `rate * (seconds + warmUpSeconds)` commands with one reply each.
    static func run(_ stage: Stage, _ workload: Workload, rate: Int, seconds: Int) throws -> Latency {
        let (services, _) = try stage.start()
        defer { services.stop() }
        let records = try stage.prepare(workload, with: services)
        return try measure(stage, services, workload, records, rate: rate, seconds: seconds)
    }

    static func measure(
        _ stage: Stage, _ services: ServiceGroup, _ workload: Workload, _ records: [Record], rate: Int,
        seconds: Int
    ) throws -> Latency {
        let tail = try stage.broker.tail([stage.broker.topics.replies], from: .end, fetchWait: 1)
        defer { tail.close() }
        let start = ContinuousClock.now + .milliseconds(200)
        let interval = Duration.seconds(1) / rate
        let sender = PacedSender(records: records, kafka: stage.broker.kafka, start: start, interval: interval)
        let before = services.cpuSeconds
        sender.begin()
        var histogram = emptyHistogram
        var statuses: [String: Int] = [:]
        var seen = Set<Int>()
        let end = start + interval * records.count + .seconds(10)
        while seen.count < records.count, ContinuousClock.now < end, services.isRunning {
            let replies = tail.poll(maxRecords: 1000, timeout: .milliseconds(20))
            let now = ContinuousClock.now
            for answer in replies.compactMap(Answer.init) where answer.status != "pending" {
                guard let number = answer.number, seen.insert(number).inserted else { continue }
                statuses[answer.status, default: 0] += 1
                guard number >= rate * warmUpSeconds else { continue }
                let elapsed = now - (start + interval * number)
                _ = histogram.record(UInt64(max(0, elapsed.inSeconds * 1e6)))
            }
        }
        let cpu = services.cpuSeconds - before
        return Latency(
            name: workload.name, engine: stage.engine, rate: rate, seconds: seconds, histogram: histogram,
            missing: records.count - seen.count, statuses: statuses, expected: workload.expected,
            sendDelay: try sender.finish(), cpuSeconds: cpu, complaints: services.complaints)
    }

    func report(aim: (p50: Double, p99: Double)?) -> String {
        func milliseconds(_ microseconds: UInt64) -> String { (Double(microseconds) / 1000).shown + " ms" }
        func wanted(_ limit: Double?) -> String { limit.map { "<= \(Int($0)) ms" } ?? "" }
        var table = Table("latency of \(name) at \(rate)/s for \(seconds) s, \(engine.name)", "measured", "aim")
        table.add("p50", milliseconds(histogram.valueAtPercentile(50)), wanted(aim?.p50))
        table.add("p90", milliseconds(histogram.valueAtPercentile(90)))
        table.add("p99", milliseconds(histogram.valueAtPercentile(99)), wanted(aim?.p99))
        table.add("p99.9", milliseconds(histogram.valueAtPercentile(99.9)))
        table.add("max", milliseconds(histogram.maxRecorded))
        table.add("replies measured", Double(histogram.totalCount).shown)
        table.add("worst delay of the sender", milliseconds(UInt64(sendDelay.inSeconds * 1e6)))
        table.add("CPU of the services", (cpuSeconds / Double(seconds + Self.warmUpSeconds)).percent)
        return table.text
    }

    /// What makes the numbers worthless.
    var problems: [String] {
        var problems = complaints.prefix(5).map { "the log says \($0)" }
        if missing > 0 { problems.append("\(missing) commands were not answered") }
        for (status, count) in statuses where !expected.contains(status) {
            problems.append("\(count) replies say \(status)")
        }
        return problems
    }
}
