// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// What a batch decided, and what no message of its own tells a replay of: decisions whose first message is no event and no
/// reply, and records that repeated a command. One note tells of those of one app, partition and time (``DecisionsNoted``).
struct Silence {
    struct Note {
        /// The ids of the messages that would tell of them.
        var decisions: [String]
        /// The last one's, and its place in the batch.
        var entry: Entry
        var place: Int
        var decidedAt: Timestamp
    }

    private struct Group: Hashable {
        var app: AppID
        var partition: TopicPartition
        var decidedAt: Timestamp
    }

    private var notes: [Group: Note] = [:]

    mutating func add(_ decision: String, _ app: AppID, _ entry: Entry, at decidedAt: Timestamp, place: Int) {
        let group = Group(app: app, partition: entry.place, decidedAt: decidedAt)
        if notes[group] == nil {
            notes[group] = Note(decisions: [decision], entry: entry, place: place, decidedAt: decidedAt)
        } else {
            notes[group]?.decisions.append(decision)
            notes[group]?.entry = entry
            notes[group]?.place = place
        }
    }

    /// In the order of the batch. Nothing is left.
    mutating func take() -> [Note] {
        if notes.isEmpty { return [] }
        defer { notes = [:] }
        return notes.values.sorted { $0.place < $1.place }
    }
}
