// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import Logging

/// Looks up when the records at some offsets were written. Outside of every group; blocks.
package enum RecordTimes {
    /// The times, in milliseconds since 1970, of the first records at or behind these offsets, of those partitions that
    /// answer in time.
    /// - Parameter unreadable: is told why a topic cannot be read.
    package static func look(
        _ offsets: [TopicPartition: Int64], _ configuration: KafkaConfiguration, timeout: Duration, logger: Logger,
        unreadable: (String) -> Void = { _ in }
    ) -> [TopicPartition: Int64] {
        guard !offsets.isEmpty else { return [:] }
        var configuration = configuration
        // One record of each is wanted, and a broker sends at least a whole batch: so a few partitions' at a time.
        for (key, value) in [
            ("fetch.max.bytes", "1048576"), ("message.max.bytes", "1048576"), ("queued.min.messages", "1"),
            ("queued.max.messages.kbytes", "64"), ("statistics.interval.ms", "0"),
        ] {
            configuration.consumer[key] = value
        }
        guard let tail = try? KafkaTail(configuration: configuration, readingFrom: offsets, logger: logger) else {
            return [:]
        }
        defer { tail.close() }
        var times: [TopicPartition: Int64] = [:]
        let deadline = Deadline(after: timeout)
        while times.count < offsets.count, !deadline.isOver {
            for record in tail.poll(maxRecords: 1, timeout: min(deadline.remaining, .milliseconds(100)))
            where record.timestampMs >= 0 {
                times[record.topicPartition] = record.timestampMs
                tail.leave(record.topicPartition)
            }
            if !tail.unreadable.isEmpty { break }
        }
        for (topic, error) in tail.unreadable { unreadable(error.unreadable(topic)) }
        return times
    }
}
