// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Runtime
import Storage
import Supervision
import WireJSON

/// The commands that the inboxes hold about some ids, with what was decided and told.
struct InboxStory {
    struct Chapter {
        var decidedAt: Int64
        var lines: [String]
    }

    let app: String
    let stores: [StoreReader]

    /// Rows that are read at a time.
    private static let slice = 5000

    /// The newest `limit` commands about any of the ids, the oldest first. Reads the whole of each inbox.
    func tell(_ ids: Set<ID<AnyID>>, limit: Int) throws -> [Chapter] {
        let subjects = Set(ids.map(\.text))
        let packing = ReceiptPacking()
        // As it stands in the messages: JSON escapes some characters.
        let quoted = Set(try subjects.map { try WireJSONEncoder().encode($0) })
        // By where the command stood: what is carried over stands in two generations.
        var chapters: [String: Chapter] = [:]
        for store in stores {
            let logs = try names(store)
            for table in Inbox.tables {
                var last: [UInt8] = []
                while true {
                    let rows = try store.query(
                        """
                        SELECT key, log, log_offset, outcome, decided_at, receipt FROM \(table)
                        WHERE key > $1 ORDER BY key LIMIT $2
                        """, [.blob(last), SQLValue(Self.slice)])
                    guard let key = try rows.last?.blob(0) else { break }
                    last = key
                    for row in rows {
                        let time = try row.integer(4)
                        let receipt = try? Receipt(column: row.blob(5), decidedAt: time, packing: packing)
                        guard let receipt, receipt.app == app, isAbout(receipt, subjects, quoted) else { continue }
                        let place = try "\(store.service) \(logs[row.integer(1)] ?? "?")@\(row.integer(2))"
                        let verdict = try Verdict(number: row.integer(3))
                        chapters[place] = chapter(receipt, verdict, time, store.service)
                    }
                    if chapters.count > 2 * limit + 1000 {
                        chapters = Dictionary(uniqueKeysWithValues: newest(chapters, limit))
                    }
                }
            }
        }
        return newest(chapters, limit).map(\.value)
    }

    /// The oldest first.
    private func newest(_ chapters: [String: Chapter], _ limit: Int) -> [(key: String, value: Chapter)] {
        chapters.sorted { ($0.value.decidedAt, $0.key) < ($1.value.decidedAt, $1.key) }.suffix(limit)
    }

    private func names(_ store: StoreReader) throws -> [Int64: String] {
        var names: [Int64: String] = [:]
        for row in try store.query("SELECT number, topic, partition, incarnation FROM logs", []) {
            names[try row.integer(0)] = "\(try row.text(1))/\(try row.integer(2))#\(try row.integer(3))"
        }
        return names
    }

    private func isAbout(_ receipt: Receipt, _ subjects: Set<String>, _ quoted: Set<[UInt8]>) -> Bool {
        if let subject = receipt.subject, subjects.contains(subject) { return true }
        return (receipt.told.map(\.data) + [receipt.reply?.value ?? []]).contains { data in
            strings(in: data).contains { quoted.contains(Array($0)) }
        }
    }

    /// The strings of a JSON text, with their quotes.
    private func strings(in json: [UInt8]) -> [ArraySlice<UInt8>] {
        var strings: [ArraySlice<UInt8>] = []
        var start: Int?
        var isEscaped = false
        for (index, byte) in json.enumerated() {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = start != nil
            } else if byte == UInt8(ascii: "\"") {
                if let begin = start {
                    strings.append(json[begin...index])
                    start = nil
                } else {
                    start = index
                }
            }
        }
        return strings
    }

    private func chapter(_ receipt: Receipt, _ verdict: Verdict, _ time: Int64, _ service: String) -> Chapter {
        let outcome = verdict.rawValue + (receipt.reason.map { " \($0)" } ?? "")
        let sender = "\(receipt.source.isEmpty ? "?" : receipt.source) \(receipt.id)"
        var lines = [
            "\(Timestamp(milliseconds: time).rfc3339)  \(service)  \(RecordLine.short(receipt.type))  \(outcome)  from \(sender)"
        ]
        for told in receipt.told {
            guard let data = try? JSONValue(parsing: told.data) else { continue }
            let verb = told.role == .event ? "event   " : "sent    "
            lines.append("    \(verb) \(RecordLine.short(told.type))  \(RecordLine().pairs(data))")
        }
        if receipt.reply?.role == .confidentialReply {
            lines.append("    answered with a secret, which is not shown")
        } else if let value = receipt.reply?.value, let reply = try? JSONValue(parsing: value)["data"],
            let line = answer(reply)
        {
            lines.append("    answered \(line)")
        }
        return Chapter(decidedAt: time, lines: lines)
    }

    private func answer(_ reply: JSONValue) -> String? {
        guard let reply = ReceivedReply(reply) else { return nil }
        let result = reply.result.map { RecordLine().pairs($0) } ?? ""
        return [reply.message, result.isEmpty ? nil : result].compactMap { $0 }.joined(separator: "  ")
    }
}
