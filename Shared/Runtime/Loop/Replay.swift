// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Storage

/// The past of a service's topics, in the order in which it was decided: records of all partitions, merged by the times at
/// which they were decided once, as far as these are known, and else by those in the logs (docs/loop.md, "A replay"). A pure
/// value: it is fed records and ends, and gives the next record.
///
/// A partition keeps its own order, whatever the times of its records are: one counts as no older than those before it.
/// It is waited for until its end was read, or a record that is no longer of the past. What comes of it later is merged
/// with the others' all the same, until all is over.
package struct Replay {
    private struct Track {
        /// What was read and not given out, from `first` on, with the time at which each was decided or, where nothing tells
        /// of that, logged.
        var records: [(record: KafkaRecord, time: Int64)] = []
        var first = 0
        /// The highest time of the records up to `first`.
        var time = Int64.min
        var lastOffset: Int64 = -1
        var isAtEnd = false

        var head: KafkaRecord? { first < records.count ? records[first].record : nil }

        func isAwaited(_ end: Timestamp) -> Bool { !isAtEnd && time < end.milliseconds }

        private mutating func see() {
            if first < records.count { time = max(time, records[first].time) }
        }

        mutating func add(_ record: KafkaRecord, decidedAt: Int64?) {
            guard record.offset > lastOffset else { return }
            lastOffset = record.offset
            records.append((record, decidedAt ?? record.timestampMs))
            if records.count == first + 1 { see() }
        }

        mutating func takeHead() -> KafkaRecord? {
            guard let head else { return nil }
            first += 1
            if first == records.count {
                records.removeAll(keepingCapacity: true)
                first = 0
            }
            see()
            return head
        }
    }

    /// Where the past ends.
    let end: Timestamp
    private var tracks: [TopicPartition: Track] = [:]

    package init(until end: Timestamp) {
        self.end = end
    }

    /// Whether all that is assigned is of the present, and nothing read is left.
    var isOver: Bool { tracks.values.allSatisfy { $0.head == nil && !$0.isAwaited(end) } }

    /// The partitions whose next record is to be read. Of no other is more read than what is here.
    func wanted(of topic: String) -> Set<TopicPartition> {
        Set(tracks.filter { $0.key.topic == topic && $0.value.head == nil }.keys)
    }

    /// These partitions of the topic are read, and no others.
    package mutating func assign(_ partitions: Set<TopicPartition>, of topic: String) {
        for gone in tracks.keys where gone.topic == topic && !partitions.contains(gone) { tracks[gone] = nil }
        for partition in partitions where tracks[partition] == nil { tracks[partition] = Track() }
    }

    /// What was read of these partitions is forgotten: they are read anew, or by somebody else.
    mutating func forget(_ partitions: some Sequence<TopicPartition>) {
        for partition in partitions where tracks[partition] != nil { tracks[partition] = Track() }
    }

    /// The next record of its partition was read. One that was read before, or whose partition is not assigned, is passed
    /// over.
    /// - Parameter decidedAt: when it was decided once, in milliseconds; `nil` where nothing tells.
    package mutating func add(_ record: KafkaRecord, decidedAt: Int64? = nil) {
        tracks[record.topicPartition]?.add(record, decidedAt: decidedAt)
    }

    /// All that the partition had was read.
    package mutating func reachedEnd(_ partition: TopicPartition) { tracks[partition]?.isAtEnd = true }

    /// - Returns: the oldest record; among those of one time the one that stands first by topic, partition and offset. `nil`
    ///   while an older one may come.
    package mutating func next() -> KafkaRecord? {
        var oldest: (time: Int64, partition: TopicPartition)?
        for (partition, track) in tracks {
            guard track.head != nil else {
                if track.isAwaited(end) { return nil }
                continue
            }
            let place = (time: track.time, partition: partition)
            if let known = oldest, known < place { continue }
            oldest = place
        }
        return oldest.flatMap { tracks[$0.partition]?.takeHead() }
    }
}

/// What is known of the past while it is replayed: by which time a record is decided, so that what it did once it does again,
/// and which records did nothing. Where nothing tells of that, a record has its own time: codes are valid as long as they
/// were, and a command that has expired since is carried out.
struct PastTimes {
    private struct Place: Hashable {
        var partition: TopicPartition
        var offset: Int64

        init(_ record: KafkaRecord) { (partition, offset) = (record.topicPartition, record.offset) }
    }

    /// By how much the clocks of a broker and a service may differ, in milliseconds.
    private static let clocksApart: Int64 = 60_000
    /// How many of a command's messages are looked for: the reply to one that was refused stands behind its events, and a login
    /// that is refused has three at most: the failure, the end of a session before, and the session of now.
    static let messagesLookedFor = 6

