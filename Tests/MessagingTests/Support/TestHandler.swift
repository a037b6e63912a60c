// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// A rebalance handler that remembers what it was told.
final class TestHandler: RebalanceHandler {
    var starts: [TopicPartition: Int64] = [:]
    /// Where partitions start that `starts` does not name.
    var otherwise = KafkaOffset.beginning
    var assigned: [[TopicPartition]] = []
    var revoked: [[TopicPartition]] = []
    var lost: [[TopicPartition]] = []
    var onAssign: (([TopicPartition]) -> Void)?
    var onRevoke: (([TopicPartition]) -> Void)?

    init(starts: [TopicPartition: Int64] = [:], otherwise: Int64 = KafkaOffset.beginning) {
        self.starts = starts
        self.otherwise = otherwise
    }

    func partitionsAssigned(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        assigned.append(partitions)
        onAssign?(partitions)
        return Dictionary(uniqueKeysWithValues: partitions.map { ($0, starts[$0] ?? otherwise) })
    }

    func partitionsRevoked(_ partitions: [TopicPartition]) {
        revoked.append(partitions)
        onRevoke?(partitions)
    }

    func partitionsLost(_ partitions: [TopicPartition]) {
        lost.append(partitions)
    }
}
