// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging

/// The topics that a service reads, each through a consumer group of its own, so that each is balanced on its own.
/// Confined to the loop's thread.
package final class Consumers {
    /// A topic and the group that reads it.
    package struct Source: Hashable, Sendable {
        package var topic: String
        package var group: String
    }

    let all: [Source]
    private let make: (Source) throws -> any RecordConsumer
    private let wait: (Duration) -> Void
    private var consumers: [String: any RecordConsumer] = [:]
    /// Which consumer is asked first: each in turn.
    private var first = 0

    /// - Parameters:
    ///   - make: joins a group.
    ///   - wait: blocks until there may be something to read.
    init(
        _ all: [Source], make: @escaping (Source) throws -> any RecordConsumer, wait: @escaping (Duration) -> Void
    ) {
        self.all = all
        self.make = make
        self.wait = wait
    }

    /// Joins the groups.
    func join() throws {
        for input in all where consumers[input.topic] == nil { consumers[input.topic] = try make(input) }
    }

    /// Leaves the groups. What is owned is told as revoked, inside.
    func leave(timeout: Duration) -> Bool {
        let isClosed = consumers.values.map { $0.close(timeout: timeout) }
        consumers = [:]
        return isClosed.allSatisfy { $0 }
    }

    /// Takes what is there, at most `limit` records, of each topic an equal share; when there is nothing, waits for something to come, at most
    /// `timeout`.
    /// - Throws: `KafkaError` when a consumer failed for good.
    func poll(limit: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord] {
        let records = try take(limit)
        guard records.isEmpty, timeout > .zero else { return records }
        wait(timeout)
        return try take(limit)
    }

    private func take(_ limit: Int) throws(KafkaError) -> [KafkaRecord] {
        first = (first + 1) % max(1, all.count)
        var records: [KafkaRecord] = []
        try Shares.deal(limit, among: all.count, first: first) { place, share, _ throws(KafkaError) in
            let taken = try consumers[all[place].topic]?.poll(maxRecords: share, timeout: .zero) ?? []
            records += taken
            return taken.count
        }
        return records
    }

    // MARK: What the groups say

    /// What keeps a group from giving this replica its share; `nil` when all have given theirs.
    var problem: String? {
        for input in all {
            guard let consumer = consumers[input.topic] else { return "not yet in the group \(input.group)" }
            if !consumer.isJoined {
                let cause = consumer.lastError.map { ": \($0)" } ?? ""
                return "not yet in the group \(input.group)\(cause)"
            }
        }
        return nil
    }

    /// Positions that the log does not have.
    func takeOutOfRange() -> [TopicPartition] { consumers.values.flatMap { $0.takeOutOfRange() } }

    /// Topics that were missing for a moment.
    func takeVanished() -> Set<String> {
        consumers.values.reduce(into: []) { topics, consumer in topics.formUnion(consumer.takeVanished()) }
    }

    /// How many partitions of a topic are assigned to this replica.
    func assigned(_ topic: String) -> Int { consumers[topic]?.assignment.count ?? 0 }

    // MARK: What to read

    /// Reads partitions anew from the given offsets.
    /// - Throws: as ``pause(_:)`` and ``resume(_:)`` when a consumer does not have a partition any more.
    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError) {
        for (topic, partitions) in byTopic(Array(starts.keys)) {
            try consumers[topic]?.restart(starts.filter { partitions.contains($0.key) })
        }
    }

    func pause(_ partitions: [TopicPartition]) throws(KafkaError) {
        for (topic, mine) in byTopic(partitions) { try consumers[topic]?.pause(mine) }
    }

    func resume(_ partitions: [TopicPartition]) throws(KafkaError) {
        for (topic, mine) in byTopic(partitions) { try consumers[topic]?.resume(mine) }
    }

    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) {
        for (topic, partitions) in Dictionary(grouping: offsets.keys, by: \.topic) {
            consumers[topic]?.commit(offsets.filter { partitions.contains($0.key) }, wait: wait)
        }
    }

    private func byTopic(_ partitions: [TopicPartition]) -> [String: [TopicPartition]] {
        Dictionary(grouping: partitions, by: \.topic)
    }
}
