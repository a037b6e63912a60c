// SPDX-License-Identifier: Apache-2.0

import Crypto
public import Foundation
public import WireJSON

/// An id of one kind: text whose identity is its bytes. Swift's own `==` also takes canonically equivalent spellings for
/// equal ("é" as one scalar or two), which databases and other languages do not. On the wire and in a row it is that
/// text; what it may hold is checked where a command is read.
///
/// Inlinable, so that who uses it in another module pays for a text and no more.
@frozen
public struct ID<Kind>: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    public var text: String

    @inlinable public init(_ text: String) { self.text = text }

    @inlinable public init(stringLiteral text: String) { self.text = text }

    @inlinable public var description: String { text }

    @inlinable public static func == (left: ID, right: ID) -> Bool { left.text.isExactly(right.text) }

    @inlinable public static func < (left: ID, right: ID) -> Bool { left.text.precedesByBytes(right.text) }

    @inlinable public func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

/// What there are ids of. Names only; nobody makes one.
public enum IDKind {
    public enum App {}
    public enum Install {}
    public enum User {}
    public enum External {}
    public enum Device {}
    public enum Alias {}
    public enum Key {}
    public enum Command {}
    public enum Source {}
    public enum Identity {}
    public enum Header {}
    public enum Request {}
}

/// A tenant.
public typealias AppID = ID<IDKind.App>
/// One installation of an app on a device. Unique within its app (L47).
public typealias InstallID = ID<IDKind.Install>
/// A person, as the platform names it: 24 lower-case hex characters.
public typealias UserID = ID<IDKind.User>
/// A person, as the app's own backend names it (L17).
public typealias ExternalID = ID<IDKind.External>
/// What a session and a current user belong to.
public typealias DeviceID = ID<IDKind.Device>
public typealias AliasID = ID<IDKind.Alias>
/// An API key's name, or a verification key's.
public typealias KeyID = ID<IDKind.Key>
/// CloudEvents `id` of a command, or of a publication that is read like one.
public typealias CommandID = ID<IDKind.Command>
/// CloudEvents `source`.
public typealias SourceID = ID<IDKind.Source>
/// The value of an identity, such as an e-mail address.
public typealias IdentityValue = ID<IDKind.Identity>

/// A request of a data subject: a UUID of whoever sends it.
public typealias SubjectRequestID = ID<IDKind.Request>

extension ID: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// Members that are ids are read and written as the text that they are, without a container of their own. The compiler
/// takes these where it writes a message's `Codable`.
extension KeyedDecodingContainer {
    func decode<Kind>(_: ID<Kind>.Type, forKey key: Key) throws -> ID<Kind> {
        ID(try decode(String.self, forKey: key))
    }

    func decodeIfPresent<Kind>(_: ID<Kind>.Type, forKey key: Key) throws -> ID<Kind>? {
        try decodeIfPresent(String.self, forKey: key).map { ID($0) }
    }
}

extension KeyedEncodingContainer {
    mutating func encode<Kind>(_ id: ID<Kind>, forKey key: Key) throws { try encode(id.text, forKey: key) }

    mutating func encodeIfPresent<Kind>(_ id: ID<Kind>?, forKey key: Key) throws {
        try encodeIfPresent(id?.text, forKey: key)
    }
}

extension ID: WireReadable {
    public init?(usual view: JSONView) {
        guard let text = view.stringValue else { return nil }
        self.init(text)
    }
}

extension ID: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(text) }
}

extension JSONOutput {
    mutating func member<Kind>(_ name: StaticString, _ id: ID<Kind>) { member(name, id.text) }

    mutating func memberIfPresent<Kind>(_ name: StaticString, _ id: ID<Kind>?) {
        if let id { member(name, id.text) }
    }
}

extension String {
    /// Whether both have the same bytes.
    @inlinable public func isExactly(_ other: String) -> Bool {
        utf8.count == other.utf8.count && byteOrder(other) == 0
    }

    /// Whether these bytes stand before the other's.
    @inlinable public func precedesByBytes(_ other: String) -> Bool { byteOrder(other) < 0 }

    @inlinable func hashBytes(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Below, at or above 0 as the bytes of this text stand before, equal or stand behind the other's.
    @inlinable func byteOrder(_ other: String) -> Int {
        withBytes { left in
            other.withBytes { right in
                let count = min(left.count, right.count)
                guard count > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress else {
                    return left.count - right.count
                }
                let order = memcmp(leftStart, rightStart, count)
                return order == 0 ? left.count - right.count : Int(order)
            }
        }
    }

    /// All texts of Swift on Linux are stored as UTF-8; one that is not is copied. (`utf8Span` takes three times as many
    /// instructions.)
    @inlinable func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        utf8.withContiguousStorageIfAvailable(body) ?? Array(utf8).withUnsafeBufferPointer(body)
    }
}

extension [UInt8] {
    /// Below, at or above 0 as these bytes stand before, equal or stand behind the other's.
    fileprivate func byteOrder(_ other: [UInt8]) -> Int {
        withUnsafeBytes { left in
            other.withUnsafeBytes { right in
                let count = Swift.min(left.count, right.count)
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
@frozen
public struct Scoped<ID: Hashable & Comparable & Sendable>: Hashable, Comparable, Sendable {
    public var app: AppID
    public var id: ID

    @inlinable public init(app: AppID, id: ID) {
        self.app = app
        self.id = id
    }

    @inlinable public static func < (left: Scoped, right: Scoped) -> Bool {
        let order = left.app.text.byteOrder(right.app.text)
        return order == 0 ? left.id < right.id : order < 0
    }

    /// Ids differ more often than apps.
    @inlinable public static func == (left: Scoped, right: Scoped) -> Bool {
        left.id == right.id && left.app == right.app
    }

    /// Without the app: few apps use the same id.
    @inlinable public func hash(into hasher: inout Hasher) { id.hash(into: &hasher) }
}

/// What a text is found by in an index: its SHA-256. The text itself may be longer than an index entry can be.
///
/// Compared, hashed, read and written by hand: what comes of itself does that byte by byte through the generic forms.
public struct TextDigest: Codable, Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    public init(of text: String) {
        var text = text
        bytes = text.withUTF8 { SHA256.hash(data: UnsafeRawBufferPointer($0)).withUnsafeBytes { Array($0) } }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let bytes = [UInt8](hex: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "a digest that is not hex")
        }
        self.bytes = bytes
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bytes.hex)
    }

    public func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

    public static func == (left: TextDigest, right: TextDigest) -> Bool { left.bytes.byteOrder(right.bytes) == 0 }

    public static func < (left: TextDigest, right: TextDigest) -> Bool { left.bytes.byteOrder(right.bytes) < 0 }
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

    /// The same of what may be another kind of id, such as a user's with leading zeros: only as it is written here.
    public init?(spelled text: String) {
        self.init(text)
        guard text == description else { return nil }
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

extension MPID: WireReadable {
    public init?(usual view: JSONView) {
        guard let text = view.stringValue else { return nil }
        self.init(text)
    }
}

extension MPID: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(description) }
}

/// The MPID that a client had before: `null` and 0 both mean that it had none (F24).
struct OptionalMPID: Decodable {
    var mpid: MPID?

    init(from decoder: any Decoder) throws {
        mpid = MPID(try MPID.number(decoder))
    }
}
