// SPDX-License-Identifier: Apache-2.0

import Foundation
import Messaging
import Storage
import Synchronization
import TestKit
import Testing

@testable import Runtime

/// A loop on a thread of its own, against an embedded broker and a SQLite file.
final class TestLoop {
    let broker: TestBroker
    let folder: URL
    let health = LoopHealth()
    let trial = Trial()
    private let partitions: Int

    /// - Parameter broker: another loop's; else one of its own.
    init(partitions: Int = 1, broker: TestBroker? = nil) throws {
        self.partitions = partitions
        self.broker = try broker ?? TestBroker(partitions: partitions)
        folder = FileManager.default.temporaryDirectory.appending(path: "identitybus-loop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let apps =
            "apps: [{id: demo, keys: [{id: demo-backend, secret: demo-secret-demo-backend, scopes: [user.link]}]}]"
        try Data(apps.utf8).write(to: folder.appending(path: "apps.yaml"))
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func configuration() throws -> ServiceConfiguration {
        var environment = KafkaConfiguration.embeddedEnvironment
        environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.configuration.bootstrapServers
        environment["IDENTITYBUS_INTERNAL_KEY"] = "the-internal-key-of-the-tests"
        environment["IDENTITYBUS_APPS"] = folder.appending(path: "apps.yaml").path
        environment["DATA_DIR"] = folder.path
        environment["TOPIC_PARTITIONS"] = String(partitions)
        return try ServiceConfiguration(environment: environment, service: FakeService.name)
    }

    /// Runs the loop while `body` runs.
    func run(_ service: FakeService, _ body: () throws -> Void) throws {
        let running = try start(service)
        defer { #expect(running.stop() == nil) }
        try body()
    }

    /// Runs the loop until it ends by itself.
    /// - Returns: why it did; `nil` when it had to be stopped.
    func end(of service: FakeService, within limit: TimeInterval) throws -> String? {
        let running = try start(service)
        guard running.ended.wait(timeout: .now() + limit) == .success else {
            running.stop()
            return nil
        }
        return running.problem.value ?? "no problem"
    }

    private func start(_ service: FakeService) throws -> Running {
        let configuration = try configuration()
        let (health, trial) = (health, trial)
        let running = Running()
        let thread = Thread {
            do {
                let start = try LoopStart.prepare(
                    FakeService.self, configuration: configuration, health: health, signals: running.signals,
                    trial: trial, logger: .quiet)
                if let start { try ServiceLoop(service: service, start: start).run() }
            } catch {
                running.problem.set("\(error)")
            }
            running.ended.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
        return running
    }

    private struct Running: Sendable {
        let signals = LoopSignals()
        let ended = DispatchSemaphore(value: 0)
        /// What ended it.
        let problem = Box()

        @discardableResult
        func stop() -> String? {
            signals.stop()
            ended.wait()
            return problem.value
        }
    }

    private final class Box: Sendable {
        private let mutex = Mutex<String?>(nil)
        var value: String? { mutex.withLock { $0 } }
        func set(_ text: String) { mutex.withLock { $0 = text } }
    }
}
