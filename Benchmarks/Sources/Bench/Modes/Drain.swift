// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging

/// How fast one replica of each service empties a topic that was filled before.
struct Drain {
    let workload: Workload
    let engine: Engine
    let records: [Record]
    let seconds: Double
    /// Of each process; the service under test is the first.
    let usage: [(name: String, usage: Usage)]
    let replies: OutputCounter.Total
    let pending: Int
    let events: OutputCounter.Total
    let statuses: [String: Int]
    let missing: Int
    let complaints: [String]

    struct Usage {
        let cpuSeconds: Double
        let busiestThreadSeconds: Double
        let peakMiB: Double
        /// How much of the peak came since it was ready.
        let growthMiB: Double
    }

    var commands: Int { records.count }
    var rate: Double { Double(commands) / seconds }
    /// What a core gives when nothing has to be waited for.
    var ratePerCore: Double { Double(commands) / usage.reduce(0) { $0 + $1.usage.cpuSeconds } }

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
        let (services, start) = try stage.start()
        defer { services.stop() }
        let before = services.processes.map(\.status)
        let finish = try observe?(services.subject)
        try counter.wait(replies: workload.replies, deadLetters: workload.deadLetters, whileRunning: services)
        let end = Date.now
        let after = services.processes.map(\.status)
        try finish?()
        let usage = zip(services.processes, zip(before, after)).map { process, status in
            let (before, after) = status
            return (
                process.name,
                Usage(
                    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
                    busiestThreadSeconds: after.busiestThreadSeconds - before.busiestThreadSeconds,
                    peakMiB: after.peakMiB, growthMiB: after.peakMiB - before.peakMiB)
            )
        }
        return Drain(
            workload: workload, engine: stage.engine, records: records, seconds: end.timeIntervalSince(start),
            usage: usage, replies: counter.replies, pending: counter.pending, events: counter.events,
            statuses: counter.statuses, missing: workload.answered - counter.answered.count,
            complaints: services.complaints)
    }

    /// Lets the services decide what comes before, and stops them.
    private static func prepare(_ workload: Workload, on stage: Stage) throws -> [Record] {
        if workload.preparation.isEmpty { return try workload.records([:]) }
        let (services, _) = try stage.start()
        defer { services.stop() }
        return try stage.prepare(workload, with: services)
    }

    func report(aim: Double?) -> String {
        let wanted = aim.map { ">= \($0.shown)" } ?? ""
        var table = Table("drain of \(workload.name), \(engine.name)", "measured", "aim")
        table.add("commands", Double(commands).shown)
        table.add("seconds since the services were ready", seconds.shown)
        table.add("commands/s", rate.shown, wanted)
        table.add("commands per CPU-second\(usage.count > 1 ? " of all" : "")", ratePerCore.shown, wanted)
        for (name, usage) in usage {
            table.add("\(name): CPU-seconds per 1,000", (usage.cpuSeconds * 1000 / Double(commands)).shown)
            table.add("\(name): its busiest thread, share of the time", (usage.busiestThreadSeconds / seconds).percent)
            table.add("\(name): peak memory, MiB", usage.peakMiB.shown, "<= 150")
            table.add("\(name): of that, since it was ready", usage.growthMiB.shown)
        }
        table.add("replies, mean bytes", "\(Double(replies.messages).shown) x \(replies.meanBytes)")
        if pending > 0 { table.add("pending before that", Double(pending).shown) }
        table.add("events, mean bytes", "\(Double(events.messages).shown) x \(events.meanBytes)")
        let sampled = Double(statuses.values.reduce(0, +))
        for (status, count) in statuses.sorted(by: { $0.value > $1.value }) {
            table.add("replies that say \(status) (sampled)", (Double(count) / max(1, sampled)).percent)
        }
        return table.text
    }

    /// What makes the numbers worthless.
    var problems: [String] {
        var problems = complaints.prefix(5).map { "the log says \($0)" }
        if missing != 0 { problems.append("\(missing) commands were not answered") }
        for status in statuses.keys.sorted() where !workload.expected.contains(status) {
            problems.append("replies say \(status)")
        }
        return problems
    }
}
