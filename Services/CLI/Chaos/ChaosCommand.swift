// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser
import Contracts
import Foundation
import Observability
import Runtime
import Supervision

package struct ChaosCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "chaos",
        abstract:
            "Injures services under load, on your Kafka and PostgreSQL, and checks that nothing was lost or doubled.",
        discussion: """
            Runs services of its own as child processes, with topics, groups and schemas under names that nobody else has, \
            and removes them at the end. Kafka: the KAFKA_* variables of the services; without KAFKA_BOOTSTRAP_SERVERS the \
            embedded broker. Store: DATABASE_URL; without it SQLite, with one replica of each service. Exit status 0: \
            passed; 3: failed; any other: no verdict, and why.
            """)

    @Option(parsing: .unconditional, help: "How long to send commands and injure services.")
    var minutes = 3.0

    @Option(
        help: "Repeats the choice of commands and injuries, not their timing. Default: a new one, which is printed.")
    var seed: UInt64?

    @Option(parsing: .unconditional, help: "Commands a second.")
    var rate = 30.0

    @Option(parsing: .unconditional, help: "Replicas of each service, on PostgreSQL.")
    var replicas = 2

    @Option(parsing: .unconditional, help: "Seconds to wait at most for the last answers.")
    var settle = 120.0

    @Option(help: "Writes a report to this file, as JSON.")
    var report: String?

    @Flag(help: "Leave topics, schemas and logs where they are.")
    var keep = false

    @Flag(help: "Print the report as one JSON line, and what happens meanwhile to standard error.")
    var json = false

    @OptionGroup var debugging: KafkaDebugging

    package init() {}

    package func validate() throws {
        guard minutes > 0, rate > 0, rate <= 1000, (1...10).contains(replicas), settle > 0 else {
            throw ValidationError(
                "--minutes, --rate (at most 1000) and --settle must be above 0, --replicas from 1 to 10")
        }
    }

    package func run() throws {
        let interruption = Interruption()
        let seed = seed ?? UInt64.random(in: 0...UInt64(UInt32.max))
        let ground = try start()
        narrate("chaos     seed \(seed), \(ground.brokerName), \(ground.storeName)")
        narrate(
            "scratch   topics \(ground.topics.prefix)*, schemas \(ground.environment["DATABASE_SCHEMA_PREFIX"] ?? "")*, logs in \(ground.folder)/logs"
        )
        var isFailed = true
        defer { clear(ground, isFailed: isFailed) }
        let history: ChaosHistory
        do {
            history = try play(ground, seed, interruption)
        } catch {
            isFailed = !interruption.isRequested
            var problem = Problem(error)
            problem.what = "no verdict: \(problem.what)"
            throw problem
        }
        let settings = ChaosReport.Settings(
            seed: seed, minutes: minutes, rate: rate, replicas: ground.isPostgreSQL ? replicas : 1,
            broker: ground.isEmbedded ? "embedded" : "Kafka", store: ground.isPostgreSQL ? "PostgreSQL" : "SQLite",
            topicPrefix: ground.topics.prefix)
        let result = ChaosReport(history, settings: settings)
        if let report { try result.json().write(to: URL(filePath: report), options: .atomic) }
        isFailed = !result.isPassed
        for line in result.lines { narrate(line) }
        if json { say(String(decoding: try result.json(pretty: false), as: UTF8.self).harmless) }
        if isFailed { throw ExitCode(ExitStatus.refused.rawValue) }
    }

    /// What happens meanwhile.
    private func narrate(_ line: String) { json ? complain(line) : say(line) }

    /// Says in one line why it cannot begin.
    private func start() throws -> ChaosGround {
        var ground: ChaosGround?
        do {
            let made = try ChaosGround.make(debugging)
            ground = made
            try made.prepare()
            return made
        } catch {
            for line in ground?.remove() ?? [] { complain(line.harmless) }
            var problem = Problem(error)
            problem.what = "cannot start: \(problem.what)"
            throw problem
        }
    }

    private func play(_ ground: ChaosGround, _ seed: UInt64, _ interruption: Interruption) throws -> ChaosHistory {
        let scene = try ChaosScene(ground, replicas: replicas, seed: seed &+ 1)
        defer { scene.stop() }
        let traffic = try ChaosTraffic(ground, seed: seed, rate: rate)
        defer { traffic.close() }
        func tell(_ line: String) { narrate("\(ChaosHistory.time(traffic.now))".leftPadded(to: 8) + "  \(line)") }

        /// Works until it is done, or the time is up.
        func work(
            for limit: Double, isSending: Bool = false, isInjuring: Bool = false, until isDone: () -> Bool = { false }
        ) throws {
            let end = traffic.now + limit
            var lastTold = traffic.now
            while !interruption.isRequested, traffic.now < end, !isDone() {
                try scene.tend { what in
                    tell(what)
                    traffic.note { $0.unexpectedEnds.append("\(what) at \(ChaosHistory.time(traffic.now))") }
                }
                if let injury = scene.step(
                    traffic.now, mayBegin: isInjuring, oldestUnanswered: traffic.oldestUnanswered)
                {
                    note(injury, traffic, tell)
                }
                try traffic.step(isSending: isSending)
                if traffic.now - lastTold >= 10 {
                    lastTold = traffic.now
                    tell("\(traffic.sent) sent, \(traffic.unanswered) without an answer yet")
                }
            }
        }

        tell("starting \(scene.description)")
        try work(for: 120) { scene.isReady }
        guard scene.isReady || interruption.isRequested else {
            throw Problem(
                .unanswered, "the services were not ready within 120 s.", "Their logs are in \(ground.folder)/logs.")
        }
        tell("ready; \(rate.formatted()) commands a second for \(minutes.formatted()) minutes")
        try work(for: 3, isSending: true)
        try work(for: minutes * 60, isSending: true, isInjuring: true)
        tell("no more injuries; \(traffic.unanswered) without an answer yet")
        try work(for: settle) { scene.isQuiet && traffic.isAtRest }
        tell("asking the services what they hold")
        try traffic.ask(atMost: 500)
        try work(for: settle / 2) { traffic.isAtRest }
        // Events may come behind replies.
        try work(for: 10) { traffic.now - traffic.lastRecord > 2 }
        if interruption.isRequested { throw Problem(.interrupted, "interrupted") }
        return traffic.history
    }

    private func note(_ injury: ChaosHistory.Injury, _ traffic: ChaosTraffic, _ tell: (String) -> Void) {
        if injury.end == nil {
            tell(injury.what)
            return traffic.note { $0.injuries.append(injury) }
        }
        traffic.note { $0.injuries[$0.injuries.count - 1] = injury }
        let recovery = ChaosRecovery(injury, in: traffic.history)
        tell(
            "  well again; a command waited for its first answer \(recovery.map { ChaosHistory.time($0.seconds) } ?? "0 s") at most"
        )
    }

    private func clear(_ ground: ChaosGround, isFailed: Bool) {
        if keep { return narrate("kept      topics \(ground.topics.prefix)*, the schemas and \(ground.folder)") }
        let left = ground.remove(keepingLogs: isFailed)
        for line in left { complain(line.harmless) }
        if left.isEmpty { narrate("removed   topics, groups and schemas of this run") }
        if isFailed { narrate("logs      \(ground.folder)/logs") }
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
