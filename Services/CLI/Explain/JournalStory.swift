// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Runtime
import Storage
import WireJSON

/// The commands that the journals hold about some ids, with what was decided and told.
struct JournalStory {
    struct Chapter {
        var decidedAt: Int64
        var lines: [String]
    }

    let app: String
    let stores: [StoreReader]

    /// The newest `limit` commands about any of the ids, the oldest first.
    func tell(_ ids: Set<ID<AnyID>>, limit: Int) throws -> [Chapter] {
        var chapters: [String: Chapter] = [:]
        for store in stores {
            for id in ids.sorted() {
                // As it stands in the messages: JSON escapes some characters.
                let quoted = String(decoding: try WireJSONEncoder().encode(id.text), as: UTF8.self)
                let rows = try store.query(
                    """
                    SELECT topic, partition, log_offset, type, outcome, reason, source, id, messages, decided_at
                    FROM journal WHERE app = $1 AND (subject = $2 OR \(store.contains("messages", 3)))
                    ORDER BY decided_at DESC, log_offset DESC LIMIT $4
                    """, [.text(app), .text(id.text), .text(quoted), SQLValue(limit)])
                for row in rows {
                    let place = "\(store.service) \(try row.text(0))/\(try row.integer(1))@\(try row.integer(2))"
                    if chapters[place] == nil { chapters[place] = try chapter(row, store.service) }
                }
            }
        }
        return chapters.sorted { ($0.value.decidedAt, $0.key) < ($1.value.decidedAt, $1.key) }.map(\.value)
            .suffix(limit).map { $0 }
    }

    private func chapter(_ row: SQLRow, _ service: String) throws -> Chapter {
        let time = try row.integer(9)
        let outcome = try row.text(4) + (try row.optionalText(5).map { " \($0)" } ?? "")
        let sender = "\(try row.optionalText(6) ?? "?") \(try row.optionalText(7) ?? "?")"
        var lines = [
            "\(Timestamp(milliseconds: time).rfc3339)  \(service)  \(RecordLine.short(try row.text(3)))  \(outcome)  from \(sender)"
        ]
        for message in (try? OutboxCodec.decode(row.blob(8))) ?? [] {
            switch message.role {
            case .reply:
                if let reply = data(message), let line = answer(reply) { lines.append("    answered \(line)") }
            case .event, .command:
                if let value = message.value, let event = try? EnvelopeReader.read(value: value, headers: []) {
                    let verb = message.role == .event ? "event   " : "sent    "
                    lines.append(
                        "    \(verb) \(RecordLine.short(event.attributes.type))  \(RecordLine().pairs(event.data))")
                }
            case .deadLetter: lines.append("    became a dead letter")
            case .confidentialReply: lines.append("    answered with a secret, which is not shown")
            }
        }
        return Chapter(decidedAt: time, lines: lines)
    }

    private func data(_ message: OutboxRecord) -> JSONValue? {
        guard let value = message.value else { return nil }
        return try? EnvelopeReader.read(value: value, headers: []).data
    }

    private func answer(_ reply: JSONValue) -> String? {
        guard let reply = ReceivedReply(reply) else { return nil }
        let result = reply.result.map { RecordLine().pairs($0) } ?? ""
        return [reply.message, result.isEmpty ? nil : result].compactMap { $0 }.joined(separator: "  ")
    }
}
