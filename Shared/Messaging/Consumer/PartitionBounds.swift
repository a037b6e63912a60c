// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts

/// Asks for the first and the next offset of partitions.
///
/// `rd_kafka_query_watermark_offsets` of librdkafka 2.0.2 waits without end for a leader that hangs;
/// `rd_kafka_offsets_for_times` keeps its deadline, but gives all or nothing. So every leader is asked alone, with its
/// share of the time.
struct PartitionBounds {
    let client: OpaquePointer
    let deadline: Deadline

    /// The bounds of those partitions that answered.
    func ask(_ partitions: [TopicPartition]) -> [TopicPartition: (low: Int64, high: Int64)] {
        var bounds: [TopicPartition: (low: Int64, high: Int64)] = [:]
        let groups = leaders(of: partitions).sorted { $0.key < $1.key }.map { $0.value.sorted() }
        for (index, group) in groups.enumerated() {
            let share = Deadline(after: deadline.remaining / (groups.count - index))
            let lows = offsets(group, at: KafkaOffset.beginning, by: share)
            let highs = offsets(group.filter { lows[$0] != nil }, at: KafkaOffset.end, by: share)
            for (partition, high) in highs { bounds[partition] = (min(lows[partition] ?? high, high), high) }
        }
        return bounds
    }

    /// The ends of those partitions that answered. The client knows the leaders.
    func ends(_ partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        offsets(partitions, at: KafkaOffset.end, by: deadline)
    }

    /// The first offset of each partition whose message is not older; partitions without one, and those that do not answer,
    /// are missing.
    func first(of partitions: [TopicPartition], since milliseconds: Int64) -> [TopicPartition: Int64] {
        var found: [TopicPartition: Int64] = [:]
        for group in leaders(of: partitions).values {
            found.merge(offsets(group.sorted(), at: milliseconds, by: deadline)) { first, _ in first }
        }
        return found
    }

    private func leaders(of partitions: [TopicPartition]) -> [Int32: [TopicPartition]] {
        var groups: [Int32: [TopicPartition]] = [:]
        for (topic, wanted) in Dictionary(grouping: partitions, by: \.topic) {
            guard let handle = rd_kafka_topic_new(client, topic, nil) else { continue }
            defer { rd_kafka_topic_destroy(handle) }
            var answer: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(client, 0, handle, &answer, deadline.remaining.kafkaMilliseconds)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer else { continue }
            defer { rd_kafka_metadata_destroy(answer) }
            let numbers = Set(wanted.map(\.partition))
            for found in UnsafeBufferPointer(start: answer.pointee.topics, count: Int(answer.pointee.topic_cnt)) {
                let members = UnsafeBufferPointer(start: found.partitions, count: Int(found.partition_cnt))
                for member in members where member.leader >= 0 && numbers.contains(member.id) {
                    groups[member.leader, default: []].append(TopicPartition(topic: topic, partition: member.id))
                }
            }
        }
        return groups
    }

    /// A partition that refuses spoils the answer of all: the rest is found by halves.
    private func offsets(
        _ partitions: [TopicPartition], at time: Int64, by deadline: Deadline
    ) -> [TopicPartition: Int64] {
        guard !partitions.isEmpty, let list = PartitionList(partitions.map { ($0, time) }) else { return [:] }
        let code = rd_kafka_offsets_for_times(client, list.pointer, deadline.remaining.kafkaMilliseconds)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR {
            let answered = list.pointer.elements.filter { $0.err == RD_KAFKA_RESP_ERR_NO_ERROR && $0.offset >= 0 }
            return Dictionary(answered.map { ($0.address, $0.offset) }) { first, _ in first }
        }
        if partitions.count == 1 || deadline.isOver { return [:] }
        let middle = partitions.count / 2
        return offsets(Array(partitions[..<middle]), at: time, by: deadline)
            .merging(offsets(Array(partitions[middle...]), at: time, by: deadline)) { first, _ in first }
    }
}

/// Owns an `rd_kafka_topic_partition_list_t`.
struct PartitionList: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    /// A list of the partitions, in order, each with its offset.
    ///
    /// - Returns: `nil` only when memory is exhausted.
    init?(_ partitions: some Collection<(key: TopicPartition, value: Int64)>) {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: partitions.count)) else { return nil }
        for (partition, offset) in partitions {
            let element = rd_kafka_topic_partition_list_add(list, partition.topic, partition.partition)
            element?.pointee.offset = offset
        }
        pointer = list
    }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }

    /// Makes the client begin anew to fetch partitions that are its own and not paused; the position stays.
    static func fetchAnew(_ partitions: Set<TopicPartition>, of client: OpaquePointer) {
        if partitions.isEmpty { return }
        guard let list = PartitionList(partitions.map { ($0, KafkaOffset.committed) }) else { return }
        rd_kafka_pause_partitions(client, list.pointer)
        rd_kafka_resume_partitions(client, list.pointer)
    }

    /// A list of topics, for a subscription.
    init?(topics: [String]) {
        let all = topics.map { (key: TopicPartition(topic: $0, partition: -1), value: KafkaOffset.committed) }
        self.init(all)
    }
}

extension UnsafeMutablePointer<rd_kafka_topic_partition_list_t> {
    /// The list's elements, to be read or changed in place.
    var elements: UnsafeMutableBufferPointer<rd_kafka_topic_partition_t> {
        UnsafeMutableBufferPointer(start: pointee.elems, count: Int(pointee.cnt))
    }

    /// The partitions of the list, in its order.
    var partitions: [TopicPartition] { elements.map(\.address) }
}

extension rd_kafka_topic_partition_t {
    var address: TopicPartition {
        TopicPartition(topic: topic.map { String(cString: $0) } ?? "", partition: partition)
    }
}
