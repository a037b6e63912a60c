// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

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
