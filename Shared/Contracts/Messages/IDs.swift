// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// Text whose identity is its bytes. Swift's own `==` also takes canonically equivalent spellings for equal ("é" as
/// one scalar or two), which databases and other languages do not: ids are compared as this, never as `String`.
public struct ExactText: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let text: String

    public init(_ text: String) { self.text = text }

    public init(stringLiteral text: String) { self.text = text }

    public var description: String { text }

    public static func == (left: ExactText, right: ExactText) -> Bool {
        // What Swift takes for different has different bytes; the other way round it has to be looked at.
        left.text == right.text && left.order(right) == 0
    }

    public static func < (left: ExactText, right: ExactText) -> Bool { left.order(right) < 0 }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Below, at or above 0 as the bytes of this text stand before, equal or stand behind the other's.
    private func order(_ other: ExactText) -> Int {
        var (left, right) = (text, other.text)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                let count = min(left.count, right.count)
                guard count > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress else {
                    return left.count - right.count
                }
                let order = memcmp(leftStart, rightStart, count)
                return order == 0 ? left.count - right.count : Int(order)
            }
        }
    }
}

/// An id within its app: two apps may use the same one for different things.
public struct Scoped<ID: Hashable & Comparable & Sendable>: Hashable, Comparable, Sendable {
    public var app: ExactText
    public var id: ID

    public init(app: String, id: ID) {
        self.app = ExactText(app)
        self.id = id
    }

    public static func < (left: Scoped, right: Scoped) -> Bool { (left.app, left.id) < (right.app, right.id) }
}

extension Scoped<ExactText> {
    public init(app: String, id: String) { self.init(app: app, id: ExactText(id)) }
}

/// What a text is found by in an index: its SHA-256. The text itself may be longer than an index entry can be.
public struct TextDigest: Codable, Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    public init(of text: String) {
        var text = text
        bytes = text.withUTF8 { Array(SHA256.hash(data: UnsafeRawBufferPointer($0))) }
    }

    public static func < (left: TextDigest, right: TextDigest) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

/// A profile's id: a signed 64-bit number, never 0. Written as a string, because JSON numbers lose digits beyond 53 bits
/// in many languages; read from a string or a whole number, exactly (S1, F26).
public struct MPID: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let value: Int64

    /// - Returns: `nil` for 0, the clients' mark for "no user yet".
    public init?(_ value: Int64) {
        guard value != 0 else { return nil }
        self.value = value
    }

    /// Reads decimal digits with an optional minus sign; `nil` for anything else, 0 included.
    public init?(_ text: String) {
        guard !text.hasPrefix("+"), let value = Int64(text) else { return nil }
        self.init(value)
    }

    /// The highest there is.
    public static let max = MPID(known: .max)

    private init(known value: Int64) { self.value = value }

    public var description: String { String(value) }

    public static func < (left: MPID, right: MPID) -> Bool { left.value < right.value }
}

extension MPID: Codable {
    public init(from decoder: any Decoder) throws {
        let value = try Self.number(decoder)
        guard let mpid = MPID(value) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "an MPID is never 0"))
        }
        self = mpid
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// What stands in the place of an MPID, 0 included.
    static func number(_ decoder: any Decoder) throws -> Int64 {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            guard !text.hasPrefix("+"), let value = Int64(text) else { throw notANumber(decoder) }
            return value
        }
        guard let value = try? container.decode(Int64.self) else { throw notANumber(decoder) }
        return value
    }

    private static func notANumber(_ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: decoder.codingPath,
                debugDescription: "expected an MPID: a whole number of 64 bits with sign, as a string or a number"))
    }
}

/// The MPID that a client had before: `null` and 0 both mean that it had none (F24).
struct OptionalMPID: Decodable {
    var mpid: MPID?

    init(from decoder: any Decoder) throws {
        mpid = MPID(try MPID.number(decoder))
    }
}
