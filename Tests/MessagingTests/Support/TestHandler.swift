// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging

/// A rebalance handler that remembers what it was told.
final class TestHandler: RebalanceHandler {
    var starts: [TopicPartition: Int64] = [:]
    var assigned: [[TopicPartition]] = []
    var revoked: [[TopicPartition]] = []
    var lost: [[TopicPartition]] = []
    var onAssign: (([TopicPartition]) -> Void)?
    var onRevoke: (([TopicPartition]) -> Void)?

    init(starts: [TopicPartition: Int64] = [:]) {
        self.starts = starts
    }

    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        assigned.append(partitions)
        onAssign?(partitions)
        return starts
    }

    func partitionsRevoked(_ partitions: [TopicPartition]) {
        revoked.append(partitions)
        onRevoke?(partitions)
    }

    func partitionsLost(_ partitions: [TopicPartition]) {
        lost.append(partitions)
    }
}
