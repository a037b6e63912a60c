// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import WireJSON

func parse(_ text: String, maxDepth: Int = 32) throws -> JSONValue {
    try JSONValue(parsing: Array(text.utf8), limits: JSONLimits(maxDepth: maxDepth))
}

/// The error of a refused document, nil when it is accepted.
func refusal(_ bytes: [UInt8], maxDepth: Int = 32) -> JSONParseError? {
    do {
        _ = try JSONValue(parsing: bytes, limits: JSONLimits(maxDepth: maxDepth))
        return nil
    } catch {
        return error
    }
}

func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
}

/// Random values, and random ways to write one and the same value.
struct RandomJSON {
    var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    mutating func value(depth: Int = 4) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .number(JSONNumber(Int64(truncatingIfNeeded: random.next())))
        case 3: return double()
        case 4, 5: return .string(string())
        case 6:
            return .array((0..<Int.random(in: 0..<5, using: &random)).map { _ in value(depth: depth - 1) })
        default:
            let count = Int.random(in: 0..<(random.next() % 9 == 0 ? 40 : 6), using: &random)
            let members = (0..<count).map { (string() + "\($0)", value(depth: depth - 1)) }
            return .object(JSONObject(members))
        }
    }

    private mutating func double() -> JSONValue {
        let number = Double(bitPattern: random.next())
        return JSONNumber(number).map(JSONValue.number) ?? 0.5
    }

    mutating func string() -> String {
        let alphabet: [Unicode.Scalar] = [
            "a", "b", "Z", "0", " ", "/", "\"", "\\", "\n", "\t", "\u{0}", "\u{1F}", "\u{7F}", "é", "߿", "ࠀ", "€",
            "\u{2028}", "\u{FFFD}", "\u{FFFF}", "😀", "\u{10FFFF}", "\u{301}", "\u{212A}",
        ]
        let scalars = (0..<Int.random(in: 0..<20, using: &random)).map { _ in
            random.next() % 2 == 0 ? "x" : alphabet[Int(random.next() % UInt64(alphabet.count))]
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// The value as text with random white space, member order and escaping.
    mutating func disguise(_ value: JSONValue) -> String {
        switch value {
        case .string(let content): return escaped(content)
        case .array(let elements):
            return "[" + space() + elements.map { disguise($0) + space() }.joined(separator: "," + space()) + "]"
        case .object(let object):
            let members = object.members.shuffled(using: &random).map { member in
                escaped(member.name) + space() + ":" + space() + disguise(member.value) + space()
            }
            return "{" + space() + members.joined(separator: "," + space()) + "}"
        default: return text(value.serialized())
        }
    }

    private mutating func space() -> String {
        ["", "", " ", "\n", "\t\r\n  "][Int(random.next() % 5)]
    }

    private mutating func escaped(_ content: String) -> String {
        var result = "\""
        for scalar in content.unicodeScalars {
            let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
            if mustEscape || random.next() % 4 == 0 {
                for unit in Character(scalar).utf16 {
                    let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// Whether two values are the same when numbers are compared by value.
func equivalent(_ one: JSONValue, _ other: JSONValue) -> Bool {
    switch (one, other) {
    case (.number(let left), .number(let right)):
        return left == right || left.double == right.double
    case (.array(let left), .array(let right)):
        return left.count == right.count && zip(left, right).allSatisfy { equivalent($0, $1) }
    case (.object(let left), .object(let right)):
        return left.count == right.count
            && left.members.allSatisfy { member in
                right[member.name].map { equivalent(member.value, $0) } ?? false
            }
    default: return one == other
    }
}
