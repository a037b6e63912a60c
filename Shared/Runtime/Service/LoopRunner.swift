// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Messaging
import ServiceLifecycle

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
        guard let start else { return }
        let loop = try ServiceLoop(service: makeService(), start: start)
        health.started()
        logger.info(
            "service is up",
            metadata: [
                "kafka": "\(configuration.kafka.bootstrapServers)", "database": "\(configuration.database)",
                "apps": "\(configuration.appsPath)", "trust": "\(configuration.trust.rawValue)",
                "client": "\(configuration.kafka.clientID)",
            ])
        try loop.run()
        logger.info("service has stopped")
    }
}
