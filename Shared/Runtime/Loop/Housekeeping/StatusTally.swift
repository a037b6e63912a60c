// SPDX-License-Identifier: Apache-2.0

package import Apps
package import Contracts
import Foundation
import Messaging
package import Observability
import Storage

/// What was decided since the status before. Pure.
struct StatusTally {
    private var since: ContinuousClock.Instant
    private var outcomes: [String: Int] = [:]
    private var reasons: [String: Int] = [:]
    private var batches = 0
    private var took = Duration.zero

    init(from now: ContinuousClock.Instant) { since = now }

    /// Reasons are codes of this program; more than this in ten seconds there cannot be.
    private static let mostReasons = 100

    /// - Parameter counts: of each type, outcome and reason, as ``LoopMetrics`` has them.
    mutating func add(_ counts: [[String]: Int], took duration: Duration) {
        batches += 1
        took += duration
        for (labels, count) in counts where labels.count == 3 {
            outcomes[labels[1], default: 0] += count
            guard !labels[2].isEmpty, reasons[labels[2]] != nil || reasons.count < Self.mostReasons else { continue }
            reasons[labels[2], default: 0] += count
        }
    }

    /// What there was, and begins anew.
    mutating func take(_ now: ContinuousClock.Instant) -> ReplicaStatus.Decided {
        defer { self = StatusTally(from: now) }
        let seconds = max(0.001, since.duration(to: now).inSeconds)
        return ReplicaStatus.Decided(
            seconds: seconds.rounded(toPlaces: 3), outcomes: outcomes, reasons: reasons,
            commitMilliseconds: batches == 0 ? nil : (took.inSeconds * 1000 / Double(batches)).rounded(toPlaces: 2))
    }
}

extension Double {
    /// For people: digits that nobody measures are left away.
    fileprivate func rounded(toPlaces places: Int) -> Double {
        let factor = pow(10, Double(places))
        return (self * factor).rounded() / factor
    }
}

extension HealthReport {
    /// What keeps the process from being ready.
    package var failures: [ReplicaStatus.Failure] {
        ready.filter { !$0.ok && $0.isRequired }.map { ReplicaStatus.Failure(name: $0.name, detail: $0.detail ?? "") }
    }
}

extension AppsSource {
    /// Which version of the apps file is in force.
    package var status: ReplicaStatus.Apps {
        ReplicaStatus.Apps(digest: String(digest.prefix(8)), isValid: problem == nil)
    }
}

extension ServiceLoop {
    /// Tells others how this replica is doing. What cannot be delivered is not heaped up: the next one says it anew.
    func tellStatus(_ now: ContinuousClock.Instant) {
        guard publisher.problem == nil, publisher.unbound < configuration.batchSize else { return }
        do {
            let record = try status(housekeeping.tally.take(now)).record(
                to: topics.status, id: UUID().uuidString.lowercased(), now: clock.time())
            publisher.publish([OutboxRecord(.event, record)])
        } catch {
            note(error)
        }
    }

    private func status(_ decided: ReplicaStatus.Decided) -> ReplicaStatus {
        let report = HealthReport(of: [health])
        let backlog = health.lag.backlog
        return ReplicaStatus(
            service: Service.name, replica: configuration.owner, version: Release.version, commit: Release.commit,
            startedAt: ProcessStart.time, isReady: report.isReady,
            failing: report.failures, apps: apps.status,
            partitions: partitions.all.count, waiting: backlog?.count, oldestSeconds: backlog?.oldest, decided: decided,
            deadLetters: watch.deadLetters.map { ReplicaStatus.DeadLetters(open: $0.open, oldestSeconds: $0.age) })
    }
}

/// When this process began.
package enum ProcessStart {
    package static let time = Timestamp.now
}
