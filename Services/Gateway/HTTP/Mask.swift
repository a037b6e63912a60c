// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import WireJSON

/// What a key that masks is shown in place of what people are reached and called by (docs/gateway.md "The admin port"). Pure.
///
/// Where an answer says what a value is, it is masked by that; the same value, and whatever looks like an e-mail, is masked
/// in every sentence and id of the answer too. Two values that would look alike are told apart by a number, which means
/// something in this answer only.
struct Mask {
    /// The values that this answer says are people's, the longest first, and what is shown of each.
    private let values: [(text: String, shown: String)]

    /// - Parameter answer: the whole of it.
    init(_ answer: JSONValue) {
        var found = Found()
        Self.collect(answer, into: &found)
        values = found.shown.map { (text: $0.key, shown: $0.value) }.sorted { $0.text.count > $1.text.count }
    }

    /// What each value is shown as, and how many are shown alike but for a number: the first is without one.
    private struct Found {
        var shown: [String: String] = [:]
        private var alike: [String: Int] = [:]

        mutating func note(_ text: String, _ type: IdentityType) {
            guard !text.isEmpty, shown[text] == nil else { return }
            let masked = Mask.shown(text, type)
            let number = alike[masked, default: 0] + 1
            alike[masked] = number
            shown[text] = number == 1 ? masked : "\(masked) (\(number))"
        }
    }

    static func masked(_ answer: JSONValue) -> JSONValue { Mask(answer).masked(answer) }

    /// Of a text that stands alone, such as a problem's.
    static func masked(_ text: String) -> String { Mask(.null).masked(text) }

    /// By the names that our own and the vendor's answers have for them. Not the app's own id of a person: without it nobody
    /// could be helped.
    private static let types: [String: IdentityType] = Dictionary(
        IdentityType.allCases.filter { !$0.isDevice && $0 != .customerID }
            .flatMap { [($0.rawValue, $0), (ProfileCalls.word($0), $0)] },
        uniquingKeysWith: { first, _ in first })

    /// Members that hold such a value by their own name.
    private static let members: [String: IdentityType] = types.merging(
        ["userEmail": .email, "userName": .other, "name": .other]) { first, _ in first }

    /// Members that are an id, and nothing else. One that looks like an e-mail is one, whatever its characters.
    private static let ids: Set<String> = [
        "id", "commandId", "customerid", "deviceId", "externalId", "installId", "newExternalId", "newValue", "oldValue",
        "previousExternalId", "subject", "userId", "value",
    ]

    private static func collect(_ value: JSONValue, into found: inout Found) {
        if let list = value.arrayValue { return list.forEach { collect($0, into: &found) } }
        guard let object = value.objectValue else { return }
        let word = object["type"]?.stringValue ?? object["identityType"]?.stringValue
        if let type = word.flatMap({ types[$0] }) {
            for name in ["value", "oldValue", "newValue"] { note(object[name], type, &found) }
        }
        for member in object.members {
            if let type = members[member.name] {
                for one in member.value.arrayValue ?? [member.value] { note(one, type, &found) }
            } else if ids.contains(member.name) {
                for one in member.value.arrayValue ?? [member.value] where isEmail(one.stringValue ?? "") {
                    note(one, .email, &found)
                }
            }
            collect(member.value, into: &found)
        }
    }

    private static func note(_ value: JSONValue?, _ type: IdentityType, _ found: inout Found) {
        if let text = value?.stringValue { found.note(text, type) }
    }

    /// Enough to tell two people apart who are both asked on the telephone, and not enough to write to either.
    static func shown(_ text: String, _ type: IdentityType) -> String {
        switch type {
        case .mobileNumber, .phoneNumber2, .phoneNumber3:
            return "•••" + (text.count < 6 ? "" : text.suffix(2))
        default:
            let parts = text.split(separator: "@", maxSplits: 1)
            return parts.map { ($0.count > 1 && $0.first != "•" ? String($0.prefix(1)) : "") + "•••" }
                .joined(separator: "@")
        }
    }

    // MARK: Putting it in place

    /// Words of ours, by which programs tell one thing from another.
    private static let ours: Set<String> = ["service", "kind", "type", "outcome", "topic"]

    private func masked(_ value: JSONValue) -> JSONValue {
        if let text = value.stringValue { return .string(masked(text)) }
        if let list = value.arrayValue { return .array(list.map(masked)) }
        guard let object = value.objectValue else { return value }
        return .object(
            JSONObject(
                object.members.map { ($0.name, Self.ours.contains($0.name) ? $0.value : masked($0.value)) }))
    }

    private func masked(_ text: String) -> String {
        var text = text
        for value in values where text.contains(value.text) { text = Self.replacing(value, in: text) }
        return text.contains("@") ? Self.withoutEmails(text) : text
    }

    /// Where it stands as a word of its own.
    private static func replacing(_ value: (text: String, shown: String), in text: String) -> String {
        var result = ""
        var rest = text[...]
        while let found = rest.firstRange(of: value.text) {
            let before = rest[..<found.lowerBound].last ?? result.last
            let isWord = !isPartOfWord(before) && !isPartOfWord(rest[found.upperBound...].first)
            result += rest[..<found.lowerBound] + (isWord ? value.shown : value.text)
            rest = rest[found.upperBound...]
        }
        return result + rest
    }

    private static func isPartOfWord(_ character: Character?) -> Bool {
        character.map { $0.isLetter || $0.isNumber || "-_".contains($0) } ?? false
    }

    private static func isEmail(_ text: String) -> Bool { text.dropFirst().dropLast().contains("@") }

    /// What may stand in an e-mail ends no word, but for what ends one in a sentence.
    private static func withoutEmails(_ text: String) -> String {
        var result = ""
        var word = ""
        func end() {
            result += isEmail(word) ? shown(word, .email) : word
            word = ""
        }
        for character in text {
            if character.isWhitespace || ",;:()<>[]\"".contains(character) {
                end()
                result.append(character)
            } else {
                word.append(character)
            }
        }
        end()
        return result
    }
}
