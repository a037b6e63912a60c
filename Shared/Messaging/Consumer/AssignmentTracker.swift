// SPDX-License-Identifier: Apache-2.0

/// What is assigned, and which of the records just read must not be returned any more. Pure state, no I/O.
struct AssignmentTracker {
    private(set) var partitions: Set<TopicPartition> = []
    private var removed: Set<TopicPartition> = []

    /// Assigned partitions that are not read for now.
    var paused: Set<TopicPartition> = []

    /// Assigned partitions whose position the log does not have.
    var outOfRange: Set<TopicPartition> = []

    /// Topics with assigned partitions that were told to be missing.
    var vanished: Set<String> = []

    /// Counts every change, so that caches of partitions know when they are out of date.
    private(set) var changes = 0

    mutating func add(_ added: [TopicPartition]) {
        partitions.formUnion(added)
        changes += 1
    }

    mutating func remove(_ gone: [TopicPartition]) {
        partitions.subtract(gone)
        paused.subtract(gone)
        restart(gone)
    }

    /// The partitions are read anew from somewhere.
    mutating func restart(_ restarted: [TopicPartition]) {
        removed.formUnion(restarted)
        outOfRange.subtract(restarted)
        changes += 1
    }

    /// Takes the records of partitions that went away since the last call out of `records`, which were all read before
    /// they went. A partition that went and came back keeps nothing from before: it is read anew from its start.
    mutating func discardRemoved(from records: inout [KafkaRecord]) {
        if removed.isEmpty { return }
        records.removeAll { removed.contains($0.topicPartition) }
        removed = []
    }
}
