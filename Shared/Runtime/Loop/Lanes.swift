// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The input whose decisions a message belongs to: one partition, in one incarnation of its log. Publishing makes
/// progress lane by lane, so what is stuck in one holds up no other.
struct Lane: Hashable, Sendable {
    var partition: TopicPartition
    var incarnation: Int64
    /// Raised when the store went back behind what was handed over: what comes of that says nothing any more.
    var generation = 0
}

/// How far publishing has come in one lane. A lane is a row of steps, each with the messages of one batch, and its
/// progress is the last step that has nothing undelivered at or before it.
struct LaneProgress {
    final class Step {
        let lane: Lane
        /// The last offset that is concluded by this step.
        let through: Int64
        let since: ContinuousClock.Instant
        var undelivered: Int
        /// Of these, the ones that nobody may give up.
        var undeliveredOurs: Int

        init(lane: Lane, through: Int64, messages: [OutboxRecord], since: ContinuousClock.Instant) {
            self.lane = lane
            self.through = through
            self.since = since
            undelivered = messages.count
            undeliveredOurs = messages.count { !$0.mayBeGivenUp }
        }
    }

    private(set) var steps: [Step] = []
    /// The last offset that was handed over, delivered or not.
    private(set) var handedThrough: Int64
    /// Messages handed over and not delivered.
    var pending = 0

    init(handedThrough: Int64) {
        self.handedThrough = handedThrough
    }

    mutating func append(_ step: Step) {
        steps.append(step)
        handedThrough = max(handedThrough, step.through)
        pending += step.undelivered
    }

    /// Takes the finished steps off the front.
    /// - Returns: the offset through which everything is delivered, if it moved.
    mutating func advance() -> Int64? {
        let finished = steps.prefix { $0.undelivered == 0 }
        guard let last = finished.last else { return nil }
        steps.removeFirst(finished.count)
        return last.through
    }

    /// Since when the oldest message waits that nobody may give up.
    var waitingSince: ContinuousClock.Instant? { steps.first { $0.undeliveredOurs > 0 }?.since }
}

/// How far publishing has come in all lanes.
struct Lanes {
    /// Messages that may wait in all lanes together before deciding pauses.
    private static let maxPending = 60_000

    private var all: [Lane: LaneProgress] = [:]
    /// Those in which something is delivered since it was last told.
    private var moved: Set<Lane> = []

    /// Takes a step whose messages are handed over.
    mutating func append(_ step: LaneProgress.Step) {
        all[step.lane, default: LaneProgress(handedThrough: step.through)].append(step)
        if step.undelivered == 0 { moved.insert(step.lane) }
    }

    /// A message of the step is delivered.
    mutating func delivered(_ step: LaneProgress.Step, isOurs: Bool) {
        step.undelivered -= 1
        if isOurs { step.undeliveredOurs -= 1 }
        all[step.lane]?.pending -= 1
        if step.undelivered == 0 { moved.insert(step.lane) }
    }

    /// - Returns: the offset through which everything is delivered, of each lane that moved.
    mutating func advance() -> [Lane: Int64] {
        var through: [Lane: Int64] = [:]
        for lane in moved {
            if let offset = all[lane]?.advance() { through[lane] = offset }
        }
        moved = []
        return through
    }

    /// The last offset of the lane that was handed over and is not known to be delivered, or `publishedThrough`, whichever
    /// is later.
    mutating func handed(_ lane: Lane, publishedThrough: Int64) -> Int64 {
        guard let progress = all[lane] else { return publishedThrough }
        if progress.steps.isEmpty, progress.handedThrough < publishedThrough { all[lane] = nil }
        return max(publishedThrough, progress.handedThrough)
    }

    /// Nobody asks for the lane's progress any more. What is on its way is still delivered.
    mutating func forget(_ lane: Lane) {
        if all[lane]?.steps.isEmpty == true { all[lane] = nil }
    }

    /// Messages of the lane that are not delivered yet.
    func pending(_ lane: Lane) -> Int { all[lane]?.pending ?? 0 }

    /// How many may be.
    var limit: Int { max(500, min(5000, Self.maxPending / max(1, all.count))) }

    /// Since when the oldest message of all lanes waits that nobody may give up.
    var waitingSince: ContinuousClock.Instant? { all.values.compactMap(\.waitingSince).min() }
}
