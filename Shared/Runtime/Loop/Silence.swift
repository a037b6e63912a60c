// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// What a batch decided, and what no message of its own tells a replay of: decisions whose first message is no event and no
/// reply, and commands that were not decided. One note tells of those of one app, partition and time (``DecisionsNoted``).
struct Silence {
    /// What is told of.
    struct Subject {
        var app: AppID
        var record: KafkaRecord
    }

    struct Note {
        var told = DecisionsNoted()
        /// The last one, its entry, and when it was decided.
        var subject: Subject
        var entry: Entry
        var decidedAt: Timestamp
        /// The last one's number among all that is told of.
        fileprivate var number: Int
    }

    private struct Group: Hashable {
        var app: AppID
        var partition: TopicPartition
        var decidedAt: Timestamp
    }

    private var notes: [Group: Note] = [:]
    private var count = 0

    /// - Parameter tell: adds to the note that it becomes part of.
    mutating func add(
        _ subject: Subject, _ entry: Entry, at decidedAt: Timestamp, _ tell: (inout DecisionsNoted) -> Void
    ) {
        let group = Group(app: subject.app, partition: entry.place, decidedAt: decidedAt)
        var note = notes[group] ?? Note(subject: subject, entry: entry, decidedAt: decidedAt, number: 0)
        tell(&note.told)
        count += 1
        (note.subject, note.entry, note.number) = (subject, entry, count)
        notes[group] = note
    }

    /// In the order of the batch. Nothing is left.
    mutating func take() -> [Note] {
        if notes.isEmpty { return [] }
        defer { notes = [:] }
        return notes.values.sorted { $0.number < $1.number }
    }
}

extension Silence.Subject {
    init(_ command: AcceptedCommand<some Sendable>) {
        self.init(app: command.key.app, record: command.record)
    }

    /// - Parameter answer: names the app that the record is for, or says that it is.
    init(_ answer: Refusal.Answer, of record: KafkaRecord) {
        self.init(app: AppID(answer.attributes.appID ?? ""), record: record)
    }
}

extension DecisionsNoted {
    mutating func `repeat`(_ record: String) { repeated = (repeated ?? []) + [record] }

    mutating func refuse(_ record: String) { refused = (refused ?? []) + [record] }

    mutating func refuseInReplay(_ reply: String) { refusedInReplay = (refusedInReplay ?? []) + [reply] }
}
