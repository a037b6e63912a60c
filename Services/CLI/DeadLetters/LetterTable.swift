// SPDX-License-Identifier: Apache-2.0

import Contracts
import Observability
import Supervision
import WireJSON

/// A letter, and what was done about it.
struct HandledLetter {
    var letter: Letter
    var state: HandledLetters.State

    /// What is to be said of it in a word.
    var status: String {
        guard let closing = state.closing else { return isInHand ? "in hand" : "open" }
        if closing.act == .dismissed { return "dismissed" }
        return "replayed"
    }

    /// Whether somebody is about to send it, and not gone.
    private var isInHand: Bool {
        state.claim.map { !HandledLetters.isOver($0, at: Timestamp.now.milliseconds) } ?? false
    }

    /// By whom, why and with what result; empty for one that is open.
    var detail: String {
        guard let closing = state.closing ?? (isInHand ? state.claim : nil) else { return "" }
        let note = closing.note.map { " \"\($0)\"" } ?? ""
        let answer = closing.act == .sent ? ": \(state.answer?.answer?.text ?? "not answered yet")" : ""
        return "by \(closing.by)\(note)\(answer)"
    }
}

/// The letters of one kind: those that one repair may be for.
struct LetterGroup {
    var service: String
    var reason: String
    var step: String
    var letters: [HandledLetter] = []

    var open: Int { letters.count { $0.state.isOpen } }
    var oldest: Int64 { letters.map(\.letter.record.timestampMs).min() ?? -1 }
    var newest: Int64 { letters.map(\.letter.record.timestampMs).max() ?? -1 }

    /// What there is most of comes first.
    static func groups(_ letters: [HandledLetter]) -> [LetterGroup] {
        var groups: [String: LetterGroup] = [:]
        for handled in letters {
            let letter = handled.letter
            let name = "\(letter.id.service) \(letter.reason) \(letter.step)"
            groups[
                name, default: LetterGroup(service: letter.id.service, reason: letter.reason, step: letter.step)
            ].letters.append(handled)
        }
        return groups.values.sorted {
            ($1.open, $1.letters.count, $0.service, $0.reason) < ($0.open, $0.letters.count, $1.service, $1.reason)
        }
    }

    /// The apps and the keys that signed.
    var senders: String {
        var signers: [String: Set<String>] = [:]
        for letter in letters.map(\.letter) {
            guard let app = letter.app else { continue }
            signers[app, default: []].formUnion([letter.signer].compactMap(\.self))
        }
        let names = signers.sorted { $0.key < $1.key }.map { app, keys in
            keys.isEmpty ? app : "\(app) (\(Self.some(keys.sorted())))"
        }
        return names.isEmpty ? "-" : Self.some(names)
    }

    /// What to do: about the cause while letters are open, else what was done; of letters that have not all gone the same way,
    /// how many went which.
    var advice: String {
        let open = letters.filter(\.state.isOpen).map(\.letter)
        // Where there is one that can be sent, it is about that.
        if let letter = open.first(where: { !$0.isCut && !$0.isWithheld }) ?? open.first {
            return "-> \(Self.advice(letter))"
        }
        let done = Set(letters.map { "\($0.status) \($0.detail)" })
        if done.count == 1 { return done.first ?? "" }
        return Dictionary(grouping: letters, by: \.status).sorted {
            ($1.value.count, $0.key) < ($0.value.count, $1.key)
        }
        .map { "\($0.value.count) \($0.key)" }.joined(separator: ", ")
    }

    static func advice(_ letter: Letter) -> String {
        if letter.isWithheld { return "it held a secret and is kept without it: let the sender ask again; dismiss" }
        if letter.isCut { return "only its beginning is kept: let the sender send it anew, smaller; dismiss" }
        return switch letter.reason {
        case "KEY_EXPIRED": "give the key a new end, then replay; or replay --sign-as"
        case "KEY_REVOKED", "KEY_UNKNOWN", "KEY_OF_OTHER_APP":
            "was it a sender of yours? replay --sign-as; else dismiss"
        case "APP_UNKNOWN": "add the app, then replay; or dismiss"
        case "SIGNATURE_MISSING", "SIGNATURE_MALFORMED", "SIGNATURE_INVALID":
            "nobody vouches for it: find the sender; replay --sign-as, or dismiss"
        case "PRINCIPAL_INVALID": "nobody may send this so: dismiss"
        case "TOO_LARGE": "fix the producer: a command has 256 KiB at most; dismiss"
        case "UNKNOWN_TYPE": "fix the producer; edit, or dismiss. Of a newer version: update, then replay"
        case "UNDELIVERABLE": "make the topic take it, then replay; or dismiss"
        case "INTERNAL_ERROR": "a defect: look at the log, update, then replay"
        case "TOO_OLD_TO_TELL": "it may have been done: ask explain, then replay or dismiss"
        default:
            letter.step == DeadLetter.Step.decode.rawValue
                ? "fix the producer; edit, or dismiss" : "look at one: identitybus dlq show"
        }
    }

