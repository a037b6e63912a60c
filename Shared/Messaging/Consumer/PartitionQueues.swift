// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts

/// What librdkafka has fetched of each assigned partition, each partition's apart. In the one queue that librdkafka uses
/// otherwise, a record waits for all that was fetched before it, of whichever partition.
///
/// Confined to the thread that polls.
final class PartitionQueues {
    private let client: OpaquePointer
    private let wakeUp: WakeUp
    private var queues: [(partition: TopicPartition, queue: OpaquePointer)] = []
    /// Whose turn it is among the queues with a backlog.
    private var first = 0

    /// - Parameter client: owned by the caller. All queues must be closed before it ends.
    init(client: OpaquePointer, wakeUp: WakeUp) {
        self.client = client
        self.wakeUp = wakeUp
    }

    /// Keeps the partitions' records apart from now on. To be called before they are assigned: what is in librdkafka's
    /// common queue by then stays there.
    func open(_ partitions: [TopicPartition]) {
        close(partitions)
        for partition in partitions {
            // Without a queue of its own, a partition is read from the common one.
            guard let queue = rd_kafka_queue_get_partition(client, partition.topic, partition.partition) else {
                continue
            }
            rd_kafka_queue_forward(queue, nil)
            wakeUp.watch(queue)
            queues.append((partition, queue))
        }
    }

    func close(_ partitions: some Collection<TopicPartition>) {
        if partitions.isEmpty { return }
        for (partition, queue) in queues where partitions.contains(partition) { rd_kafka_queue_destroy(queue) }
        queues.removeAll { partitions.contains($0.partition) }
    }

    /// Takes what is there (``Shares/runs(_:waiting:first:)``).
    /// - Parameters:
    ///   - limits: messages and bytes.
    ///   - read: is lent each message, and says how many bytes it has.
    func take(
        _ limits: (count: Int, bytes: Int),
        read: (UnsafeMutablePointer<rd_kafka_message_t>) throws(KafkaError) -> Int
    ) throws(KafkaError) {
        let waiting = queues.map { rd_kafka_queue_length($0.queue) }
        let runs = Shares.runs(limits.count, waiting: waiting, first: first)
        var bytes = limits.bytes
        for (place, run) in runs.enumerated() where bytes > 0 {
            // Of the bytes, too, nobody gets all.
            let share = max(1, bytes / (runs.count - place))
            bytes -= try Self.take((run.count, share), queues[run.source].queue, read)
            first = (run.source + 1) % queues.count
        }
    }

    /// Takes what is there of these partitions.
    /// - Parameters:
    ///   - limits: messages and bytes, of each partition.
    ///   - read: as in ``take(_:read:)``.
    func take(
        of partitions: Set<TopicPartition>, _ limits: (count: Int, bytes: Int),
        read: (UnsafeMutablePointer<rd_kafka_message_t>) throws(KafkaError) -> Int
    ) throws(KafkaError) {
        for (partition, queue) in queues where partitions.contains(partition) { try Self.take(limits, queue, read) }
    }

    /// - Returns: the bytes. The message with which the limit is reached is the last one.
    @discardableResult
    private static func take(
        _ limits: (count: Int, bytes: Int), _ queue: OpaquePointer,
        _ read: (UnsafeMutablePointer<rd_kafka_message_t>) throws(KafkaError) -> Int
    ) throws(KafkaError) -> Int {
        var taken = (count: 0, bytes: 0)
        // Asking an empty queue for a message costs a system call.
        while taken.count < limits.count, taken.bytes < limits.bytes, rd_kafka_queue_length(queue) > 0,
            let message = rd_kafka_consume_queue(queue, 0)
        {
            defer { rd_kafka_message_destroy(message) }
            taken.bytes += try read(message)
            taken.count += 1
        }
        return taken.bytes
    }
}
