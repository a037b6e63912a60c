// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Messaging
import ServiceLifecycle

/// Runs the loop on a thread of its own, so that nothing ever blocks Swift's cooperative threads.
struct LoopRunner<Command: CommandService>: Service {
    let service: Command
    let configuration: ServiceConfiguration
    let health: LoopHealth
    let logger: Logger

    func run() async throws {
        let signals = LoopSignals()
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let thread = Thread { continuation.resume(with: Result { try runLoop(signals) }) }
                    thread.name = "identitybus-loop"
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
            Command.self, configuration: configuration, health: health, signals: signals, logger: logger)
        guard let start else { return }
        let loop = try ServiceLoop(service: service, start: start)
        health.started()
        logger.info(
            "service is up",
            metadata: [
                "kafka": "\(configuration.kafka.bootstrapServers)", "database": "\(configuration.database)",
                "apps": "\(configuration.appsPath)", "trust": "\(configuration.trust.rawValue)",
            ])
        try loop.run()
        logger.info("service has stopped")
    }
}
