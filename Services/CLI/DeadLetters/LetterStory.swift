// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import WireJSON

/// All that is known of one letter, for a screen and for programs.
struct LetterStory {
    private let handled: HandledLetter
    private let showsSecrets: Bool
    private let showsRaw: Bool
    var answer: (time: Int64, reply: ReceivedReply)?
    var later: (count: Int, isAll: Bool, types: Set<String>)?
    var handlings: [LetterHandling] = []
    var prospect: Prospect?
    private var events: [String] = []
    private var message: String?
    var signAs: String?

    /// So much of a value that is no envelope is shown to those who want to see it.
    private static let shownBytes = 120

    /// - Parameter showsRaw: whether the beginning of what is no envelope is shown.
    init(_ handled: HandledLetter, showsSecrets: Bool, showsRaw: Bool = false) {
        self.handled = handled
        self.showsSecrets = showsSecrets
        self.showsRaw = showsRaw
    }

    private var letter: Letter { handled.letter }

    mutating func take(_ prospect: Prospect, _ reply: ReceivedReply?) {
        self.prospect = prospect
        message = reply?.message
        events = reply?.events?.compactMap { $0["type"]?.stringValue.map(RecordLine.short) } ?? []
    }

    // MARK: For people

    var lines: [String] {
        var lines = [row("\(letter.id)", "\(letter.reason) at \(letter.step): \(letter.error)")]
        lines.append(row("came", came))
        lines.append(row(letter.isCommand ? "command" : "record", content))
        lines.append(row("answered", answered))
        if let since { lines.append(row("since then", since)) }
        if handlings.isEmpty { lines.append(row("handled", "never: it is open")) }
        for handling in handlings { lines.append(row(Self.words(handling.act), told(handling))) }
        if let now { lines.append(row("would now be", now)) }
        if handled.state.isOpen { lines.append(row("do", LetterGroup.advice(letter))) }
        return lines
    }

    private func row(_ name: String, _ text: String) -> String {
        name + String(repeating: " ", count: max(1, 18 - name.count)) + text
    }

    private var came: String {
        let place = letter.origin.partition < 0 ? letter.origin.topic : "\(letter.origin)@\(letter.originOffset)"
        let verb = letter.isSignatureRight ? "signed by" : "claims to be signed by"
        let signer = letter.signer.map { "\(verb) \($0)" } ?? "without a signature that can be read"
        let way = letter.step == DeadLetter.Step.publish.rawValue ? "meant for" : "on"
        let time = letter.originTime < 0 ? letter.record.timestampMs : letter.originTime
        return "\(LetterTable.time(time)) \(way) \(place), key \(letter.key ?? "-"), \(signer)"
    }

    private var content: String {
        guard let attributes = letter.attributes, let event = letter.event() else {
            guard letter.record.value != nil else { return "no value\(letter.isWithheld ? ": it holds a secret" : "")" }
            let cut = letter.isCut ? "; only its beginning is here" : ""
            let reason = letter.unreadable?.reason.rawValue ?? ""
            let facts = "no envelope (\(reason)): \(ValueFacts(letter.record).text)\(cut)"
            return raw.map { "\(facts): \($0)" } ?? "\(facts)  (its beginning: --raw)"
        }
        let data = String(decoding: shown(event.data).serialized(), as: UTF8.self)
        return "\(RecordLine.short(attributes.type))  id \(attributes.id)  from \(attributes.source)  \(data)"
    }

    /// The beginning of what is no envelope, where that is wanted.
    private var raw: String? {
        guard showsRaw, let value = letter.record.value else { return nil }
        let more = letter.wholeSize > Self.shownBytes ? "…" : ""
        return String(decoding: value.prefix(Self.shownBytes), as: UTF8.self) + more
    }

    private func shown(_ value: JSONValue) -> JSONValue {
        showsSecrets ? value : SecretMembers.replaced(in: value, by: .string("\u{2039}hidden\u{203A}"))
    }

    private var answered: String {
        if let answer {
            let reply = answer.reply
            let words = [reply.status.rawValue, reply.reason].compactMap(\.self).joined(separator: " ")
            return "\(LetterTable.time(answer.time)) \(words) (the sender knows; a replay is a second answer)"
        }
        guard let told = letter.told else { return "nothing" }
        return "\(told), by its reason; the reply was not found"
    }

