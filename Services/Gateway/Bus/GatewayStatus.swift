// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Observability
import Runtime

/// What a gateway says of itself beside the services' replicas (docs/contracts.md "Status"), and when.
struct GatewayStatus {
    /// Whether the topic is there: a gateway makes none.
    var hasTopic = false
    private var next = ContinuousClock.now + .seconds(2)

    /// - Parameter waiting: how many requests wait for an answer.
    /// - Returns: `nil` when it is not time.
    mutating func due(
        _ now: ContinuousClock.Instant, _ configuration: ServiceConfiguration, _ report: HealthReport,
        _ apps: AppsSource, waiting: Int
    ) -> Record? {
        guard hasTopic, now >= next else { return nil }
        next = now + ReplicaStatus.period
        let status = ReplicaStatus(
            service: "gateway", replica: configuration.owner, version: Release.version, commit: Release.commit,
            startedAt: ProcessStart.time, isReady: report.isReady, failing: report.failures, apps: apps.status,
            partitions: 0, waiting: Int64(waiting))
        return try? status.record(to: configuration.topics.status, id: UUID().uuidString.lowercased(), now: .now)
    }
}
