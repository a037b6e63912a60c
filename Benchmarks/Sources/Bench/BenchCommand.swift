// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation

@main
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measures the services as processes of their own, and what their parts could do alone.",
        discussion: """
            Compare ratios inside one run: absolute numbers belong to the machine. Uses an embedded broker unless \
            KAFKA_BOOTSTRAP_SERVERS names one. BATCH_SIZE and SQLITE_SYNCHRONOUS are passed on to the services. \
            BENCH_PERF_DATA names a file that keeps what profile recorded. Ends with status 1 when a measurement is \
            worth nothing: a command without its reply, a reply that should not be, a warning in a service's log.
            """)

    enum Selection: String, CaseIterable, ExpressibleByArgument {
        case link, user, sync, verification, gateway, all

        var subjects: [Subject] { Subject(rawValue: rawValue).map { [$0] } ?? Subject.allCases }
    }

    enum Mode: String, CaseIterable, ExpressibleByArgument {
        case drain, latency, limits, growth, profile, all
    }

    @Argument(help: "link, user, sync, verification, gateway or all.")
    var selection = Selection.all

    @Argument(
        help: ArgumentHelp(
            "drain, latency, limits (a drain, and its parts alone), growth, profile, or all but profile.",
            discussion: "growth is for user; gateway has latency only."))
    var mode = Mode.all

    @Option(help: "sqlite or postgresql. Default: both.")
    var engine: [Engine] = []

    @Option(help: "Commands to drain. Default: depends on the service.")
    var commands: Int?

    @Option(help: "Commands a second for the latency. Default: what the service aims at.")
    var rate: Int?

    @Option(help: "How long the latency is measured, in seconds. Default: 20, with all services 10.")
    var seconds: Int?

    @Option(
        help: "Profiles stored before sync is drained, next to 1,000. Default: 1,000,000, with all services 100,000.")
    var profiles: Int?

    @Option(help: "HTTP connections to the gateway.")
    var connections = 200

    @Option(help: "Partitions of each topic.")
    var partitions = 12

    @Option(help: "The folder of the services' executables.")
    var binaries: String

    @Option(help: "The folder for the stores; it is on the disk that gets measured.")
    var folder: String

    @Option(help: "A PostgreSQL database whose content may be lost.")
    var databaseURL: String?

    func run() throws {
        say(Machine.line)
        var isValid = true
        for subject in selection.subjects {
            for engine in engine.isEmpty ? Engine.allCases : engine {
                let bench = Bench(
                    subject: subject, engine: engine, options: self, commands: commands ?? subject.defaultCommands,
                    rate: rate ?? subject.defaultRate, seconds: seconds ?? (selection == .all ? 10 : 20),
                    profiles: profiles ?? (selection == .all ? 100_000 : 1_000_000))
                isValid = bench.run(mode) && isValid
            }
        }
        guard isValid else { throw ExitCode.failure }
    }
}
