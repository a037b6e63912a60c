// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Explanation
import Observability
package import WireJSON

/// One record as one line. What stands in records was written by others: nothing of it reaches the terminal but text.
package struct RecordLine {
    private let showsSecrets: Bool
    private let showsRaw: Bool
    private let isColoured: Bool
    /// Lines of another day begin with theirs.
    private let today: String

    /// - Parameter showsRaw: whether values that are no envelopes are shown to programs.
    package init(
        showsSecrets: Bool = false, showsRaw: Bool = false, isColoured: Bool = false, now: Timestamp = .now
    ) {
        self.showsSecrets = showsSecrets
        self.showsRaw = showsRaw
        self.isColoured = isColoured
        today = String(now.rfc3339.prefix(10))
    }

    private func shown(_ value: JSONValue) -> JSONValue {
        showsSecrets ? value : SecretMembers.replaced(in: value, by: MessageWords.hidden)
    }

    /// For programs: coordinates, key, headers, and the value as JSON. Of what is no envelope only what ``ValueFacts`` tell.
    package func json(_ record: KafkaRecord) -> String {
        var members: [(String, JSONValue)] = [
            ("topic", .string(record.topicPartition.topic)),
            ("partition", .number(JSONNumber(record.topicPartition.partition))),
            ("offset", .number(JSONNumber(record.offset))),
            ("timestamp", time(record).map { .string($0.rfc3339) } ?? .null),
            ("key", record.key.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null),
            (
                "headers",
                .object(
                    JSONObject(
                        record.headers.map { header in
                            (header.name, header.value.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null)
                        }))
            ),
        ]
        if let bytes = record.value {
            let isEnvelope = (try? EnvelopeReader.open(value: bytes, headers: record.headers)) != nil
            if !isEnvelope { members.append(("noEnvelope", ValueFacts(record).json)) }
            let value =
                isEnvelope || showsRaw
                ? (try? JSONValue(parsing: bytes)).map(shown) ?? .string(String(decoding: bytes, as: UTF8.self)) : .null
            members.append(("value", value))
        } else {
            members.append(("value", .null))
        }
        return String(decoding: JSONValue.object(JSONObject(members)).serialized(), as: UTF8.self).harmless
    }

    private func time(_ record: KafkaRecord) -> Timestamp? {
        record.timestampMs < 0 ? nil : Timestamp(milliseconds: record.timestampMs)
    }

    /// For people: when, what became of it, type, key, what it says, and the id of the command that it is about.
    package func text(_ record: KafkaRecord) -> String {
        let facts = RecordFacts(record)
        let (word, colour) = Self.word(facts.kind)
        var parts = [facts.type.map(Self.short) ?? "-", facts.key ?? "-", detail(facts, record)]
        for (index, width) in [28, 14].enumerated() { parts[index] = Self.pad(parts[index], width) }
        if let id = facts.commandID { parts.append("id \(id)") }
        if case .deadLetter = facts.kind { parts.append("\(record.topicPartition)@\(record.offset)") }
        let padded = Self.pad(word, 8)
        let shownWord = isColoured ? "\u{1B}[\(colour)m\(padded)\u{1B}[0m" : padded
        return "\(shown(time(record)))  \(shownWord) " + parts.joined(separator: "  ").harmless
    }

    private func shown(_ time: Timestamp?) -> String {
        guard let text = time?.rfc3339 else { return "-            " }
        let clock = String(text.dropFirst(11))
        return text.hasPrefix(today) ? clock : "\(text.prefix(10)) \(clock)"
    }

    /// And its colour: green for what was done, yellow for what was not, red for what somebody has to look at.
    private static func word(_ kind: RecordFacts.Kind) -> (String, Int) {
        switch kind {
        case .event: ("EVENT", 36)
        case .command: ("COMMAND", 0)
        case .reply(.succeeded, _): ("OK", 32)
        case .reply(.rejected, _): ("NO", 33)
        case .reply(.expired, _): ("EXPIRED", 33)
        case .reply(.pending, _): ("PENDING", 2)
        case .deadLetter: ("DEAD", 31)
        case .unreadable: ("?", 31)
        }
    }

    private func detail(_ facts: RecordFacts, _ record: KafkaRecord) -> String {
        switch facts.kind {
        case .deadLetter(let reason, let step): return "\(reason) (\(step)): \(facts.message ?? "")"
        case .unreadable:
            let facts = record.value == nil ? "no value" : "no envelope: \(ValueFacts(record).text)"
            return "\(record.topicPartition)@\(record.offset)  \(facts)"
        case .event, .command, .reply:
            var isDryRun = false
            if case .reply(_, true) = facts.kind { isDryRun = true }
            return (isDryRun ? "dry run  " : "") + (facts.message ?? facts.data.map { pairs($0) } ?? "")
        }
    }

    package static func short(_ type: String) -> String {
        MessageWords.short(type)
    }

    /// `a=1 b=[..]`: an object's members on one line.
    package func pairs(_ value: JSONValue) -> String { MessageWords.pairs(value, showsSecrets: showsSecrets) }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
