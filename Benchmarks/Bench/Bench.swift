// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// One measurement of one subject on one engine.
struct Bench {
    let options: BenchCommand

    private var subject: Subject { options.subject }

    func run(_ report: inout Report) throws {
        if options.mode == .parts { return try parts(&report) }
        let stage = try Stage(options)
        defer { stage.close() }
        report.setting["broker"] = stage.broker.name
        report.setting["durability"] = try stage.durability()
        report.setting["batch"] = ProcessInfo.processInfo.environment["BATCH_SIZE"] ?? "1000"
        report.setting["partitions"] = String(options.partitions)
        if options.remembered > 0 {
            report.setting["remembered"] = String(options.remembered)
            try StoredInbox.load(options.remembered, into: stage)
        }
        switch options.mode {
        case .drain: try drain(stage, &report)
        case .latency: try latency(stage, &report)
        case .growth: try Growth.run(stage, withCodes: true, installs: 100, cycles: 10).tell(&report)
        case .profile:
            let workload = try subject.backlog(options.commands, profiles: options.profiles, stage)
            let (drain, profile) = try Profile.run(stage, workload)
            drain.tell(&report)
            profile.tell(&report)
        case .facts: try FactsLatency.run(stage, options).tell(&report)
        case .parts: break
        }
        if options.remembered > 0 { try StoredInbox.tell(options.remembered, stage, &report) }
    }

    private func drain(_ stage: Stage, _ report: inout Report) throws {
        let workload = try subject.backlog(options.commands, profiles: options.profiles, stage)
        let drain = try Drain.run(stage, workload)
        drain.tell(&report)
        if let floor = options.floor { try Floor.run(floor, stage, drain).tell(&report) }
        if let folder = options.dump { try Dump.write(drain, stage, to: folder) }
    }

    private func latency(_ stage: Stage, _ report: inout Report) throws {
        let count = options.rate * (options.seconds + Latency.warmUpSeconds)
        report.setting["rate"] = String(options.rate)
        report.setting["seconds"] = String(options.seconds)
        if subject == .gateway {
            report.setting["connections"] = String(options.connections)
            try GatewayLatency.run(stage, options, count: count).tell(&report)
        } else {
            let workload = try subject.steady(count, rate: options.rate, profiles: options.profiles, stage)
            try Latency.run(stage, workload, rate: options.rate).tell(&report)
        }
    }

    /// What single parts could do alone; no services run.
    private func parts(_ report: inout Report) throws {
        switch subject {
        case .link: try Parts.run(options).tell(&report)
        case .check: try TokenChecks.run().tell(&report)
        case .user, .sync, .login, .gateway: throw BenchError("parts are measured of link and check")
        }
    }
}
