// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// One partition of a topic. Offsets are given once and never again, but by a log that was made anew or came back
/// shorter.
final class SimulatedPartition {
    let place: TopicPartition
    private(set) var start: Int64 = 0
    private(set) var records: [KafkaRecord] = []
    private var lastTime: Int64 = 0
    /// Nobody can read or write it meanwhile.
    var isLeaderless = false

    init(_ place: TopicPartition) { self.place = place }

    /// The offset that the next record gets.
    var end: Int64 { start + Int64(records.count) }

    func append(_ record: Record, time: Int64) -> Int64 {
        let offset = end
        // No two records of a partition have the same time, so those of two logs differ.
        lastTime = max(lastTime + 1, time)
        records.append(
            KafkaRecord(
                topicPartition: place, offset: offset, timestampMs: lastTime, key: record.key, value: record.value,
                headers: record.headers))
        return offset
    }

    func read(from offset: Int64, limit: Int) -> ArraySlice<KafkaRecord> {
        records[Int(offset - start)...].prefix(limit)
    }

    /// Retention takes the oldest records.
    func removeFirst(_ count: Int) {
        let count = min(count, records.count)
        records.removeFirst(count)
        start += Int64(count)
    }

    /// A replica that lacks the newest records becomes the leader.
    func removeLast(_ count: Int) { records.removeLast(min(count, records.count)) }

    /// The topic is made anew.
    func reset() { (start, records) = (0, []) }
}

/// The topics of a cluster, and everything that was ever written to them.
final class SimulatedLog {
    /// A record as it was written. Nothing is ever taken out of ``written``.
    struct Written {
        var place: TopicPartition
        var offset: Int64
        var record: Record
        var time: Int64
    }

    /// What a topic answers to producers instead of taking their messages.
    enum Refusal: CaseIterable {
        case unknown, forbidden, tooLargeTogether

        var code: Int32 {
            switch self {
            case .unknown: KafkaError.Code.unknownTopic
            case .forbidden: KafkaError.Code.topicAuthorizationFailed
            case .tooLargeTogether: KafkaError.Code.messageTooLarge
            }
        }
    }

    let scheduler: Scheduler
    var cluster = "cluster-1"
    private(set) var topics: [String: [SimulatedPartition]] = [:]
    private(set) var written: [Written] = []
    var refusals: [String: Refusal] = [:]
    var missing: Set<String> = []
    /// Told of each record that is written.
    var listeners: [(Written) -> Void] = []
    let wallStart: Int64 = 1_800_000_000_000

    init(_ scheduler: Scheduler) { self.scheduler = scheduler }

    func make(_ topic: String, partitions: Int) {
        topics[topic] = (0..<partitions).map {
            SimulatedPartition(TopicPartition(topic: topic, partition: Int32($0)))
        }
    }

    subscript(_ place: TopicPartition) -> SimulatedPartition? {
        guard let partitions = topics[place.topic], partitions.indices.contains(Int(place.partition)) else {
            return nil
        }
        return partitions[Int(place.partition)]
    }

    var wall: Int64 { wallStart + scheduler.now / 1000 }

    /// Where a record goes: by its key.
    func place(of record: Record) -> TopicPartition? {
        guard let partitions = topics[record.topic] else { return nil }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in record.key ?? [] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return partitions[Int(hash % UInt64(partitions.count))].place
    }

    func append(_ record: Record, to place: TopicPartition) {
        guard let partition = self[place] else { return }
        let offset = partition.append(record, time: wall)
        let new = Written(place: place, offset: offset, record: record, time: scheduler.now)
        written.append(new)
        for listener in listeners { listener(new) }
    }

    /// Writes as a client does that has no trouble.
    func write(_ record: Record) {
        guard let place = place(of: record), !missing.contains(record.topic) else { return }
        append(record, to: place)
    }
}
