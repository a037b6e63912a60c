// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Glibc
public import Logging
import Messaging
import Metrics
public import Observability
import ServiceLifecycle
import Storage
import UnixSignals

/// The `main` of every service: settings, logs, metrics, health server, the loop; SIGTERM and SIGINT drain and end it.
public enum ServiceMain {
    /// Runs until a signal ends it. What `makeService` throws ends the start like any other problem.
    /// Exit status: 0 after a graceful stop, 78 for a configuration problem or a store of another version, 1 otherwise.
    public static func run<Service: CommandService>(
        _ makeService: @autoclosure @escaping @Sendable () throws -> Service
    ) -> Never {
        run("identitybus-\(Service.name)") {
            let configuration = try ServiceConfiguration(
                environment: ProcessInfo.processInfo.environment, service: Service.name)
            if Service.needsInternalKey, configuration.keys.isEmpty {
                throw ConfigurationProblem(
                    "IDENTITYBUS_INTERNAL_KEY",
                    "is not set; the \(Service.name) service signs what it sends to other services with it")
            }
            let configurations = try configuration.ofEachLoop()
            try configuration.checkHosts()
            try configuration.checkFolder()
            let registry = bootstrap(configuration)
            let logger = Logger(label: "identitybus.\(Service.name)")
            logRemarks(on: configuration, logger)
            // Made and read here too, so that a mistake ends the start before anything else has begun.
            _ = try makeService()
            _ = try AppsSource(
                path: configuration.appsPath, keys: configuration.keys, weakSecrets: configuration.weakSecrets,
                logger: logger)
            let trial = Trial()
            let tracer = configuration.traces.map { OTLPTracer($0, logger: logger) }
            let loops = configurations.map {
                LoopRunner(makeService: makeService, configuration: $0, trial: trial, logger: logger, tracer: tracer)
            }
            try await run(loops, configuration, registry, logger, tracer)
        }
    }

    /// Runs `body` and ends the process with the exit statuses above; what ended it is one line on standard error.
    /// `--version` is the only argument: the program prints its version and ends. Any other ends it with 64.
    ///
    /// To be called by a `main` that is not `async`: the runtime of one that is has opened its own files before it calls
    /// `main`, and they would have the numbers of standard streams that the program was started without.
    public static func run(_ name: String, body: @escaping @Sendable () async throws -> Void) -> Never {
        StandardOutput.holdStreams()
        Task { await perform(name, body) }
        dispatchMain()
    }

    private static func perform(_ name: String, _ body: () async throws -> Void) async -> Never {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let version = ProgramVersion.answer(to: arguments, of: name) {
            StandardOutput.write(version)
            if let problem = StandardOutput.problem {
                complain("\(name): \(problem)")
                exit(74)
            }
            exit(0)
        }
        if !arguments.isEmpty {
            complain(
                "\(name): unknown arguments: \(arguments.joined(separator: " ")). The program takes --version or nothing; "
                    + "its settings are environment variables, which docs/operations.md lists")
            exit(64)
        }
        do {
            try await body()
            LineWriter.standardError.flush()
            exit(0)
        } catch let problem as any CustomStringConvertible & Error {
            let isConfiguration =
                problem is ConfigurationProblem || problem is AppsFile.Problem
                || problem is KafkaConfigurationError || problem is SchemaMismatch || problem is ListenFailure
            complain("\(name): \(problem)")
            exit(isConfiguration ? 78 : 1)
        } catch {
            complain("\(name): \(error)")
            exit(1)
        }
    }

    /// Says what of the environment nothing reads, or means nothing. To be called once, when logs are set up.
    public static func logRemarks(on configuration: ServiceConfiguration, _ logger: Logger) {
        for remark in Setting.remarks(on: ProcessInfo.processInfo.environment) {
            logger.warning("\(remark)", metadata: ["event": "\(remark.event.rawValue)"])
        }
        // No warning: other programs of the deployment may read it.
        let conventions = configuration.conventions
        guard !conventions.ignored.isEmpty else { return }
        let known = ConventionsOptIn.Category.allCases.map(\.rawValue).joined(separator: " and ")
        logger.info(
            "\(Setting.conventions.name) has values that mean nothing here, where \(known) are known",
            metadata: ["event": "settings.ignored", "values": "\(conventions.ignored.joined(separator: ","))"])
    }

    /// Sets up logs and metrics of the process. To be called once.
    public static func bootstrap(_ configuration: ServiceConfiguration) -> PrometheusRegistry {
        let registry = PrometheusRegistry(configuration: .identityBus)
        MetricsSystem.bootstrap(registry)
        LoggingSystem.bootstrap(
            { configuration.logFormat.handler(label: $0, level: configuration.logLevel, metadataProvider: $1) },
            metadataProvider: nil)
        return registry
    }

