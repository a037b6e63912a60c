// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation

/// One measurement: a deployment is made, measured once and thrown away. What was measured is one line of JSON on standard
/// output. `scripts/bench` repeats measurements, interleaves them and makes tables of them.
@main
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identitybus-bench",
        abstract: "One measurement of the services, as processes of their own.",
        discussion: """
            Uses an embedded broker unless KAFKA_BOOTSTRAP_SERVERS names one. BATCH_SIZE, SQLITE_SYNCHRONOUS, \
            JOURNAL_RETENTION_HOURS and, with PostgreSQL, LOOPS are passed on to the services. BENCH_PERF_DATA names a file that keeps what profile \
            recorded. Ends with status 1 when the measurement is worth nothing: a command without its reply or with two, \
            a reply that should not be or that nobody signed, a warning in a service's log.
            """)

    enum Mode: String, CaseIterable, ExpressibleByArgument {
        case drain, latency, growth, profile, parts, facts
    }

    @Argument(help: "link, user, sync, check, login or gateway.")
    var subject: Subject

    @Argument(
        help: ArgumentHelp(
            "drain, latency, growth, profile, parts or facts.",
            discussion: "growth is for user, parts for link and check, facts for link; gateway has latency only."))
    var mode: Mode

    @Option(help: "sqlite or postgresql.")
    var engine: Engine

    @Option(help: "Commands to drain.")
    var commands = 10_000

    @Option(help: "Commands a second for the latency.")
    var rate = 100

    @Option(help: "How long the latency is measured, in seconds.")
    var seconds = 10

    @Option(help: "Profiles stored before sync is measured.")
    var profiles = 1000

    @Option(
        help: "Decisions in the store of the service beforehand; the oldest are due to be forgotten.")
    var remembered = 0

    @Option(help: "HTTP connections to the gateway.")
    var connections = 200

    @Flag(help: "Of the gateway, measure HTTP first.")
    var httpFirst = false

    @Option(help: "Partitions of each topic.")
    var partitions = 12

    @Option(help: "The folder of the services' executables.")
    var binaries: String

    @Option(help: "The folder for the stores; it is on the disk that gets measured.")
    var folder: String

    @Option(help: "A PostgreSQL database whose schemas identity_* may be dropped.")
    var databaseURL: String?

    @Option(help: "The process id of PostgreSQL's first process, to count what its processes use.")
    var postgresPID: Int32?

    @Option(help: "The process id of Kafka, likewise.")
    var brokerPID: Int32?

    @Option(help: "Puts a program and its arguments, divided by spaces, in front of the services that are measured.")
    var wrapper: String?

    @Option(help: "A program and its arguments, divided by spaces, that is measured in the place of all services.")
    var instead: String?

    @Option(help: "A folder for what went in, what came out, and the rows of the link service afterwards.")
    var dump: String?

    @Option(help: "The program that consumes and produces raw, to run on the same topic after a drain.")
    var floor: String?

    func run() throws {
        var report = Report(subject: subject, mode: mode, engine: engine)
        do {
            try Bench(options: self).run(&report)
        } catch {
            report.problems.append("no measurement: \(error)")
        }
        try report.print()
        guard report.problems.isEmpty else { throw ExitCode.failure }
    }
}

extension Engine: ExpressibleByArgument {}
extension Subject: ExpressibleByArgument {}