    private var since: String? {
        guard let later else { return nil }
        let count = "\(later.isAll ? "" : "at least ")\(later.count) later command\(later.count == 1 ? "" : "s")"
        let types = later.types.isEmpty ? "" : " (\(later.types.sorted().joined(separator: ", ")))"
        let look = letter.key.flatMap { key in
            letter.app.flatMap { app in
                key.hasPrefix("\(app)/") ? "  identitybus explain \(key.dropFirst(app.count + 1)) --app \(app)" : nil
            }
        }
        return "\(count) for \(letter.key ?? "-")\(types)\(look ?? "")"
    }

    private static func words(_ act: LetterHandling.Act) -> String {
        switch act {
        case .claimed: "taken in hand"
        case .released: "put back"
        case .sent: "replayed"
        case .answered: "answered so"
        case .dismissed: "dismissed"
        }
    }

    private func told(_ handling: LetterHandling) -> String {
        var parts = [LetterTable.time(handling.time), "by \(handling.by)"]
        if let note = handling.note { parts.append("\"\(note)\"") }
        if let command = handling.command {
            parts.append("as \(command.place)@\(command.offset)")
            if command.isEdited { parts.append("edited") }
            if let key = command.keyID { parts.append("signed by \(key)") }
        }
        if let answer = handling.answer { parts.append(answer.text) }
        return parts.joined(separator: "  ")
    }

    private var now: String? {
        let signer = signAs.map { " signed as \($0)" } ?? ""
        switch prospect {
        case nil: return nil
        case .answered(let answer):
            let told = events.isEmpty ? "" : "; events \(events.joined(separator: ", "))"
            let words = answer.isGood ? "" : message.map { ": \($0)" } ?? ""
            return "\(answer.text)\(words)\(told)  (dry run\(signer.isEmpty ? "" : ",\(signer)"))"
        case .delivered: return "sent; nobody answers to such a record"
        case .unreadable(let reason): return "a dead letter again: \(reason)"
        case .unanswered: return "unknown: no service answered in time"
        case .hindered(let reason, let words): return "left open\(signer): \(reason): \(words)"
        }
    }

    // MARK: For programs

    var json: JSONValue {
        var object = handled.members
        if let event = letter.event() {
            object["source"] = .string(event.attributes.source)
            object["data"] = shown(event.data)
        } else {
            object["unreadable"] = .string(letter.unreadable?.reason.rawValue ?? "")
            object["value"] = raw.map { .string($0) } ?? .null
            if letter.record.value != nil { object["noEnvelope"] = ValueFacts(letter.record).json }
        }
        object["bytes"] = .number(JSONNumber(letter.wholeSize))
        if let answer {
            object["answered"] = [
                "time": .string(LetterTable.time(answer.time)), "status": .string(answer.reply.status.rawValue),
                "reason": answer.reply.reason.map { .string($0) } ?? .null,
            ]
        }
        if let later {
            object["laterCommands"] = .number(JSONNumber(later.count))
            object["laterCommandsAreAll"] = .bool(later.isAll)
        }
        object["handlings"] = .array(handlings.map { Self.json($0) })
        if let prospect { object["wouldBe"] = Self.json(prospect) }
        return .object(object)
    }

    private static func json(_ handling: LetterHandling) -> JSONValue {
        var object: JSONObject = [
            "act": .string(handling.act.rawValue), "time": .string(LetterTable.time(handling.time)),
            "by": .string(handling.by), "reasonText": handling.note.map { .string($0) } ?? .null,
        ]
        if let answer = handling.answer {
            object["status"] = .string(answer.status)
            object["reason"] = answer.reason.map { .string($0) } ?? .null
        }
        if let command = handling.command {
            object["topic"] = .string(command.place.topic)
            object["partition"] = .number(JSONNumber(command.place.partition))
            object["offset"] = .number(JSONNumber(command.offset))
        }
        return .object(object)
    }

    private static func json(_ prospect: Prospect) -> JSONValue {
        switch prospect {
        case .answered(let answer):
            ["status": .string(answer.status), "reason": answer.reason.map { .string($0) } ?? .null]
        case .delivered: ["status": "delivered"]
        case .unreadable(let reason): ["status": "unreadable", "reason": .string(reason)]
        case .unanswered: ["status": "unanswered"]
        case .hindered(let reason, let words):
            ["status": "left open", "reason": .string(reason), "message": .string(words)]
        }
    }
}