    private static func run<Service: CommandService>(
        _ loops: [LoopRunner<Service>], _ configuration: ServiceConfiguration, _ registry: PrometheusRegistry,
        _ logger: Logger, _ tracer: OTLPTracer?
    ) async throws {
        watchParent()
        let states = loops.map(\.health)
        let health = HealthWatch(
            service: Service.name, logger: logger, backlog: { .init(of: states) }, report: { .init(of: states) })
        let healthServer = HealthServer(configuration, health, registry, logger)
        // Stopped in reverse: the loops' last spans are sent too.
        let spans = tracer.map { ServiceGroupConfiguration.ServiceConfiguration(service: $0.exporter) }
        var group = ServiceGroupConfiguration(
            services: (spans.map { [$0] } ?? []) + [
                .init(service: healthServer), .init(service: health), .init(service: FreedMemory()),
                .init(service: LoopRunners(all: loops), successTerminationBehavior: .gracefullyShutdownGroup),
                .init(service: StopLimit(limit: configuration.drainTimeout + .seconds(18), logger: logger)),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = configuration.drainTimeout + .seconds(14)
        try await ServiceGroup(configuration: group).run()
    }

    /// A service that `identitybus up` started ends with it, also when that was killed: the embedded broker is gone
    /// then, and the next start needs the database.
    public static func watchParent() {
        guard let text = ProcessInfo.processInfo.environment["IDENTITYBUS_PARENT"], let parent = Int32(text) else {
            return
        }
        Task {
            while getppid() == parent { try await Task.sleep(for: .seconds(1)) }
            kill(getpid(), SIGTERM)
        }
    }

    /// To be called when the health server has bound its port: the log says it, and `identitybus up` is told.
    fileprivate static func healthIsBound(_ configuration: ServiceConfiguration, port: Int, logger: Logger) {
        logger.info("health server is up", metadata: ["event": "health.bound", "port": .stringConvertible(port)])
        tellParent("IDENTITYBUS_HEALTH_FILE", host: configuration.httpHost, port: port, logger: logger)
    }

    /// Writes the address `scheme://host:port` into the file that `variable` names, for `identitybus up`: it chooses
    /// no port, because another program could take it before the child does. Without the variable nothing happens.
    public static func tellParent(
        _ variable: String, scheme: String = "http", host: String, port: Int, logger: Logger
    ) {
        guard let path = ProcessInfo.processInfo.environment[variable], !path.isEmpty else { return }
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        let shown = reachable.contains(":") ? "[\(reachable)]" : reachable
        do {
            // Moved there whole: the reader sees all of it or nothing.
            try Data("\(scheme)://\(shown):\(port)\n".utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            logger.error(
                "address not reported",
                metadata: ["event": "health.not-reported", "file": "\(path)", "error": "\(error)"])
        }
    }

    private static func complain(_ line: String) {
        LineWriter.standardError.write(Array("\(line)\n".utf8))
        LineWriter.standardError.flush()
    }
}

extension HealthServer {
    /// The health server of a process: what the watch sees, and all metrics.
    public init(
        _ configuration: ServiceConfiguration, _ health: HealthWatch, _ registry: PrometheusRegistry, _ logger: Logger,
        measuring measure: @escaping @Sendable () -> Void = {}
    ) {
        self.init(
            program: health.service, host: configuration.httpHost, port: configuration.httpPort,
            health: { health.report },
            metrics: {
                health.measure()
                measure()
                return registry.exposition()
            }, logger: logger,
            onBound: { ServiceMain.healthIsBound(configuration, port: $0, logger: logger) })
    }
}

/// Ends the process when it has not ended for so long after it was asked to stop. A database that does not answer keeps
/// a loop's thread, and nothing can be asked of that. What was decided is stored, and the next owner publishes it.
private struct StopLimit: Service {
    let limit: Duration
    let logger: Logger

    func run() async throws {
        // Also when the others are ended because one of them has failed.
        try? await gracefulShutdown()
        let (limit, logger) = (limit, logger)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(limit.inMilliseconds))) {
            logger.error(
                "the stop has lasted for \(limit.inWords): what it waits for does not answer, so the process ends without it",
                metadata: ["event": "service.stop-cut"])
            LineWriter.standardError.flush()
            _exit(1)
        }
    }
}

/// The loops of a process. But for the ``Trial`` they share nothing, as replicas do not. A problem that ends one ends all.
struct LoopRunners<Command: CommandService>: Service {
    let all: [LoopRunner<Command>]

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for loop in all { group.addTask { try await loop.run() } }
            while try await group.next() != nil {}
        }
    }
}

/// Runs one loop on a thread of its own, so that nothing ever blocks Swift's cooperative threads.
struct LoopRunner<Command: CommandService>: Sendable {
    let makeService: @Sendable () throws -> Command
    let configuration: ServiceConfiguration
    let trial: Trial
    let health = LoopHealth()
    let logger: Logger
    let tracer: OTLPTracer?

    func run() async throws {
        let signals = LoopSignals()
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let thread = Thread { continuation.resume(with: Result { try runLoop(signals) }) }
                    thread.name = "identity-loop"
                    thread.stackSize = 8 << 20
                    thread.start()
                }
            } onGracefulShutdown: {
                signals.stop()
            }
        } onCancel: {
            signals.stopAtOnce()
        }
    }

    private func runLoop(_ signals: LoopSignals) throws {
        let start = try LoopStart.prepare(
            Command.self, configuration: configuration, health: health, signals: signals, trial: trial,
            logger: logger)
        guard var start else { return }
        start.tracer = tracer
        let loop = try ServiceLoop(service: makeService(), start: start)
        health.started()
        logger.info(
            "service is up",
            metadata: [
                "event": "service.up", "kafka": "\(configuration.kafka.bootstrapServers)",
                "database": "\(configuration.database)",
                "apps": "\(configuration.appsPath)", "trust": "\(configuration.trust.rawValue)",
                "client": "\(configuration.kafka.clientID)",
            ])
        try loop.run()
        logger.info("service has stopped", metadata: ["event": "service.stopped"])
    }
}
