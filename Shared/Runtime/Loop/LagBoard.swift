// SPDX-License-Identifier: Apache-2.0

import Contracts
import Metrics
import Observability
import Synchronization

/// How far a replica is behind: the end of each partition minus the position that the store has committed, whether the
/// partition is read, paused, or owned by nobody. The loop tells positions, the ``BrokerWatch`` ends.
///
/// A partition is this replica's to report from its claim until another replica has claimed it.
final class LagBoard: Sendable {
    /// What the loop knows of a partition.
    struct Place: Equatable {
        var group: String
        /// The claim that its position rests on.
        var epoch: Int64
        /// The next offset to decide.
        var next: Int64
        /// When the record before it was written, and the first one that is held behind it; milliseconds since 1970.
        var lastTime: Int64?
        var heldTime: Int64?
    }

    fileprivate struct Row {
        var place: Place
        /// Whether it was taken away, and nobody is known to have claimed it since.
        var isOrphan = false
        /// When it was measured last, and the position then. The end of a topic that is gone is not measured any more.
        var measured: ContinuousClock.Instant?
        var measuredAt: Int64?
        /// Since when something stands behind that position.
        var waitsSince: Int64?
        /// When the record at a position was written, by the log's word.
        var known: (offset: Int64, time: Int64)?
        var lag: Int64?
        var oldest: Double?
    }

    private struct State {
        var rows: [TopicPartition: Row] = [:]
        var measured: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    /// A measure older than this says nothing of now.
    static let maxAge = Duration.seconds(10)

    // MARK: The loop's side

    /// Where the partitions stand that are claimed.
    func tell(_ places: [TopicPartition: Place]) {
        state.withLock { state in
            for partition in state.rows.keys where places[partition] == nil { state.rows[partition]?.isOrphan = true }
            for (partition, place) in places {
                state.rows[partition, default: Row(place: place)].place = place
                state.rows[partition]?.isOrphan = false
            }
        }
    }

    /// Partitions that this replica was the last to claim, as far as it knows, with its claims.
    var orphans: [TopicPartition: Int64] {
        state.withLock { $0.rows.filter(\.value.isOrphan).mapValues(\.place.epoch) }
    }

    /// Others report these.
    func forget(_ partitions: [TopicPartition]) {
        let rows = state.withLock { state in
            partitions.compactMap { partition in state.rows.removeValue(forKey: partition).map { (partition, $0) } }
        }
        for (partition, row) in rows { Self.lagGauge(partition, row.place).destroy() }
    }

    /// What waits, as it was measured last; `nil` when that is long ago.
    var backlog: HealthWatch.Backlog? {
        state.withLock { state in
            guard let measured = state.measured, measured.duration(to: .now) < Self.maxAge else { return nil }
            let rows = state.rows.values.filter { $0.measured.map { $0.duration(to: .now) < Self.maxAge } ?? false }
            return HealthWatch.Backlog(
                count: rows.compactMap(\.lag).reduce(0, +), oldest: rows.compactMap(\.oldest).max())
        }
    }

    // MARK: The watch's side

    /// The partitions whose ends are wanted.
    var wanted: [TopicPartition] { state.withLock { $0.rows.keys.sorted() } }

    /// Takes in where the partitions end.
    /// - Parameter times: asks the log when the records at some offsets were written; milliseconds since 1970.
    func measure(
        ends: [TopicPartition: Int64], now: Timestamp, times: ([TopicPartition: Int64]) -> [TopicPartition: Int64]
    ) {
        let unknown = state.withLock { state in
            for (partition, end) in ends { state.rows[partition]?.measure(end: end, now: now.milliseconds) }
            return state.rows.filter { ends[$0.key] != nil && $0.value.isOfUnknownAge }.mapValues(\.place.next)
        }
        let found = unknown.isEmpty ? [:] : times(unknown)
        let rows = state.withLock { state in
            for (partition, time) in found {
                guard let offset = unknown[partition] else { continue }
                state.rows[partition]?.known = (offset, time)
            }
            for partition in ends.keys { state.rows[partition]?.age(now: now.milliseconds) }
            state.measured = .now
            return state.rows.filter { ends[$0.key] != nil }
        }
        show(rows)
    }

    private func show(_ rows: [TopicPartition: Row]) {
        var oldest: [[String]: Double] = [:]
        for (partition, row) in rows {
            guard let lag = row.lag else { continue }
            Self.lagGauge(partition, row.place).record(lag)
            let topic = [row.place.group, partition.topic]
            oldest[topic] = max(oldest[topic] ?? 0, row.oldest ?? 0)
        }
        for (topic, seconds) in oldest {
            Gauge(label: "identity_oldest_undecided_seconds", dimensions: [("group", topic[0]), ("topic", topic[1])])
                .record(seconds)
        }
    }

    private static func lagGauge(_ partition: TopicPartition, _ place: Place) -> Gauge {
        Gauge(
            label: "kafka_consumer_lag",
            dimensions: [
                ("group", place.group), ("topic", partition.topic), ("partition", String(partition.partition)),
            ])
    }
}

extension LagBoard.Row {
    fileprivate mutating func measure(end: Int64, now: Int64) {
        let lag = max(0, end - place.next)
        let hasMoved = measuredAt.map { $0 != place.next } ?? false
        self.lag = lag
        measured = .now
        if lag == 0 {
            waitsSince = nil
            known = nil
        } else if hasMoved, let lastTime = place.lastTime, lastTime >= 0 {
            // What is next was written at that time or later.
            known = (place.next, lastTime)
        } else if let heldTime = place.heldTime, heldTime >= 0 {
            known = (place.next, heldTime)
        }
        if lag > 0, waitsSince == nil || hasMoved { waitsSince = now }
        measuredAt = place.next
    }

    /// Whether only the log can say how long what stands next has waited.
    fileprivate var isOfUnknownAge: Bool { (lag ?? 0) > 0 && known?.offset != place.next }

    fileprivate mutating func age(now: Int64) {
        guard let lag, lag > 0 else {
            oldest = 0
            return
        }
        let since = known.flatMap { $0.offset == place.next ? $0.time : nil } ?? waitsSince ?? now
        oldest = Double(max(0, now - since)) / 1000
    }
}
