// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Simulation

/// scripts/simulate.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Runs the real loop in a world that is made up (docs/simulation.md).")

    @Argument(help: "The one seed to run.")
    var seed: UInt64?

    @Option(help: "How many seeds to run.")
    var seeds: Int?

    @Option(help: "The first seed.")
    var first: UInt64 = 1

    @Option(help: "link, user, sync or verification; else the seed says which.")
    var service: String?

    @Flag(help: "Runs seeds until one fails, beginning anywhere.")
    var forever = false

    @Flag(help: "Stops at the first seed that fails.")
    var stop = false

    @Flag(help: "Shows what happens in the one seed, also when it passes.")
    var trace = false

    mutating func run() throws {
        let simulation = try Simulation()
        let wanted = try service.map { name in
            guard let service = SimulatedService(rawValue: name) else {
                throw ValidationError("\(name) is none of link, user, sync, verification")
            }
            return service
        }
        if let seed { return try one(simulation, seed, wanted) }
        if forever {
            stop = true
            first = UInt64.random(in: 0...UInt64.max / 2)
        }
        try many(simulation, wanted)
    }

    private func one(_ simulation: Simulation, _ seed: UInt64, _ service: SimulatedService?) throws {
        let verdict = try simulation.run(seed: seed, service, isTracing: trace)
        verdict.notes.forEach { print($0) }
        print(
            "seed \(seed): \(verdict.steps) steps, \(verdict.seconds) s, \(verdict.written) records, faults: \(verdict.faults)"
        )
        guard !verdict.violations.isEmpty else { return print("holds") }
        try show(simulation, seed, service, verdict)
        throw ExitCode.failure
    }

    private func many(_ simulation: Simulation, _ service: SimulatedService?) throws {
        let began = ContinuousClock.now
        var failed: [UInt64] = []
        var done: UInt64 = 0
        while forever || done < UInt64(seeds ?? 100) {
            let seed = first + done
            let verdict = try simulation.run(seed: seed, service)
            done += 1
            if !verdict.violations.isEmpty {
                failed.append(seed)
                print("seed \(seed) (\(service ?? Simulation.service(of: seed))) fails: \(verdict.violations[0])")
                if stop {
                    try show(simulation, seed, service, verdict)
                    break
                }
            }
            if done % 500 == 0 { print("\(done) seeds, \(rate(done, began)) a second") }
        }
        print("\(done) seeds from \(first): \(failed.count) failed, \(rate(done, began)) seeds a second")
        if !failed.isEmpty { throw ExitCode.failure }
    }

    private func rate(_ count: UInt64, _ began: ContinuousClock.Instant) -> String {
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        return String(format: "%.1f", Double(count) / max(seconds, 0.001))
    }

    private func show(
        _ simulation: Simulation, _ seed: UInt64, _ service: SimulatedService?, _ verdict: Verdict
    ) throws {
        verdict.violations.prefix(5).forEach { print($0) }
        let short = try simulation.shortest(seed: seed, service)
        print("The shortest history that still fails: \(short.commands) commands, faults: \(short.faults)")
        short.verdict.notes.forEach { print($0) }
        short.verdict.violations.prefix(5).forEach { print($0) }
        let name = service.map { " --service \($0)" } ?? ""
        print("Again: scripts/simulate \(seed)\(name)")
    }
}
