// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Foundation

/// How fast one replica empties a topic that was filled before.
struct Drain {
    let engine: Engine
    let commands: Int
    let seconds: Double
    let cpuSeconds: Double
    let busiestThreadSeconds: Double
    let peakMiB: Double
    let replies: OutputCounter.Total
    let events: OutputCounter.Total
    let rejected: Int
    let complaints: [String]

    var rate: Double { Double(commands) / seconds }
    /// What a core gives when nothing has to be waited for.
    var ratePerCore: Double { Double(commands) / cpuSeconds }

    /// Something that watches the service while it drains, such as a profiler.
    typealias Observer = (ServiceProcess) throws -> (() throws -> Void)

    /// - Parameter observe: called at the first assignment; what it returns is called when all is drained.
    static func run(_ stage: Stage, workload: Workload, observe: Observer? = nil) throws -> Drain {
        try register(workload, on: stage)
        try Preload.send(workload.records, to: stage.broker)
        try Preload.verify(
            workload.registrations.count + workload.records.count, in: stage.commands, of: stage.broker)
        let counter = try OutputCounter(stage.broker)
        defer { counter.close() }
        let service = try stage.start()
        defer { service.stop() }
        let start = try service.assignment()
        let before = service.status
        let finish = try observe?(service)
        try counter.wait(replies: workload.replies, deadLetters: workload.deadLetters, whileRunning: service)
        let end = Date.now
        let after = service.status
        try finish?()
        return Drain(
            engine: stage.engine, commands: workload.records.count, seconds: end.timeIntervalSince(start),
            cpuSeconds: after.cpuSeconds - before.cpuSeconds,
            busiestThreadSeconds: after.busiestThreadSeconds - before.busiestThreadSeconds,
            peakMiB: after.peakMiB, replies: counter.replies, events: counter.events, rejected: counter.rejected,
            complaints: service.complaints)
    }

    /// Lets the service register the installs, and stops it.
    private static func register(_ workload: Workload, on stage: Stage) throws {
        try Preload.send(workload.registrations, to: stage.broker)
        let counter = try OutputCounter(stage.broker)
        defer { counter.close() }
        let service = try stage.start()
        defer { service.stop() }
        _ = try service.assignment()
        try counter.wait(replies: workload.registrations.count, deadLetters: 0, whileRunning: service)
    }

    func report() -> String {
        var table = Table("drain, \(engine.name)", "measured", "aim")
        table.add("commands", Double(commands).shown)
        table.add("seconds from the first assignment", seconds.shown)
        table.add("commands/s", rate.shown, ">= \(engine.aim.shown)")
        table.add("CPU-seconds of the service per 1,000", (cpuSeconds * 1000 / Double(commands)).shown)
        table.add("commands per CPU-second", ratePerCore.shown, ">= \(engine.aim.shown)")
        table.add("the loop's thread, share of the time", (busiestThreadSeconds / seconds).percent)
        table.add("peak memory, MiB", peakMiB.shown, "<= 150")
        table.add("replies, mean bytes", "\(Double(replies.messages).shown) x \(replies.meanBytes)")
        table.add("events, mean bytes", "\(Double(events.messages).shown) x \(events.meanBytes)")
        table.add("replies that reject (sampled)", (Double(rejected) / Double(max(1, replies.messages))).percent)
        let warnings = complaints.prefix(5).map { "! \($0)\n" }.joined()
        return table.text + warnings
    }
}
