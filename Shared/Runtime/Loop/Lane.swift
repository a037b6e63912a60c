// SPDX-License-Identifier: Apache-2.0

import Messaging

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

        init(lane: Lane, through: Int64, messages: [OutboundMessage], since: ContinuousClock.Instant) {
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
