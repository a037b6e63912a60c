// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Link
import Logging
import Runtime
import Sync
import TestKit
import User
import Verification

/// A service in the world: its store and its replicas, which are started again when they end.
final class Deployment {
    let service: SimulatedService
    let store: SimulatedStore
    fileprivate(set) var replicas: [Replica] = []
    fileprivate let launch: (Replica) -> Void
    fileprivate var generation = 0

    init(_ service: SimulatedService, _ store: SimulatedStore, launch: @escaping (Replica) -> Void) {
        (self.service, self.store, self.launch) = (service, store, launch)
    }
}

/// Everything there is in one simulation.
final class World {
    static let start = ContinuousClock.now

    let kit: Kit
    let scheduler: Scheduler
    let log: SimulatedLog
    private var groups: [String: SimulatedGroup] = [:]
    private(set) var deployments: [Deployment] = []
    private var all: [Replica] = []
    var violations: [String] = []
    /// What befell, for people.
    private(set) var notes: [String] = []
    private let isTracing: Bool
    private var isEnding = false
    /// What was told as removed before it was read, by partition and first offset.
    fileprivate(set) var gapsTold = 0

    init(_ kit: Kit, seed: UInt64, isTracing: Bool) {
        self.kit = kit
        self.isTracing = isTracing
        scheduler = Scheduler(seed: seed)
        log = SimulatedLog(scheduler)
        let topics = Topics()
        for service in SimulatedService.allCases.map(\.rawValue) {
            log.make(topics.commands(service), partitions: 2)
            log.make(topics.replies(to: service), partitions: 2)
            log.make(topics.events(service), partitions: 2)
            log.make(topics.deadLetters(service), partitions: 1)
        }
        log.make(topics.replies, partitions: 2)
        log.listeners.append { [weak self] written in
            self?.stir(written.place.topic)
            self?.note(Self.line(written))
        }
    }

    // MARK: Services

    func deploy(_ service: SimulatedService, replicas: Int, batchSize: Int) throws {
        var configuration = try kit.configuration(service)
        configuration.batchSize = batchSize
        let store = try SimulatedStore(kit.template(service), in: kit.folder, name: "\(service.rawValue)")
        let final = configuration
        let apps = kit.apps
        let launch: (Replica) -> Void
        switch service {
        case .link: launch = { $0.start(LinkService(), final, store, apps) }
        case .user: launch = { $0.start(UserService(), final, store, apps) }
        case .sync: launch = { $0.start(SyncService(aliasDelay: .zero), final, store, apps) }
        case .verification: launch = { $0.start(VerificationService(counterShard: 1), final, store, apps) }
        }
        let deployment = Deployment(service, store, launch: launch)
        deployments.append(deployment)
        for _ in 0..<replicas { deployment.replicas.append(start(deployment)) }
        for place in 0..<replicas { supervise(deployment, place) }
    }

    private func start(_ deployment: Deployment) -> Replica {
        deployment.generation += 1
        let replica = Replica("\(deployment.service.rawValue)-\(deployment.generation)", self)
        all.append(replica)
        deployment.launch(replica)
        return replica
    }

    /// Starts a replica anew when it has ended.
    private func supervise(_ deployment: Deployment, _ place: Int) {
        scheduler.after(scheduler.number(200_000...2_000_000)) { [self] in
            if isEnding { return }
            if deployment.replicas[place].isOver {
                deployment.replicas[place] = start(deployment)
                note("\(deployment.replicas[place]) starts")
            }
            supervise(deployment, place)
        }
    }

    var replicas: [Replica] { deployments.flatMap(\.replicas) }

    func group(_ name: String, _ topic: String) -> SimulatedGroup {
        if let known = groups[name] { return known }
        let made = SimulatedGroup(topic: topic, log: log)
        groups[name] = made
        return made
    }

    var allGroups: [SimulatedGroup] { groups.sorted { $0.key < $1.key }.map(\.value) }

    private func stir(_ topic: String) {
        for deployment in deployments {
            for replica in deployment.replicas where replica.reads(topic) { replica.stir() }
        }
    }

    /// Ends every thread.
    func end() {
        isEnding = true
        replicas.forEach { $0.crash() }
        while all.contains(where: { !$0.isOver }) { scheduler.pause(10_000) }
        deployments.forEach { $0.store.close() }
        scheduler.forgetAll()
    }

    // MARK: Telling

    private static func line(_ written: SimulatedLog.Written) -> String {
        let envelope = Envelope(written.record)
        let told = envelope?.data["commandId"].map { " to \($0): \(envelope?.data["status"] ?? "")" } ?? ""
        return "\(written.place) @\(written.offset) \(envelope?["type"] ?? "?") \(envelope?["id"] ?? "")\(told)"
    }

    func note(_ text: @autoclosure () -> String) {
        guard isTracing else { return }
        let time = Double(scheduler.now) / 1_000_000
        notes.append(String(format: "%9.4f s  ", time) + text())
    }

    func logger(of replica: Replica) -> Logger {
        Logger(label: "simulation") { _ in
            var handler = NotingHandler(world: World.Reference(world: self), replica: replica.name)
            handler.logLevel = isTracing ? .info : .error
            return handler
        }
    }

    /// `@unchecked Sendable`: used by the thread whose turn it is, and no other.
    fileprivate struct Reference: @unchecked Sendable {
        weak var world: World?
    }
}

/// Puts what a replica logs among the notes.
private struct NotingHandler: LogHandler {
    let world: World.Reference
    let replica: String
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let text = "\(event.message)"
        if text.hasPrefix("records were removed") { world.world?.gapsTold += 1 }
        let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        world.world?.note("\(replica): \(text) \(details.joined(separator: " "))")
    }
}
