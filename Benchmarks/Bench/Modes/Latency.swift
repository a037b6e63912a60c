// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// How long a reply takes at a fixed rate of commands. Open loop: commands are sent when they are due, whether or not
/// replies come, and a reply's time counts from when its command was due. The first seconds are not counted.
struct Latency {
    let name: String
    let seconds: Double
    /// Of the first service.
    let loops: Int
    var times = Times()
    var missing = 0
    var statuses: [String: Int] = [:]
    let expected: Set<String>
    /// How late the sender was at worst; a large number means that the machine is too busy to measure on.
    var sendDelay = Duration.zero
    var services: [(name: String, share: Double)] = []
    let around: (before: CPUTime, after: CPUTime)
    let complaints: [String]

    static let warmUpSeconds = 3

    /// - Parameter workload: its commands have one reply each.
    static func run(_ stage: Stage, _ workload: Workload, rate: Int) throws -> Latency {
        let services = try stage.start()
        defer { services.stop() }
        let records = try stage.prepare(workload, with: services)
        return try measure(stage, services, workload, records, rate: rate)
    }

    static func measure(
        _ stage: Stage, _ services: ServiceGroup, _ workload: Workload, _ records: [Record], rate: Int
    ) throws -> Latency {
        let tail = try stage.broker.tail([stage.broker.topics.replies], from: .end)
        defer { tail.close() }
        let start = ContinuousClock.now + .milliseconds(200)
        let interval = Duration.seconds(1) / rate
        let sender = PacedSender(records: records, kafka: stage.broker.kafka, start: start, interval: interval)
        let before = services.processes.map(\.status.cpuSeconds)
        let around = stage.cpuTime
        sender.begin()
        var times = Times()
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
                times.add(now - (start + interval * number))
            }
        }
        let seconds = (ContinuousClock.now - start).inSeconds
        let shares = zip(services.processes, before).map { ($0.name, ($0.status.cpuSeconds - $1) / seconds) }
        return Latency(
            name: workload.name, seconds: seconds, loops: services.loops, times: times,
            missing: records.count - seen.count, statuses: statuses, expected: workload.expected,
            sendDelay: try sender.finish(), services: shares,
            around: (around, stage.cpuTime), complaints: services.complaints)
    }

    func tell(_ report: inout Report, _ prefix: String = "") {
        report.setting["workload"] = name
        if loops > 0 { report.setting["loops"] = String(loops) }
        times.tell(&report, prefix)
        report.add(prefix + "worst delay of the sender", sendDelay.inSeconds * 1000, "ms")
        func share(_ name: String, _ share: Double) { report.add("\(prefix)CPU: \(name)", share * 100, "% of a core") }
        for (name, part) in services { share(name, part) }
        share("PostgreSQL's backends", (around.after.backends - around.before.backends) / seconds)
        share("PostgreSQL's others", (around.after.postgres - around.before.postgres) / seconds)
        share("broker", (around.after.broker - around.before.broker) / seconds)
        report.problems += problems
    }

    private var problems: [String] {
        var problems = complaints.prefix(5).map { "the log says \($0)" }
        if missing > 0 { problems.append("\(missing) commands were not answered") }
        for (status, count) in statuses where !expected.contains(status) {
            problems.append("\(count) replies say \(status)")
        }
        return problems
    }
}
