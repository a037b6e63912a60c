// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// How fast one replica of each service empties a topic that was filled before.
struct Drain {
    let workload: Workload
    let records: [Record]
    /// From the first service that was ready to the last reply.
    let seconds: Double
    /// Of the first service.
    let loops: Int
    /// Of each process since it was ready; the service under test is the first.
    let usage: [(name: String, usage: Usage)]
    /// What those around had used when the first service was ready, and at the end.
    let around: (before: CPUTime, after: CPUTime)
    let output: OutputCounter
    /// Replies and events that nobody signed who may.
    let forgeries: Int
    let complaints: [String]

    struct Usage {
        let cpuSeconds: Double
        let busiestThreadSeconds: Double
        let peakMiB: Double
    }

    var commands: Int { records.count }

    /// Something that watches the service under test while it drains, such as a profiler.
    typealias Observer = (ServiceProcess) throws -> (() throws -> Void)

    /// - Parameter observe: called when all are ready; what it returns is called when all is drained.
    static func run(_ stage: Stage, _ workload: Workload, observe: Observer? = nil) throws -> Drain {
        let records = try prepare(workload, on: stage)
        try Preload.send(records, to: stage.broker)
        let topic = stage.commands
        let count = (workload.preparation + records).count { $0.topic == topic }
        try Preload.verify(count, in: topic, of: stage.broker)
        let counter = try OutputCounter(stage)
        defer { counter.close() }
        var around = stage.cpuTime
        let services = try stage.launch(isMeasured: true)
        defer { services.stop() }
        let (start, before) = try services.ready { around = stage.cpuTime }
        let finish = try observe?(services.subject)
        try counter.wait(replies: workload.replies, deadLetters: workload.deadLetters, whileRunning: services)
        let end = Date.now
        let after = services.processes.map(\.status)
        let afterwards = stage.cpuTime
        try finish?()
        counter.linger()
        let usage = zip(services.processes, zip(before, after)).map { process, status in
            let (before, after) = status
            return (
                process.name,
                Usage(
                    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
                    busiestThreadSeconds: after.busiestThreadSeconds - before.busiestThreadSeconds,
                    peakMiB: after.peakMiB)
            )
        }
        services.stop()
        return Drain(
            workload: workload, records: records, seconds: end.timeIntervalSince(start), loops: services.loops,
            usage: usage, around: (around, afterwards), output: counter, forgeries: counter.forgeries(stage),
            complaints: services.complaints)
    }

    /// Lets the services decide what comes before, and stops them.
    private static func prepare(_ workload: Workload, on stage: Stage) throws -> [Record] {
        if workload.preparation.isEmpty { return try workload.records([:]) }
        let services = try stage.start()
        defer { services.stop() }
        return try stage.prepare(workload, with: services)
    }

    func tell(_ report: inout Report) {
        let thousands = Double(commands) / 1000
        report.setting["commands"] = String(commands)
        report.setting["workload"] = workload.name
        if loops > 0 { report.setting["loops"] = String(loops) }
        report.add("drained", Double(commands) / seconds, "/s")
        report.add("time", seconds, "s")
        for (name, usage) in usage {
            report.add("CPU for 1,000: \(name)", usage.cpuSeconds / thousands, "s")
        }
        report.add(
            "CPU for 1,000: PostgreSQL's backends", (around.after.backends - around.before.backends) / thousands, "s")
        report.add(
            "CPU for 1,000: PostgreSQL's others", (around.after.postgres - around.before.postgres) / thousands, "s")
        report.add("CPU for 1,000: broker", (around.after.broker - around.before.broker) / thousands, "s")
        for (name, usage) in usage {
            report.add("busiest thread: \(name)", usage.busiestThreadSeconds / seconds * 100, "%")
            report.add("peak memory: \(name)", usage.peakMiB, "MiB")
        }
        report.add("replies", Double(output.replies.count))
        report.add("bytes of a reply", Double(output.replies.meanBytes))
        report.add("events", Double(output.events.count))
        report.add("bytes of an event", Double(output.events.meanBytes))
        report.add("dead letters", Double(output.deadLetters.count))
        let statuses = output.statuses
        for (status, count) in statuses.sorted(by: { $0.key < $1.key }) {
            report.add("replies that say \(status)", Double(count))
        }
        report.problems += problems(statuses)
    }

    private func problems(_ statuses: [String: Int]) -> [String] {
        var problems = complaints.prefix(5).map { "the log says \($0)" }
        let missing = workload.answered - output.answered.count
        if missing != 0 { problems.append("\(missing) commands were not answered") }
        let surplus = output.replies.count - workload.replies
        if surplus != 0 { problems.append("\(surplus) replies too many") }
        let letters = output.deadLetters.count - workload.deadLetters
        if letters != 0 { problems.append("\(letters) dead letters too many") }
        if forgeries > 0 { problems.append("\(forgeries) replies and events were not signed by a service") }
        for status in statuses.keys.sorted() where !workload.expected.contains(status) {
            problems.append("replies say \(status)")
        }
        return problems
    }
}