    /// Where the past ends; `nil` where nothing is replayed.
    let end: Timestamp?
    /// For how long the inbox remembers an id, in milliseconds: what was logged later was another command.
    private let retention: Int64
    var later = LaterTimes()
    /// What was told of records that were not decided.
    private var records: [Place: DecisionTimes.Row] = [:]
    /// What was told first of commands, and why they were refused.
    private var commands: [CommandKey: DecisionTimes.Row] = [:]

    init(end: Timestamp? = nil, retention: Duration = .seconds(3600)) {
        self.end = end
        self.retention = retention.inMilliseconds
    }

    /// Takes in what is told of these commands.
    /// - Parameter noted: the ids by which a note may name a command's record, one for each log that its topic may have had.
    mutating func learn<Body: Sendable>(
        of commands: [AcceptedCommand<Body>], in transaction: any SQLTransaction,
        noted: (AcceptedCommand<Body>) -> [String]
    ) throws(StorageError) {
        let commands = commands.filter { $0.keyOnce != nil && isPast($0.record) }
        let notes = commands.map(noted)
        let messages = commands.map { command in
            (0..<Self.messagesLookedFor).map { DerivedID.message(of: command.key, index: $0) }
        }
        let told = try DecisionTimes.find(Set(notes.joined()).union(messages.joined()), in: transaction)
        for (command, (notes, messages)) in zip(commands, zip(notes, messages)) {
            // One that was told before the record was logged tells of another log.
            let row = notes.lazy.compactMap { told[$0] }.first {
                command.record.timestampMs - $0.decidedAt <= Self.clocksApart
            }
            if let row { records[Place(command.record)] = row }
            guard var row = told[messages[0]] else { continue }
            row.rejection = messages.lazy.compactMap { told[$0]?.rejection }.first
            row.decidedAt = later.time(of: command.key, row.decidedAt)
            self.commands[command.key] = row
        }
    }

    func isPast(_ record: KafkaRecord) -> Bool {
        guard let end else { return false }
        return record.timestampMs >= 0 && record.timestampMs < end.milliseconds
    }

    /// When it was decided once, in milliseconds; `nil` where nothing tells.
    func decidedAt(_ command: AcceptedCommand<some Sendable>) -> Int64? {
        (told(of: command) ?? decision(of: command))?.decidedAt
    }

    func time(of command: AcceptedCommand<some Sendable>, now: Timestamp) -> Timestamp {
        decidedAt(command).map { min(now, Timestamp(milliseconds: $0)) } ?? time(of: command.record, now: now)
    }

    func time(of record: KafkaRecord, now: Timestamp) -> Timestamp {
        isPast(record) ? min(now, Timestamp(milliseconds: record.timestampMs)) : now
    }

    /// What is told of its record, which was not decided.
    private func told(of command: AcceptedCommand<some Sendable>) -> DecisionTimes.Row? {
        end != nil && command.isCommand && command.keyOnce != nil ? records[Place(command.record)] : nil
    }

    /// What is told of the command that had its id.
    private func decision(of command: AcceptedCommand<some Sendable>) -> DecisionTimes.Row? {
        guard let key = command.keyOnce, isPast(command.record), let row = commands[key],
            command.record.timestampMs - row.decidedAt <= retention
        else { return nil }
        return row
    }

    /// Whether its record is noted as refused (``DecisionsNoted``): for its key's scopes, say, or because the id was another
    /// one's. It is not decided now either, whatever the key may do by now.
    func wasRefused(_ command: AcceptedCommand<some Sendable>) -> Bool { told(of: command)?.rejection != nil }

    /// Whether its record repeated a command. Its time puts it behind that one. If that one is gone, it stands in for it, and
    /// its own `expirytime` says nothing.
    func wasRepeated(_ command: AcceptedCommand<some Sendable>) -> Bool {
        told(of: command).map { $0.rejection == nil } ?? false
    }

    /// Why a command was refused once, which is carried out now: what it was refused for was another replica's, perhaps, or
    /// is allowed by now. It changed nothing then, and what came later was decided without it.
    func rejection(of command: AcceptedCommand<some Sendable>, now outcome: Outcome) -> Rejection? {
        if case .rejected = outcome { return nil }
        return decision(of: command)?.rejection.map(Self.rejection)
    }

    /// Whether a replay refuses what was carried out once: by the apps file of now, perhaps. What nothing is told of is
    /// decided for the first time, and its refusal is the one that counts.
    func refusesAnew(_ command: AcceptedCommand<some Sendable>, _ outcome: Outcome) -> Bool {
        guard case .rejected = outcome, let once = decision(of: command) else { return false }
        return once.rejection == nil
    }

    /// - Parameter text: `Rejection.description`.
    static func rejection(_ text: String) -> Rejection {
        let reason = text.prefix { $0 != ":" }
        return Rejection(
            ReasonCode(rawValue: String(reason)) ?? .serverError, String(text.dropFirst(reason.count + 2)))
    }
}
