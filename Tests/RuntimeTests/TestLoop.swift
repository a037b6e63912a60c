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
    static let apps =
        "apps: [{id: demo, keys: [{id: demo-backend, secret: demo-secret-demo-backend, scopes: [user.link]}]}]"

    let broker: TestBroker
    let folder: URL
    let health = LoopHealth()
    let trial = Trial()
    private let partitions: Int

    init(partitions: Int = 1) throws {
        self.partitions = partitions
        broker = try TestBroker(partitions: partitions)
        folder = FileManager.default.temporaryDirectory.appending(path: "identitybus-loop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(Self.apps.utf8).write(to: folder.appending(path: "apps.yaml"))
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
        let configuration = try configuration()
        let (health, trial) = (health, trial)
        let signals = LoopSignals()
        let ended = DispatchSemaphore(value: 0)
        let box = Box()
        let thread = Thread {
            do {
                let start = try LoopStart.prepare(
                    FakeService.self, configuration: configuration, health: health, signals: signals,
                    trial: trial, logger: .quiet)
                if let start { try ServiceLoop(service: service, start: start).run() }
            } catch {
                box.set("\(error)")
            }
            ended.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
        defer {
            signals.stop()
            ended.wait()
            #expect(box.value == nil)
        }
        try body()
    }

    private final class Box: Sendable {
        private let mutex = Mutex<String?>(nil)
        var value: String? { mutex.withLock { $0 } }
        func set(_ text: String) { mutex.withLock { $0 = text } }
    }
}
