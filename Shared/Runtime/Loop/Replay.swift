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

/// By which time a record is decided: of the past, by that of its decision, so that what it did once it does again. Where
/// nothing tells of that, by its own: codes are valid as long as they were, and a command that has expired since is carried
/// out.
struct PastTimes {
    /// Where the past ends; `nil` where nothing is replayed.
    var end: Timestamp?
    /// What is known of when commands of the past were decided.
    var decided: [CommandKey: DecisionTimes.Found] = [:]
    /// Why records of the past were refused, by the ids of the messages that told of it.
    var refused: [String: String] = [:]
    var later = LaterTimes()

    func isPast(_ record: KafkaRecord) -> Bool {
        guard let end else { return false }
        return record.timestampMs >= 0 && record.timestampMs < end.milliseconds
    }

    func time(of record: KafkaRecord, _ key: CommandKey? = nil, now: Timestamp) -> Timestamp {
        guard isPast(record) else { return now }
        let time = key.flatMap { decided[$0]?.decidedAt } ?? record.timestampMs
        return min(now, Timestamp(milliseconds: time))
    }

    /// - Returns: what is known of the commands of which something tells.
    func find(
        _ commands: [CommandKey], in transaction: any SQLTransaction
    ) throws(StorageError) -> [CommandKey: DecisionTimes.Found] {
        var found = try DecisionTimes.find(commands, in: transaction)
        for (command, once) in found { found[command]?.decidedAt = later.time(of: command, once.decidedAt) }
        return found
    }

    /// Whether its id was another one's once: what was answered under it said something else. It was refused, whichever of
    /// the two a replay comes to first.
    func isReused(_ command: AcceptedCommand<some Sendable>) -> Bool {
        guard isPast(command.record), let key = command.keyOnce, let told = decided[key]?.digest else { return false }
        return told != CommandDigest.text(command.digest)
    }

    /// Whether what was carried out under this id once was another record, which said the same: with another key, or another
    /// `expirytime`. This one was its repetition then, and did nothing; the id is that one's.
    func isRepetition(_ command: AcceptedCommand<some Sendable>, now outcome: Outcome) -> Bool {
        guard outcome.isRefusal, isPast(command.record), let key = command.keyOnce else { return false }
        return decided[key]?.isDone == true
    }

    /// Why a command was refused once, which is carried out now: what it was refused for was another replica's, perhaps, or
    /// is allowed by now. It changed nothing then, and what came later was decided without it.
    func rejection(of record: KafkaRecord, _ key: CommandKey, now outcome: Outcome) -> Rejection? {
        if case .rejected = outcome { return nil }
        guard isPast(record) else { return nil }
        return decided[key]?.rejection.map(Self.rejection)
    }

    /// - Parameter text: `Rejection.description`.
    static func rejection(_ text: String) -> Rejection {
        let reason = text.prefix { $0 != ":" }
        return Rejection(
            ReasonCode(rawValue: String(reason)) ?? .serverError, String(text.dropFirst(reason.count + 2)))
    }
}