    private static func some(_ names: [String]) -> String {
        names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
    }
}

/// Letters on a screen, and for programs.
struct LetterTable {
    let now: Timestamp

    func groups(_ groups: [LetterGroup]) -> [String] {
        let rows = groups.map { group in
            [
                group.service, group.reason, group.step, "\(group.letters.count)", "\(group.open)", age(group.oldest),
                age(group.newest), group.senders, group.advice,
            ]
        }
        let heads = ["SERVICE", "REASON", "STEP", "LETTERS", "OPEN", "OLDEST", "NEWEST", "APPS (KEYS)", ""]
        return Self.table([heads] + rows, right: [3, 4])
    }

    func letters(_ letters: [HandledLetter]) -> [String] {
        let rows = letters.map { handled in
            let letter = handled.letter
            return [
                "\(letter.id)", Self.time(letter.record.timestampMs), letter.reason,
                letter.attributes.map { RecordLine.short($0.type) } ?? "-", letter.key ?? "-",
                letter.attributes?.id ?? "-",
                [handled.status, handled.detail].filter { !$0.isEmpty }.joined(separator: " "),
            ]
        }
        return Self.table([["LETTER", "TIME", "REASON", "TYPE", "KEY", "ID", "STATE"]] + rows, right: [])
    }

    static func total(_ letters: [HandledLetter]) -> String {
        let open = letters.count { $0.state.isOpen }
        return "\(letters.count) letter\(letters.count == 1 ? "" : "s"), \(open) open."
    }

    func age(_ time: Int64) -> String {
        if time < 0 { return "-" }
        let seconds = max(0, now.milliseconds - time) / 1000
        return switch seconds {
        case ..<60: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) d"
        }
    }

    static func time(_ milliseconds: Int64) -> String {
        milliseconds < 0 ? "-" : Timestamp(milliseconds: milliseconds).rfc3339
    }

    /// Columns two spaces apart.
    private static func table(_ rows: [[String]], right: Set<Int>) -> [String] {
        let rows = rows.map { $0.map(\.harmless) }
        let widths = (0..<(rows.first?.count ?? 0)).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return right.contains(column) ? space + text : text + space
            }
            let line = cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}

// MARK: JSON

extension LetterGroup {
    var json: JSONValue {
        [
            "service": .string(service), "reason": .string(reason), "step": .string(step),
            "letters": .number(JSONNumber(letters.count)), "open": .number(JSONNumber(open)),
            "oldest": .string(LetterTable.time(oldest)), "newest": .string(LetterTable.time(newest)),
            "apps": .array(Set(letters.compactMap(\.letter.app)).sorted().map { .string($0) }),
            "keyIds": .array(Set(letters.compactMap(\.letter.signer)).sorted().map { .string($0) }),
        ]
    }
}

extension HandledLetter {
    var json: JSONValue { .object(members) }

    var members: JSONObject {
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        var object: JSONObject = [
            "letter": .string(letter.id.description), "time": .string(LetterTable.time(letter.record.timestampMs)),
            "reason": .string(letter.reason), "step": .string(letter.step), "error": .string(letter.error),
            "app": text(letter.app), "key": text(letter.key), "keyId": text(letter.signer),
            "type": text(letter.attributes?.type), "id": text(letter.attributes?.id),
            "topic": .string(letter.origin.topic), "partition": .number(JSONNumber(letter.origin.partition)),
            "offset": .number(JSONNumber(letter.originOffset)), "open": .bool(state.isOpen),
            "state": .string(status),
        ]
        if let handling = state.closing ?? state.claim {
            object["by"] = .string(handling.by)
            object["reasonText"] = text(handling.note)
        }
        if let answer = state.answer?.answer {
            object["status"] = .string(answer.status)
            object["answerReason"] = text(answer.reason)
        }
        return object
    }
}
