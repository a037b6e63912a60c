// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import ArgumentParser
import Foundation

@main
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measures the link service as a process of its own, and what its parts could do alone.",
        discussion: """
            Compare ratios inside one run: absolute numbers belong to the machine. Uses an embedded broker unless \
            KAFKA_BOOTSTRAP_SERVERS names one. BATCH_SIZE and SQLITE_SYNCHRONOUS are passed on to the service. \
            BENCH_PERF_DATA names a file that keeps what profile recorded.
            """)

    enum Mode: String, CaseIterable, ExpressibleByArgument {
        case drain, latency, limits, profile, all
    }

    @Argument(help: "drain, latency, limits, profile, or all of the first three.")
    var mode = Mode.all

    @Option(help: "sqlite or postgresql. Default: both.")
    var engine: [Engine] = []

    @Option(help: "Commands to drain. Default: 60000, to profile 20000.")
    var commands: Int?

    @Option(help: "Commands per second for the latency.")
    var rate = 500

    @Option(help: "How long the latency is measured, in seconds.")
    var seconds = 20

    @Option(help: "Partitions of each topic.")
    var partitions = 12

    @Option(help: "The executable of the link service.")
    var service: String

    @Option(help: "The folder for the stores; it is on the disk that gets measured.")
    var folder: String

    @Option(help: "A PostgreSQL database whose content may be lost.")
    var databaseURL: String?

    func run() throws {
        say(Machine.line)
        for engine in engine.isEmpty ? Engine.allCases : engine { try run(engine) }
    }

    private func run(_ engine: Engine) throws {
        switch mode {
        case .drain: try drain(engine, withLimits: false)
        case .limits: try drain(engine, withLimits: true)
        case .latency: try latency(engine)
        case .profile: try profile(engine)
        case .all:
            try drain(engine, withLimits: true)
            try latency(engine)
        }
    }

    private func drain(_ engine: Engine, withLimits: Bool) throws {
        try onStage(engine) { stage in
            let workload = try Workload(commands: commands ?? 60_000, topic: stage.commands)
            let drain = try Drain.run(stage, workload: workload)
            say(drain.report())
            guard withLimits else { return }
            let limits = try Limits.run(stage, workload: workload, drain: drain, databaseURL: databaseURL)
            say(limits.report(drain))
        }
    }

    private func latency(_ engine: Engine) throws {
        try onStage(engine) { stage in
            say(try Latency.run(stage, rate: rate, seconds: seconds).report())
        }
    }

    private func profile(_ engine: Engine) throws {
        try onStage(engine) { stage in
            let workload = try Workload(commands: commands ?? 20_000, topic: stage.commands)
            let (drain, profile) = try Profile.run(stage, workload: workload)
            say(drain.report())
            say(profile.report())
        }
    }

    private func onStage(_ engine: Engine, _ work: (Stage) throws -> Void) throws {
        let stage = try Stage(
            engine: engine, partitions: partitions, executable: service,
            folder: "\(folder)/\(engine.rawValue)-\(UInt32.random(in: 0...(.max)))", databaseURL: databaseURL)
        defer { stage.close() }
        say("\n\(stage.broker.name), \(partitions) partitions per topic")
        try work(stage)
    }
}
