// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import Messaging
import Runtime
import Supervision

/// The replicas of a run, and what is done to them: one injury after the other, so that each can be told by its effect.
final class ChaosScene {
    private final class Replica {
        let service: String
        let child: ChildService
        /// Until then it is left as it is.
        var isHeld = false
        var isPaused = false
        /// Whether its next end is our doing.
        var isExpectedToEnd = false

        init(_ service: String, _ child: ChildService) {
            self.service = service
            self.child = child
        }
    }

    private enum State {
        case quiet(until: Double)
        case injured(ChaosHistory.Injury, [Replica], until: Double)
        /// All runs again since then, and has to catch up with what waited.
        case healing(ChaosHistory.Injury, since: Double?)
    }

    private let ground: ChaosGround
    private let replicas: [Replica]
    private let perService: Int
    private var random: SeededGenerator
    private var state: State
    private var plan: [ChaosHistory.Injury.Kind] = []

    /// Replicas of each service; SQLite has room for one.
    init(_ ground: ChaosGround, replicas count: Int, seed: UInt64) throws {
        self.ground = ground
        perService = ground.isPostgreSQL ? count : 1
        random = SeededGenerator(seed: seed)
        state = .quiet(until: 0)
        let folder = "\(ground.folder)/run"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        replicas = serviceNames.flatMap { service in
            (1...(ground.isPostgreSQL ? count : 1)).map { number in
                let name = "\(service)-\(number)"
                let child = ChildService(
                    name: name, service: service, environment: ground.environment,
                    reports: [ChildService.healthReport: "\(folder)/\(name).health"],
                    logDirectory: "\(ground.folder)/logs")
                return Replica(service, child)
            }
        }
    }

    var description: String {
        "\(serviceNames.joined(separator: ", ")), \(perService) \(perService == 1 ? "replica" : "replicas") of each"
    }

    var isReady: Bool { replicas.allSatisfy(\.child.isReady) }
    var isQuiet: Bool { if case .quiet = state { true } else { false } }

    /// Starts what is not running.
    func tend(ended: (String) -> Void) throws {
        for replica in replicas where !replica.isHeld {
            try replica.child.tend { reason in
                if !replica.isExpectedToEnd { ended("\(replica.child.name) by itself \(reason)") }
                replica.isExpectedToEnd = false
            }
        }
    }

    /// Goes on with the present injury, or begins the next one.
    /// - Parameters:
    ///   - mayBegin: a new one.
    ///   - oldestUnanswered: when the command was sent that waits for its final answer the longest.
    /// - Returns: an injury that has just begun or is over, to be noted in place of the one that began then.
    func step(_ now: Double, mayBegin: Bool, oldestUnanswered: Double?) -> ChaosHistory.Injury? {
        switch state {
        case .quiet(let until):
            guard mayBegin, now >= until else { return nil }
            return begin(now)
        case .injured(let injury, let hurt, let until):
            guard now >= until || !mayBegin else { return nil }
            for replica in hurt { heal(replica) }
            state = .healing(injury, since: nil)
            return nil
        case .healing(let injury, since: nil):
            if isReady { state = .healing(injury, since: now) }
            return nil
        case .healing(var injury, let since?):
            // An answer that does not come at all must not keep everything waiting.
            guard oldestUnanswered ?? now >= since || now > since + Self.patience else { return nil }
            injury.end = now
            state = .quiet(until: now + Double.random(in: 2...5, using: &random))
            return injury
        }
    }

    private static let patience = 60.0

    /// Ends all processes: asks first.
    func stop() {
        for replica in replicas {
            heal(replica)
            replica.child.signal(SIGTERM)
        }
        for replica in replicas { replica.child.stop() }
    }

    private func heal(_ replica: Replica) {
        if replica.isPaused { replica.child.signal(SIGCONT) }
        replica.isPaused = false
        replica.isHeld = false
    }

    // MARK: Injuries

    private func begin(_ now: Double) -> ChaosHistory.Injury {
        if plan.isEmpty {
            plan = ChaosHistory.Injury.Kind.allCases.filter { $0 != .disconnect || ground.isPostgreSQL }
            plan.shuffle(using: &random)
        }
        let kind = plan.removeFirst()
        let victim = replicas[Int.random(in: 0..<replicas.count, using: &random)]
        var injury = ChaosHistory.Injury(kind: kind, service: victim.service, what: "", begin: now)
        var hurt = [victim]
        var duration = Double.random(in: 0...3, using: &random)
        let session = ground.kafka.sessionTimeout.inSeconds
        switch kind {
        case .kill:
            injury.what = "kill -9 of \(victim.child.name)"
            // Sometimes it is back before anybody misses it, sometimes another one has to take over.
            if Bool.random(using: &random) { duration += session + 2 }
            if perService > 1 { injury.limit = max(12, session + 2) }
            end(victim, SIGKILL)
        case .pause:
            duration += session + 1
            injury.what =
                "\(victim.child.name) frozen for \(ChaosHistory.time(duration)) (its session is \(ChaosHistory.time(session)))"
            victim.isPaused = true
            victim.isHeld = true
            victim.child.signal(SIGSTOP)
        case .stop:
            injury.what = "SIGTERM to \(victim.child.name)"
            end(victim, SIGTERM)
        case .killAll:
            hurt = replicas.filter { $0.service == victim.service }
            injury.what = "kill -9 of every \(victim.service)"
            for replica in hurt { end(replica, SIGKILL) }
        case .disconnect:
            hurt = []
            injury.service = ""
            do {
                injury.what = "\(try ground.disconnect()) connections of PostgreSQL ended"
            } catch {
                injury.what = "connections of PostgreSQL: not ended (\(error))"
            }
        }
        state = .injured(injury, hurt, until: now + duration)
        return injury
    }

    private func end(_ replica: Replica, _ signal: Int32) {
        replica.isExpectedToEnd = true
        replica.isHeld = true
        replica.child.signal(signal)
    }
}
