// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Observability

/// The topics that a service reads, each through a consumer group of its own, so that each is balanced on its own.
/// Confined to the loop's thread.
package final class Consumers {
    /// A topic and the group that reads it.
    package struct Source: Hashable, Sendable {
        package var topic: String
        package var group: String
        /// Its records may be gathered for a moment: a batch of many costs less than many of one.
        package var mayGather = false
    }

    private(set) var all: [Source]
    private let make: (Source) throws -> any RecordConsumer
    private let decisionTimes: ([KafkaRecord]) -> [Int64?]
    private let wait: (Duration) -> Void
    private let now: () -> ContinuousClock.Instant
    private var consumers: [String: any RecordConsumer] = [:]
    /// Which consumer is asked first: each in turn.
    private var first = 0
    /// Until when nothing is taken of a topic whose records are gathered.
    private var gathering: [String: ContinuousClock.Instant] = [:]
    /// What is read in the order of its times, where that is asked for.
    private var replay: Replay?
    /// Whether every group has given its share since they were joined: only then is it known what is to be replayed.
    private var haveAllGiven = false

    /// - Parameters:
    ///   - pastEnd: what is older is read in the order of its times; `nil` for none.
    ///   - decisionTimes: when records of the past were decided once, for each; `nil` where nothing tells.
    ///   - make: joins a group.
    ///   - wait: blocks until there may be something to read.
    init(
        _ all: [Source], replayingUntil pastEnd: Timestamp? = nil,
        decisionTimes: @escaping ([KafkaRecord]) -> [Int64?] = { $0.map { _ in nil } },
        make: @escaping (Source) throws -> any RecordConsumer, wait: @escaping (Duration) -> Void,
        now: @escaping () -> ContinuousClock.Instant = { .now }
    ) {
        self.all = all
        replay = pastEnd.map { Replay(until: $0) }
        self.decisionTimes = decisionTimes
        self.make = make
        self.wait = wait
        self.now = now
    }

    /// The group that reads a topic.
    func group(of topic: String) -> String? { all.first { $0.topic == topic }?.group }

    /// Joins the groups.
    func join() throws {
        for input in all where consumers[input.topic] == nil { consumers[input.topic] = try make(input) }
    }

    /// Reads these topics too, from now on.
    func join(_ more: [Source]) throws {
        all += more
        try join()
    }

    /// How long a rebalance is waited for in which a group would not let this replica go: those who are there answer
    /// within two heartbeats.
    private static var leavingTime: Duration { .seconds(4) }

    /// Leaves the groups, one after the other. What is owned is told as revoked, inside.
    /// - Parameters:
    ///   - timeout: of each.
    ///   - turned: is told before the first and after each.
    func leave(timeout: Duration, turned: () -> Void) -> Bool {
        turned()
        let deadline = now() + Self.leavingTime
        var staying = Array(consumers.values)
        while true {
            staying.removeAll { $0.leave() }
            if staying.isEmpty || now() >= deadline { break }
            turned()
            wait(.milliseconds(20))
        }
        let isClosed = consumers.values.map { consumer in
            defer { turned() }
            return consumer.close(timeout: timeout)
        }
        consumers = [:]
        replay = replay.map { Replay(until: $0.end) }
        haveAllGiven = false
        return isClosed.allSatisfy { $0 }
    }

    /// Takes what is there, at most `limit` records, of each topic an equal share; when there is nothing, waits for
    /// something to come, at most `timeout`. Of a topic whose records may be gathered, nothing is taken within
    /// ``gatheringTime`` after all that was there. While the past is replayed, the records come in the order of their times
    /// instead.
    /// - Parameter mayReplay: is asked before records of a replay are given: a partition whose records had to wait would
    ///   fall behind the others.
    /// - Throws: `KafkaError` when a consumer failed for good.
    func poll(
        limit: Int, timeout: Duration, mayReplay: () -> Bool = { true }
    ) throws(KafkaError) -> [KafkaRecord] {
        let records = try take(limit, mayReplay)
        guard records.isEmpty, timeout > .zero else { return records }
        let time = now()
        wait(min(timeout, gathering.values.map { time.duration(to: $0) }.filter { $0 > .zero }.min() ?? timeout))
        return try take(limit, mayReplay)
    }

    /// An event is decided so much later at most.
    static var gatheringTime: Duration { .milliseconds(50) }

    private func take(_ limit: Int, _ mayReplay: () -> Bool) throws(KafkaError) -> [KafkaRecord] {
        if replay != nil {
            assign()
            if isReplaying { return try takeInOrder(limit, mayReplay) }
        }
        let time = now()
        gathering = gathering.filter { $0.value > time }
        let asked = all.filter { gathering[$0.topic] == nil }
        first += 1
        var records: [KafkaRecord] = []
        try Shares.deal(limit, among: asked.count, first: first) { place, share throws(KafkaError) in
            let source = asked[place]
            let taken = try consumers[source.topic]?.poll(maxRecords: share, timeout: .zero) ?? []
            if source.mayGather, !taken.isEmpty, taken.count < share {
                gathering[source.topic] = time + Self.gatheringTime
            }
            records += taken
            return taken.count
        }
        return records.inOrderOfPartitions
    }

    // MARK: The past

    /// The most records of a partition that are read ahead while others are waited for.
    private static var readAhead: Int { 100 }

    /// Whether something of the past is still to be read, or may be.
    var isReplaying: Bool { replay.map { !haveAllGiven || !$0.isOver } ?? false }

    private func takeInOrder(_ limit: Int, _ mayReplay: () -> Bool) throws(KafkaError) -> [KafkaRecord] {
        var records: [KafkaRecord] = []
        var hasNews = true
        while hasNews, records.count < limit {
            hasNews = try readAhead()
            guard haveAllGiven, mayReplay() else { break }
            while records.count < limit, let record = replay?.next() { records.append(record) }
        }
        return records
    }

    /// Reads more of the partitions of which nothing is left.
    /// - Returns: whether something came.
    private func readAhead() throws(KafkaError) -> Bool {
        var hasNews = false
        for input in all {
            guard let consumer = consumers[input.topic] else { continue }
            let records = try consumer.poll(replay?.wanted(of: input.topic) ?? [], upTo: Self.readAhead)
            replay?.assign(consumer.assignment, of: input.topic)
            for (record, time) in zip(records, decisionTimes(records)) { replay?.add(record, decidedAt: time) }
            for partition in consumer.takeEnds() { replay?.reachedEnd(partition) }
            hasNews = hasNews || !records.isEmpty
        }
        if problem == nil { haveAllGiven = true }
        return hasNews
    }

    private func assign() {
        for (topic, consumer) in consumers {
            replay?.assign(consumer.assignment, of: topic)
            for partition in consumer.takeEnds() { replay?.reachedEnd(partition) }
        }
    }

    /// The partitions are not ours any more. If they come again, they are read from where the store says.
    func forget(_ partitions: [TopicPartition]) { replay?.forget(partitions) }

    // MARK: What the groups say

    /// What keeps a group from giving this replica its share; `nil` when all have given theirs.
    var problem: String? {
        for input in all {
            guard let consumer = consumers[input.topic] else { return "not yet in the group \(input.group)" }
            if !consumer.isJoined {
                let cause = consumer.problem.map { ": \($0)" } ?? ""
                return "\(consumer.hasJoined ? "out of" : "not yet in") the group \(input.group)\(cause)"
            }
        }
        return nil
    }

    /// The group that may be about to give this replica its share; `nil` for none.
    var unsettled: String? {
        all.first { consumers[$0.topic]?.hasSettled == false }.map { "waits for its share of the group \($0.group)" }
    }

    /// Whether a group does not take this replica for want of a right.
    var isRefused: Bool { consumers.values.contains { !$0.isJoined && $0.isRefused } }

    /// The topics that the groups gave us and that cannot be read, and why; `nil` for none.
    var unreadable: String? {
        let all = consumers.values.flatMap(\.unreadable).sorted { $0.key < $1.key }
        if all.isEmpty { return nil }
        return all.map { topic, error in error.unreadable(topic) }.joined(separator: ", ")
    }

    /// How long a rebalance may last: the members that are there answer within seconds.
    private static var rebalanceLimit: Duration { .seconds(15) }

    /// A group whose rebalance does not end: until it does, some partitions may have no owner.
    var hangingRebalance: (words: String, lasts: Duration)? {
        for input in all {
            // What the group said of this replica is the better cause.
            guard let consumer = consumers[input.topic], consumer.isJoined || consumer.problem == nil,
                let rebalance = consumer.rebalance
            else { continue }
            let lasts = rebalance.since.duration(to: .now)
            guard lasts > Self.rebalanceLimit else { continue }
            return (
                "a rebalance of the group \(input.group) has lasted for \(lasts.inWords): this member \(rebalance.words)",
                lasts
            )
        }
        return nil
    }

    /// Positions that the log does not have.
    func takeOutOfRange() -> [TopicPartition] { consumers.values.flatMap { $0.takeOutOfRange() } }

    /// Topics that were missing for a moment.
    func takeVanished() -> Set<String> {
        consumers.values.reduce(into: []) { topics, consumer in topics.formUnion(consumer.takeVanished()) }
    }

    /// How many partitions of a topic are assigned to this replica.
    func assigned(_ topic: String) -> Int { consumers[topic]?.assignment.count ?? 0 }

    // MARK: What to read

    /// Reads partitions anew from the given offsets.
    /// - Throws: as ``pause(_:)`` and ``resume(_:)`` when a consumer does not have a partition any more.
    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError) {
        for (topic, partitions) in byTopic(Array(starts.keys)) {
            try consumers[topic]?.restart(starts.filter { partitions.contains($0.key) })
        }
        replay?.forget(starts.keys)
    }

    func pause(_ partitions: [TopicPartition]) throws(KafkaError) {
        for (topic, mine) in byTopic(partitions) { try consumers[topic]?.pause(mine) }
    }

    func resume(_ partitions: [TopicPartition]) throws(KafkaError) {
        for (topic, mine) in byTopic(partitions) { try consumers[topic]?.resume(mine) }
    }

    /// - Returns: the partitions whose offsets their groups were told.
    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> [TopicPartition] {
        byTopic(Array(offsets.keys)).flatMap { topic, partitions in
            let mine = offsets.filter { partitions.contains($0.key) }
            return consumers[topic]?.commit(mine, wait: wait) == true ? partitions : []
        }
    }

    private func byTopic(_ partitions: [TopicPartition]) -> [String: [TopicPartition]] {
        Dictionary(grouping: partitions, by: \.topic)
    }
}

extension [KafkaRecord] {
    /// They are decided at one time, by which a replay puts them in this order too.
    fileprivate var inOrderOfPartitions: [KafkaRecord] {
        if zip(self, dropFirst()).allSatisfy({ $0.topicPartition <= $1.topicPartition }) { return self }
        return sorted { ($0.topicPartition, $0.offset) < ($1.topicPartition, $1.offset) }
    }
}
