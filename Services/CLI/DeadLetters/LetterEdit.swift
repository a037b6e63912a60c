// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Supervision
import WireJSON

/// A letter as a text that somebody may change, and what that text says then. A value.
struct LetterEdit {
    let letter: Letter
    /// Type and data; of what is no envelope, all of it.
    let text: String

    /// - Returns: `nil` when the letter is no text.
    init?(_ letter: Letter) {
        self.letter = letter
        if let event = letter.event() {
            text = Self.pretty(["type": .string(RecordLine.short(event.attributes.type)), "data": event.data]) + "\n"
        } else if let value = letter.record.value, let text = String(validating: value, as: UTF8.self) {
            self.text = text
        } else {
            return nil
        }
    }

    /// A command that services can read, and the Kafka key that it belongs under.
    struct Command {
        var event: CloudEvent<JSONValue>
        var key: [UInt8]?
    }

    /// - Throws: `Hindrance`: why services would not take it.
    func command(_ text: String) throws(Hindrance) -> Command {
        var event: CloudEvent<JSONValue>
        if let original = letter.event() {
            event = original
            let value = try Self.parse(text)
            guard let type = value["type"]?.stringValue, let data = value["data"] else {
                throw Hindrance("INVALID_REQUEST", "the text is {\"type\": …, \"data\": …}, and one of them is missing")
            }
            event.attributes.type = CommandType.fullName(type)
            event.data = data
        } else {
            do throws(EnvelopeError) {
                event = try EnvelopeReader.read(value: Array(text.utf8), headers: letter.headers)
            } catch {
                throw Hindrance(error.reason.rawValue, error.detail)
            }
        }
        let type = try known(event.attributes.type)
        if let problem = type.problem(of: event.data) { throw Hindrance("INVALID_REQUEST", problem) }
        let app = AppID(event.attributes.appID ?? "")
        let key = type.partitionSubject(of: event.data).map { partitionKey(app: app, subject: $0) }
        if let key { event.attributes.partitionKey = key }
        return Command(event: event, key: key.map { Array($0.utf8) } ?? letter.record.key)
    }

    private func known(_ name: String) throws(Hindrance) -> CommandType {
        let types = services.filter { $0.name == letter.id.service }.flatMap { $0.commandTypes }
        guard let type = types.first(where: { $0.name == name }) else {
            let short = types.map { RecordLine.short($0.name) }
            let guess = nearest(to: RecordLine.short(name), in: short).map { " Did you mean \($0)?" } ?? ""
            throw Hindrance(
                "UNKNOWN_TYPE", "the \(letter.id.service) service knows no \(RecordLine.short(name)).\(guess)")
        }
        return type
    }

    private static func parse(_ text: String) throws(Hindrance) -> JSONValue {
        do {
            return try JSONValue(parsing: Array(text.utf8))
        } catch {
            throw Hindrance("NOT_JSON", "the text is \(error), which is \(Self.place(error.offset, in: text))")
        }
    }

    // MARK: Texts

    /// Where a byte stands, as editors say it.
    static func place(_ offset: Int, in text: String) -> String {
        let before = text.utf8.prefix(offset)
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { text.utf8.index(after: $0) } ?? text.startIndex
        let lines = before.count { $0 == UInt8(ascii: "\n") }
        let column = String(decoding: text.utf8[start..<before.endIndex], as: UTF8.self).count
        return "line \(lines + 1), column \(column + 1)"
    }

    /// Two spaces a level.
    static func pretty(_ value: JSONValue, _ indent: String = "") -> String {
        let inner = indent + "  "
        switch value {
        case .object(let object) where !object.isEmpty:
            let members = object.members.map { member in
                "\(inner)\(line(.string(member.name))): \(pretty(member.value, inner))"
            }
            return "{\n\(members.joined(separator: ",\n"))\n\(indent)}"
        case .array(let elements) where !elements.isEmpty:
            return "[\n\(elements.map { inner + pretty($0, inner) }.joined(separator: ",\n"))\n\(indent)]"
        default: return line(value)
        }
    }

    private static func line(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

    /// Lines that went, with `-`, and that came, with `+`; what is between them begins with a space.
    static func difference(_ old: String, _ new: String) -> [String] {
        let (left, right) = (old.split(separator: "\n"), new.split(separator: "\n"))
        let changes = right.difference(from: left)
        var removed: Set<Int> = []
        var inserted: Set<Int> = []
        for change in changes {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var lines: [String] = []
        var (i, j) = (0, 0)
        while i < left.count || j < right.count {
            if removed.contains(i), i < left.count {
                lines.append("- \(left[i])")
                i += 1
            } else if inserted.contains(j), j < right.count {
                lines.append("+ \(right[j])")
                j += 1
            } else {
                lines.append("  \(j < right.count ? right[j] : left[i])")
                i += 1
                j += 1
            }
        }
        return lines
    }
}
