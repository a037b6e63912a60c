// SPDX-License-Identifier: Apache-2.0

import Contracts

/// Which letters go next. Letters of one key go one after the other, as they came; keys go side by side. A value without a
/// clock of its own.
struct ReplayPlan {
    private struct Lane {
        var letters: ArraySlice<LetterID>
        /// The letter that failed: those behind it stay.
        var failed: LetterID?
    }

    private let keepsGoing: Bool
    private var lanes: [Lane] = []
    private var laneOf: [LetterID: Int] = [:]
    /// Lanes whose first letter may go, in turn.
    private var ready: ArraySlice<Int> = []
    /// Lanes that somebody else is busy with, and when to look again.
    private var postponed: [Int: ContinuousClock.Instant] = [:]
    private(set) var inHand: Set<LetterID> = []
    private var isClosed = false

    init(_ letters: [Letter], keepsGoing: Bool) {
        self.keepsGoing = keepsGoing
        var members: [String: Int] = [:]
        for letter in Self.inOrder(letters) {
            let lane = letter.lane.flatMap { members[$0] } ?? lanes.count
            if lane == lanes.count { lanes.append(Lane(letters: [])) }
            if let name = letter.lane { members[name] = lane }
            lanes[lane].letters.append(letter.id)
            laneOf[letter.id] = lane
        }
        ready = Array(lanes.indices)[...]
    }

    /// As they came: within a partition by offset, between partitions by time.
    static func inOrder(_ letters: [Letter]) -> [Letter] {
        var latest: [TopicPartition: Int64] = [:]
        let timed = letters.sorted { $0.id < $1.id }.map { letter in
            let time = max(latest[letter.record.topicPartition] ?? .min, letter.record.timestampMs)
            latest[letter.record.topicPartition] = time
            return (time: time, letter: letter)
        }
        return timed.sorted { ($0.time, $0.letter.id) < ($1.time, $1.letter.id) }.map(\.letter)
    }

    var laneCount: Int { lanes.count }

    /// Whether nothing is in hand, and nothing will be.
    var isDone: Bool { inHand.isEmpty && (isClosed || ready.isEmpty && postponed.isEmpty) }

    /// The next letter to take in hand; `nil` when none may go at this time.
    mutating func next(now: ContinuousClock.Instant) -> LetterID? {
        if isClosed { return nil }
        for (lane, time) in postponed where time <= now {
            postponed[lane] = nil
            ready.append(lane)
        }
        guard let lane = ready.popFirst(), let letter = lanes[lane].letters.first else { return nil }
        inHand.insert(letter)
        return letter
    }

    /// The letter is done.
    /// - Parameter isGood: whether those behind it may follow.
    mutating func finish(_ letter: LetterID, isGood: Bool) {
        guard inHand.remove(letter) != nil, let lane = laneOf[letter] else { return }
        lanes[lane].letters.removeFirst()
        guard isGood || keepsGoing else {
            lanes[lane].failed = letter
            return
        }
        if !lanes[lane].letters.isEmpty { ready.append(lane) }
    }

    /// Somebody else has it: it is tried again at that time.
    mutating func postpone(_ letter: LetterID, until time: ContinuousClock.Instant) {
        guard inHand.remove(letter) != nil, let lane = laneOf[letter] else { return }
        postponed[lane] = time
    }

    /// No other letter is taken in hand.
    mutating func close() { isClosed = true }

    /// Letters that nobody will take in hand, each with the one that failed before it.
    var stopped: [(letter: LetterID, behind: LetterID)] {
        lanes.flatMap { lane in lane.failed.map { failed in lane.letters.map { ($0, failed) } } ?? [] }
    }

    /// Letters that were not reached.
    var left: [LetterID] { lanes.filter { $0.failed == nil }.flatMap { Array($0.letters) } }
}
