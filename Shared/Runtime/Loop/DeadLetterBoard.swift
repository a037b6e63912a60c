// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Metrics

/// What stands in the service's dead letter topic, for whoever is to look at it: how many, and since when the oldest. Every
/// replica tells the same. A value of one thread.
struct DeadLetterBoard {
    private let service: String
    /// When the oldest record of a partition was written, in milliseconds since 1970, and its offset.
    private var oldest: [TopicPartition: (offset: Int64, time: Int64)] = [:]
    /// Why they cannot be read, as it was said last.
    private var unreadable: String?

    init(service: String) { self.service = service }

    /// - Parameters:
    ///   - bounds: of all partitions of the topic that answered.
    ///   - times: asks the log when the records at some offsets were written; milliseconds since 1970.
    /// - Returns: how many there are, and for how many seconds the oldest has been there; `nil` where that is not known.
    mutating func measure(
        _ bounds: [TopicPartition: BrokerWatch.Bounds], now: Timestamp,
        times: ([TopicPartition: Int64]) -> [TopicPartition: Int64]
    ) -> (count: Int64, oldest: Double?) {
        let filled = bounds.filter { $0.value.high > $0.value.low }
        oldest = oldest.filter { filled[$0.key]?.low == $0.value.offset }
        let unknown = filled.filter { oldest[$0.key] == nil }.mapValues(\.low)
        if !unknown.isEmpty {
            for (partition, time) in times(unknown) {
                guard let offset = unknown[partition] else { continue }
                oldest[partition] = (offset, time)
            }
        }
        let count = filled.values.map { $0.high - $0.low }.reduce(0, +)
        guard count > 0 else { return (0, 0) }
        let first = oldest.values.map(\.time).min()
        return (count, first.map { Double(max(0, now.milliseconds - $0)) / 1000 })
    }

    /// Why dead letters cannot be read; `nil` when they can.
    /// - Returns: what is to be said.
    mutating func read(_ problem: String?) -> String? {
        defer { unreadable = problem }
        return problem == unreadable ? nil : problem
    }

    /// Brings the metrics to this moment.
    mutating func show(
        _ bounds: [TopicPartition: BrokerWatch.Bounds], times: ([TopicPartition: Int64]) -> [TopicPartition: Int64]
    ) {
        let found = measure(bounds, now: .now, times: times)
        let labels = [("service", service)]
        Gauge(label: "identity_dead_letters", dimensions: labels).record(found.count)
        let age = Gauge(label: "identity_oldest_dead_letter_seconds", dimensions: labels)
        if let oldest = found.oldest { age.record(oldest) } else { age.destroy() }
    }
}
