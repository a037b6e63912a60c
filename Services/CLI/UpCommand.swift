// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import EmbeddedBroker
import Foundation
import Logging
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

struct UpCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Runs a whole deployment on this machine until Ctrl-C.",
        discussion: """
            Starts an embedded Kafka broker (or uses $KAFKA_BOOTSTRAP_SERVERS), and every service and the HTTP \
            gateway as child processes with SQLite under --data-dir. A child that dies is started again.
            """)

    @OptionGroup var files: DeploymentFiles

    @Option(help: "Kafka's address. Default: $KAFKA_BOOTSTRAP_SERVERS, else an embedded broker.")
    var bootstrapServers: String?

    @Flag(help: "Start the broker and no service.")
    var brokerOnly = false

    @Flag(
        help: """
            Show the console, and fill the deployment with 1,000 people and a dozen cases that docs/console.md tells. Needs \
            the demo apps.
            """)
    var demo = false

    @Flag(help: "Print one JSON line for each thing that happens.")
    var json = false

    private var folder: DataFolder { files.folder }

    /// What is waited for, said after three seconds, when it changes, and every ten seconds.
    private struct Waiting {
        private let began = ContinuousClock.now
        private var said: (problems: [String], at: ContinuousClock.Instant)?

        mutating func lines(_ children: [ChildService]) -> [String] {
            let now = ContinuousClock.now
            guard began.duration(to: now) > .seconds(3) else { return [] }
            let problems = Dictionary(grouping: children.filter { !$0.isReady }, by: { $0.problem ?? "starting" })
                .map { problem, children in "\(children.map(\.name).joined(separator: ", ")): \(problem)" }.sorted()
            if problems.isEmpty { return [] }
            if let said {
                let pause = said.problems == problems ? Duration.seconds(10) : .seconds(3)
                guard said.at.duration(to: now) > pause else { return [] }
            }
            said = (problems, now)
            let seconds = began.duration(to: now).components.seconds
            return problems.map { "\($0) (\(seconds) s)" }
        }
    }

    private static let gateway = "gateway"
    /// The variable that names the file into which the gateway writes where its API is served.
    private static let gatewayReport = "IDENTITYBUS_GATEWAY_FILE"
    /// The same of its admin port.
    private static let adminReport = "IDENTITYBUS_ADMIN_FILE"

    func run() throws {
        let interruption = Interruption()
        let lock = try FolderLock(folder: folder.path)
        defer { withExtendedLifetime(lock) {} }
        var environment = ProcessInfo.processInfo.environment
        for remark in Setting.remarks(on: environment) { complain("warning   \(remark)".harmless) }
        try internalKey(&environment)
        let broker = try broker(&environment)
        defer { broker?.close() }
        let address = environment["KAFKA_BOOTSTRAP_SERVERS"] ?? ""
        environment["DATA_DIR"] = folder.path
        environment["IDENTITYBUS_APPS"] = files.apps.path
        environment["LOG_FORMAT"] = environment["LOG_FORMAT"] ?? "text"
        environment["IDENTITYBUS_PARENT"] = String(ProcessInfo.processInfo.processIdentifier)
        let children = try brokerOnly ? [] : children(environment)
        // Also those that a killed `up` left behind: who finds them must not talk to what is gone.
        removeAddresses()
        defer {
            // The gateway first: what it waits for is still answered.
            children.reversed().forEach { $0.stop() }
            removeAddresses()
        }
        try write("\(address)\n", to: folder.bootstrapFile)
        tell("broker", "\(address)\(broker == nil ? "" : "  (embedded, in memory)")", ["address": .string(address)])
        try tend(children, until: interruption)
        tell("stopping", "")
    }

    /// Starts the children, keeps them running and says what becomes of them.
    private func tend(_ children: [ChildService], until interruption: Interruption) throws {
        var isAnnounced = false
        var health = ""
        var waiting = Waiting()
        while !interruption.isRequested, !Terminal.isOutputGone {
            for child in children {
                try child.tend {
                    tell("service", "\(child.name) \($0)", ["service": .string(child.name), "ended": .string($0)])
                }
            }
            if !isAnnounced { for line in waiting.lines(children) { tell("waiting", line) } }
            let lines = children.compactMap { child in child.address().map { "\(child.name) \($0)\n" } }.joined()
            if lines != health {
                try write(lines, to: folder.healthFile)
                health = lines
            }
            if !isAnnounced, children.allSatisfy(\.isReady) {
                isAnnounced = true
                announce(children)
                if demo, !brokerOnly { try play(unless: { interruption.isRequested }) }
            }
            usleep(100_000)
        }
    }

    private func announce(_ children: [ChildService]) {
        for child in children {
            tell(
                "service", "\(child.name)  pid \(child.processID)  log \(child.logPath)",
                [
                    "service": .string(child.name), "pid": .number(JSONNumber(Int(child.processID))),
                    "log": .string(child.logPath),
                ])
        }
        if let gateway = children.last?.address(Self.gatewayReport) {
            tell("gateway", gateway, ["address": .string(gateway)])
        }
        if let admin = children.last?.address(Self.adminReport) {
            let mode = try? ConsoleMode(EnvironmentSettings(ProcessInfo.processInfo.environment))
            let hasConsole = demo || mode != .no
            let address = hasConsole ? "\(admin)/console" : admin
            let hint = demo ? "  sign in with demo-support.demo-secret-demo-support" : ""
            tell(hasConsole ? "console" : "admin", address + hint, ["address": .string(address)])
        }
        let given = Self.keyVariables.first(where: isGiven)
        tell("ready", "address in \(folder.bootstrapFile), internal key in \(given ?? folder.internalKeyFile)")
    }

    /// Fills the deployment, once: who comes again finds the people as they were left.
    private func play(unless stop: @escaping () -> Bool) throws {
        let mark = "\(folder.path)/demo"
        if FileManager.default.fileExists(atPath: mark) { return }
        let stage = DemoStage(
            try Deployment.parse(["--data-dir", folder.path, "--apps", files.apps.path]), unless: stop)
        defer { stage.close() }
        try DemoPeople(stage: stage).arrive { tell("demo", $0) }
        try write("", to: mark)
        tell("demo", "done")
    }

    /// Says what has happened.
    /// - Parameter members: what of it programs want, each by itself.
    private func tell(_ event: String, _ text: String, _ members: JSONObject = [:]) {
        guard json else {
            return say(text.isEmpty ? event : event.padding(toLength: 10, withPad: " ", startingAt: 0) + text)
        }
        var line: JSONObject = ["event": .string(event)]
        for member in members { line[member.name] = member.value }
        if members.isEmpty, !text.isEmpty { line["text"] = .string(text) }
        say(json: .object(line))
    }

    /// The services and, last, the gateway, not started.
    private func children(_ environment: [String: String]) throws -> [ChildService] {
        let reports = "\(folder.path)/run"
        try makeFolder(reports)
        let gatewayEnvironment = try gatewayEnvironment(environment)
        return (serviceNames + [Self.gateway]).map { name in
            var files = [ChildService.healthReport: "\(reports)/\(name).health"]
            if name == Self.gateway {
                files[Self.gatewayReport] = folder.gatewayFile
                if gatewayEnvironment["GATEWAY_ADMIN_PORT"] != nil { files[Self.adminReport] = folder.adminFile }
            }
            return ChildService(
                name: name, environment: name == Self.gateway ? gatewayEnvironment : environment, reports: files,
                logDirectory: "\(folder.path)/logs")
        }
    }

    /// The gateway faces the network: it gets the keys that it needs and neither the internal key nor the database.
    private func gatewayEnvironment(_ environment: [String: String]) throws -> [String: String] {
        let keys = try DeploymentKeys(environment: EnvironmentSettings(environment))
        var environment = environment
        for name in ["IDENTITYBUS_INTERNAL_KEY", "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS", "DATABASE_URL", Salts.variable] {
            environment[name] = nil
            environment["\(name)_FILE"] = nil
        }
        if demo {
            environment["CONSOLE"] = "demo"
            environment["GATEWAY_ADMIN_PORT"] = environment["GATEWAY_ADMIN_PORT"] ?? "0"
        }
        environment["IDENTITYBUS_GATEWAY_KEYS_FILE"] = nil
        environment["IDENTITYBUS_GATEWAY_KEYS"] = keys.text(for: DeploymentKeys.gatewayPurposes)
        return environment
    }

    private func removeAddresses() {
        for path in [folder.bootstrapFile, folder.gatewayFile, folder.adminFile, folder.healthFile] {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// The embedded broker, unless the environment names one.
    private func broker(_ environment: inout [String: String]) throws -> EmbeddedBroker? {
        if let given = bootstrapServers { environment["KAFKA_BOOTSTRAP_SERVERS"] = given }
        if let given = environment["KAFKA_BOOTSTRAP_SERVERS"], !given.isEmpty { return nil }
        environment.merge(KafkaConfiguration.embeddedEnvironment) { given, _ in given }
        // There is one of each service here: one that fails and is started again goes on at once.
        environment.merge([KafkaConfiguration.instanceVariable: "up"]) { given, _ in given }
        // The address is not known before the broker runs; any will do to see whether the other settings are right.
        environment["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:1"
        for name in serviceNames { _ = try ServiceConfiguration(environment: environment, service: name) }
        // Those that apps have for themselves too: what nobody makes here, a client makes by asking, with four partitions.
        let apps = (try? files.apps.directory()) ?? AppDirectory([])
        let topics = DeploymentTopics(try TopicPlan(EnvironmentSettings(environment)), apps: apps)
        let broker = try EmbeddedBroker(
            topics: topics.specs, dating: { Topics.isOfDeadLetterActions($0) }, logger: .quiet)
        environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrapServers
        return broker
    }

    private static let keyVariables = ["IDENTITYBUS_INTERNAL_KEY", "IDENTITYBUS_INTERNAL_KEY_FILE"]

    private func isGiven(_ variable: String) -> Bool {
        ProcessInfo.processInfo.environment[variable].map { !$0.isEmpty } ?? false
    }

    /// The key of the environment, of an earlier run, or a new one.
    private func internalKey(_ environment: inout [String: String]) throws {
        if Self.keyVariables.contains(where: isGiven) { return }
        let path = folder.internalKeyFile
        if !FileManager.default.fileExists(atPath: path) {
            let key = (0..<32).map { _ in UInt8.random(in: 0...255) }.hex
            let isWritten = FileManager.default.createFile(
                atPath: path, contents: Data("\(key)\n".utf8), attributes: [.posixPermissions: 0o600])
            guard isWritten else { throw Self.unwritable(path, String(cString: strerror(errno)).lowercased()) }
        }
        environment["IDENTITYBUS_INTERNAL_KEY_FILE"] = path
        environment["IDENTITYBUS_INTERNAL_KEY"] = nil
    }

    /// Moved there whole: nobody reads half a file.
    private func write(_ text: String, to path: String) throws {
        do {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw Self.unwritable(path, Problem(error).cause)
        }
    }

    private static func unwritable(_ path: String, _ cause: String) -> Problem {
        Problem(
            .noRight, "\(path) cannot be written: \(cause).",
            "--data-dir, or DATA_DIR, names a folder that `identitybus up` may write.")
    }

    private func makeFolder(_ path: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            var problem = Problem(error)
            problem.what = "the folder \(path) cannot be made: \(problem.cause)."
            problem.advice = ["--data-dir, or DATA_DIR, names a folder that `identitybus up` may write."]
            throw problem
        }
    }
}
