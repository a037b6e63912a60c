// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Glibc
import Logging
import Messaging
import Metrics
import Observability
import Runtime
import ServiceLifecycle
import UnixSignals

/// The `main` of the gateway: settings, logs, metrics, health server, bus and API server.
public enum GatewayProcess {
    /// Runs until a signal ends it. Exit status: 0 after a graceful stop, 78 for a configuration problem, 1 otherwise.
    public static func run() -> Never {
        ServiceMain.run("identitybus-gateway") {
            try await start()
        }
    }

    private static func start() async throws {
        let configuration = try GatewayConfiguration(environment: ProcessInfo.processInfo.environment)
        try configuration.readAhead()
        let registry = ServiceMain.bootstrap(configuration.service)
        let logger = Logger(label: "identitybus.gateway")
        ServiceMain.logRemarks(on: configuration.service, logger)
        let source = try AppsSource(
            path: configuration.service.appsPath, reading: .gateway, keys: configuration.service.keys,
            weakSecrets: configuration.service.weakSecrets, logger: logger)
        source.logWarnings()
        let apps = source.apps
        raiseDescriptorLimit()
        ServiceMain.watchParent()
        let tracer = configuration.service.traces.map { OTLPTracer($0, logger: logger) }
        let bus = Bus(configuration: configuration, apps: apps, tracer: tracer, logger: logger)
        logger.info(
            "gateway starts",
            metadata: [
                "event": "service.start", "version": "\(Release.version)", "commit": "\(Release.commit)",
                "process": .stringConvertible(ProcessInfo.processInfo.processIdentifier),
                "kafka": "\(configuration.service.kafka.bootstrapServers)", "librdkafka": "\(KafkaLibrary.version)",
            ])
        let watch = HealthWatch(service: "gateway", logger: logger) { bus.health.report }
        let health = HealthServer(configuration.service, watch, registry, logger) {
            Gauge(label: "gateway_requests_in_flight").record(bus.inFlight)
        }
        let secrets = configuration.service.keys.isEmpty ? nil : DerivedSecrets(configuration.service.keys)
        let limits = RequestLimits(wrongCredentialsPerMinute: configuration.wrongCredentialsPerMinute)
        let reader = configuration.console == .no ? nil : ConsoleReader(configuration.service, logger)
        var api = API(
            bus: bus, secrets: secrets, limits: limits, replyTimeout: configuration.replyTimeout, now: { .now },
            reader: reader)
        if configuration.tls != nil { api.scheme = "https" }
        var places: [(Door, GatewayConfiguration.Place)] = [(.api, configuration.api)]
        if let admin = configuration.admin { places.append((.admin, admin)) }
        let certificates = try configuration.tls.map { try Certificates($0, logger) }
        let servers: [any Service] = places.map { door, place in
            APIServer(
                door: door, place: place, configuration: configuration, certificates: certificates, api: api,
                health: bus.health, console: door == .admin ? ConsoleFiles(configuration.console) : nil, tracer: tracer,
                logger: logger)
        }
        // Stopped in reverse: the API answers what is in progress while the bus still brings replies.
        var services: [any Service] = [health, watch, FreedMemory(), bus]
        if let tracer { services.insert(tracer.exporter, at: 0) }
        if let certificates { services.append(certificates) }
        services += servers
        services.append(Drain(delay: configuration.drainDelay, health: bus.health))
        var group = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) }, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = configuration.drainDelay + configuration.replyTimeout + .seconds(20)
        try await ServiceGroup(configuration: group).run()
        logger.info("gateway has stopped", metadata: ["event": "service.stopped"])
    }

    /// Each connection is a descriptor, and the usual soft limit of 1024 is for programs that use `select`.
    private static func raiseDescriptorLimit() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }
}
