// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

/// The measurements of one service on one engine.
struct Bench {
    let subject: Subject
    let engine: Engine
    let options: BenchCommand
    let commands: Int
    let rate: Int
    let seconds: Int
    let profiles: Int

    /// - Returns: whether all the numbers are worth something. What makes them worthless is printed.
    func run(_ mode: BenchCommand.Mode) -> Bool {
        do {
            return try measurements(mode).map { try $0() }.allSatisfy(\.isEmpty)
        } catch {
            say("! no measurement: \(error)")
            return false
        }
    }

    private typealias Measurement = () throws -> [String]

    private func measurements(_ mode: BenchCommand.Mode) -> [Measurement] {
        switch mode {
        case .drain: [drain]
        case .limits: [limits]
        case .latency: [latency]
        case .growth: [growth]
        case .profile: [profile]
        case .all:
            switch subject {
            case .gateway: [latency]
            case .user: [drain, latency, growth]
            case .link, .sync, .verification: [limits, latency]
            }
        }
    }

    // MARK: Modes

    private func drain() throws -> [String] { try drains(withLimits: false) }
    private func limits() throws -> [String] { try drains(withLimits: true) }

    private func drains(withLimits: Bool) throws -> [String] {
        var problems: [String] = []
        var rates: [Double] = []
        for make in try workloads() {
            try onStage { stage in
                let workload = try make(stage, commands)
                let drain = try Drain.run(stage, workload)
                say(drain.report(aim: subject.aim(engine)))
                problems += tell(drain.problems)
                rates.append(drain.rate)
                guard withLimits else { return }
                say(try Limits.run(stage, drain).report(drain))
                // Once, with the checks, which are the first.
                if subject == .verification, rates.count == 1 { say(try TokenChecks.run().report(drain)) }
            }
        }
        if subject == .sync, rates.count == 2 {
            let ratio = (rates[1] / rates[0]).percent
            say("with \(Double(profiles).shown) profiles: \(ratio) of the rate with 1,000 (aim: >= 50 %)")
        }
        return problems
    }

    private func latency() throws -> [String] {
        var problems: [String] = []
        try onStage { stage in
            let count = rate * (seconds + Latency.warmUpSeconds)
            let workload = try steadyWorkload(stage, count)
            if subject == .gateway {
                let latency = try GatewayLatency.run(
                    stage, workload, rate: rate, seconds: seconds, connections: options.connections)
                say(latency.report())
                problems = tell(latency.problems)
            } else {
                let latency = try Latency.run(stage, workload, rate: rate, seconds: seconds)
                say(latency.report(aim: subject.latencyAim))
                problems = tell(latency.problems)
            }
        }
        return problems
    }

    private func growth() throws -> [String] {
        guard subject == .user else { throw BenchError("growth is measured of user") }
        var problems: [String] = []
        for withCodes in [true, false] {
            try onStage { stage in
                let growth = try Growth.run(stage, withCodes: withCodes, installs: 100, cycles: 10)
                say(growth.report())
                problems += tell(growth.problems)
            }
        }
        return problems
    }

    private func profile() throws -> [String] {
        guard let make = try workloads().last else { return [] }
        var problems: [String] = []
        try onStage { stage in
            let (drain, profile) = try Profile.run(stage, try make(stage, commands / 3))
            say(drain.report(aim: nil))
            say(profile.report())
            problems = tell(drain.problems)
        }
        return problems
    }

    // MARK: What is sent

    /// For drains, each on a stage of its own.
    private func workloads() throws -> [(Stage, Int) throws -> Workload] {
        switch subject {
        case .link: [{ try LinkWorkload.requests($1, CommandFactory($0)) }]
        case .user: [{ try UserWorkload.creations($1, CommandFactory($0)) }]
        case .sync:
            [1000, profiles].map { profiles in
                { stage, count in
                    try StoredProfiles.load(profiles, into: stage)
                    return try SyncWorkload.commands(count, profiles: profiles, CommandFactory(stage))
                }
            }
        case .verification:
            [
                { try VerificationWorkload.checks($1, CommandFactory($0)) },
                { try VerificationWorkload.logins($1, CommandFactory($0)) },
            ]
        case .gateway: throw BenchError("of gateway, latency is measured")
        }
    }

    /// One reply for each command.
    private func steadyWorkload(_ stage: Stage, _ count: Int) throws -> Workload {
        let factory = CommandFactory(stage)
        switch subject {
        case .link, .gateway: return try LinkWorkload.plain(count, factory)
        case .user: return try UserWorkload.creations(count, factory)
        case .sync:
            let profiles = min(profiles, 10_000)
            try StoredProfiles.load(profiles, into: stage)
            return try SyncWorkload.commands(count, profiles: profiles, factory)
        case .verification: return try VerificationWorkload.logins(count, factory)
        }
    }

    // MARK: Around

    private func onStage(_ work: (Stage) throws -> Void) throws {
        let stage = try Stage(
            engine: engine, partitions: options.partitions, services: subject.services, settings: subject.settings,
            binaries: options.binaries, folder: "\(options.folder)/\(engine.rawValue)-\(UInt32.random(in: 0...(.max)))",
            databaseURL: options.databaseURL)
        defer { stage.close() }
        say("\n\(stage.broker.name), \(options.partitions) partitions per topic")
        try work(stage)
    }

    private func tell(_ problems: [String]) -> [String] {
        if !problems.isEmpty {
            say("! worth nothing:\n" + problems.map { "!   \($0)\n" }.joined())
        }
        return problems
    }
}
