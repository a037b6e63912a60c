// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Metrics

/// What stands in the service's dead letter topic, for whoever is to look at it: how many letters, how many of them are open,
/// and since when the oldest of those. Every replica tells the same, and so does `identitybus dlq`. A value of one thread.
struct DeadLetterBoard {
    private let service: String
    /// The oldest letter of a partition that is open: its offset, and when it was written, in milliseconds since 1970.
    private var oldest: [TopicPartition: (offset: Int64, time: Int64)] = [:]
    /// Why they cannot be read, as it was said last.
    private var unreadable: String?

    init(service: String) { self.service = service }

    struct Count: Equatable {
        var letters: Int64
        var open: Int64
        /// For how many seconds the oldest open one has been there; `nil` where that is not known.
        var age: Double?
    }

    /// - Parameters:
    ///   - bounds: of all partitions of the topic that answered.
    ///   - closed: the letters that were sent again or dismissed.
    ///   - times: asks the log when the records at some offsets were written; milliseconds since 1970.
    mutating func measure(
        _ bounds: [TopicPartition: BrokerWatch.Bounds], closed: [TopicPartition: Set<Int64>], now: Timestamp,
        times: ([TopicPartition: Int64]) -> [TopicPartition: Int64]
    ) -> Count {
        var count = Count(letters: 0, open: 0, age: 0)
        var first: [TopicPartition: Int64] = [:]
        for (partition, bounds) in bounds where bounds.high > bounds.low {
            let closed = closed[partition] ?? []
            count.letters += bounds.high - bounds.low
            let open = bounds.high - bounds.low - Int64(closed.count { $0 >= bounds.low && $0 < bounds.high })
            count.open += open
            if open > 0 { first[partition] = (bounds.low..<bounds.high).first { !closed.contains($0) } }
        }
        oldest = oldest.filter { first[$0.key] == $0.value.offset }
        let unknown = first.filter { oldest[$0.key] == nil }
        if !unknown.isEmpty {
            for (partition, time) in times(unknown) {
                guard let offset = unknown[partition] else { continue }
                oldest[partition] = (offset, time)
            }
        }
        if count.open > 0 {
            count.age = oldest.values.map(\.time).min().map { Double(max(0, now.milliseconds - $0)) / 1000 }
        }
        return count
    }

    /// Why dead letters cannot be read; `nil` when they can.
    /// - Returns: what is to be said.
    mutating func read(_ problem: String?) -> String? {
        defer { unreadable = problem }
        return problem == unreadable ? nil : problem
    }

    /// Brings the metrics to this moment.
    /// - Parameter closed: `nil` where it is not known what was done.
    /// - Returns: what is known.
    mutating func show(
        _ bounds: [TopicPartition: BrokerWatch.Bounds], closed: [TopicPartition: Set<Int64>]?,
        times: ([TopicPartition: Int64]) -> [TopicPartition: Int64]
    ) -> Count? {
        let found = measure(bounds, closed: closed ?? [:], now: .now, times: times)
        show("identity_dead_letters", found.letters)
        show("identity_open_dead_letters", closed == nil ? nil : found.open)
        show("identity_oldest_dead_letter_seconds", closed == nil ? nil : found.age)
        return closed == nil ? nil : found
    }

    private func show(_ name: String, _ value: (some BinaryInteger)?) { show(name, value.map { Double($0) }) }

    private func show(_ name: String, _ value: Double?) {
        let gauge = Gauge(label: name, dimensions: [("service", service)])
        if let value { gauge.record(value) } else { gauge.destroy() }
    }
}

/// What operators have done about a service's dead letters, as its actions topic says it: only what is new is read. Of one
/// thread.
struct DeadLetterActions {
    private let letters: String
    private let partition: TopicPartition
    private var handled = HandledLetters()
    /// Up to where it is read.
    private var position: Int64 = 0
    private(set) var closed: [TopicPartition: Set<Int64>] = [:]

    init(letters: String, actions: String) {
        self.letters = letters
        partition = TopicPartition(topic: actions, partition: LetterHandling.partition)
    }

    /// - Parameter bounds: where the log begins and ends.
    /// - Returns: whether all was read.
    mutating func read(
        _ bounds: BrokerWatch.Bounds, _ kafka: KafkaConfiguration, timeout: Duration, logger: Logger
    ) -> Bool {
        if bounds.high < position { self = DeadLetterActions(letters: letters, actions: partition.topic) }
        position = max(position, bounds.low)
        guard position < bounds.high else { return true }
        guard
            let tail = try? KafkaTail(configuration: kafka, readingFrom: [partition: position], logger: logger)
        else { return false }
        defer { tail.close() }
        let deadline = ContinuousClock.now + timeout
        while position < bounds.high, ContinuousClock.now < deadline {
            for record in tail.poll(maxRecords: 1000, timeout: .milliseconds(100)) { take(record) }
        }
        return position >= bounds.high
    }

    mutating func take(_ record: KafkaRecord) {
        position = record.offset + 1
        guard let handling = LetterHandling(record) else { return }
        handled.take(handling)
        guard !handled[handling.letter].isOpen else { return }
        let place = TopicPartition(topic: letters, partition: handling.letter.partition)
        closed[place, default: []].insert(handling.letter.offset)
    }

    /// Where the actions are.
    var place: TopicPartition { partition }
}
