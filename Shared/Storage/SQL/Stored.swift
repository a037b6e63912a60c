// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// A value that stands in one column as bytes, as ``StoredWriter`` writes them.
///
/// The members of a struct stand one after the other behind their count, and the number of an enum's case before what the
/// case carries. So a form grows at its end only: a struct by members that are optional or have a default, an enum by cases.
/// A row of before is read then; members are never removed, reordered or given another type. `scripts/generate` writes
/// the conformances of structs and enums that are declared `Stored` in the services, and of all that they lead to.
public protocol Stored: Sendable {
    func store(in bytes: inout StoredWriter)

    /// - Throws: ``StorageError/Kind/invalid`` when the bytes are none of this form.
    init(stored bytes: inout StoredReader) throws(StorageError)
}

/// The bytes of a column. A number takes seven bits a byte, the lowest first, with its sign in the lowest bit of all; a text
/// or bytes stand behind their count.
public struct StoredWriter {
    /// The number of this way of writing.
    @usableFromInline static let form: UInt8 = 1

    public private(set) var bytes: [UInt8]

    public init() {
        bytes = [Self.form]
        bytes.reserveCapacity(256)
    }

    public mutating func add(byte: UInt8) { bytes.append(byte) }

    public mutating func add(count: Int) { add(unsigned: UInt64(count)) }

    public mutating func add(_ number: Int64) { add(unsigned: UInt64(bitPattern: number << 1 ^ number >> 63)) }

    public mutating func add(_ text: String) {
        var text = text
        text.withUTF8 {
            add(count: $0.count)
            bytes.append(contentsOf: $0)
        }
    }

    public mutating func add(_ some: [UInt8]) {
        add(count: some.count)
        bytes.append(contentsOf: some)
    }

    private mutating func add(unsigned: UInt64) {
        var rest = unsigned
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }
}

/// Reads what ``StoredWriter`` wrote, in the same order.
public struct StoredReader {
    private let bytes: [UInt8]
    private var place = 1

    /// - Throws: ``StorageError/Kind/invalid`` when they are written in another way.
    public init(_ bytes: [UInt8]) throws(StorageError) {
        guard bytes.first == StoredWriter.form else { throw Self.damaged }
        self.bytes = bytes
    }

    /// What is thrown for bytes that are none of the form.
    public static let damaged = StorageError.invalid("the bytes are damaged, or of a newer version")

    fileprivate var isAtEnd: Bool { place == bytes.count }

    @inlinable public mutating func next<Value: Stored>() throws(StorageError) -> Value { try Value(stored: &self) }

    public mutating func byte() throws(StorageError) -> UInt8 {
        guard place < bytes.count else { throw Self.damaged }
        defer { place += 1 }
        return bytes[place]
    }

    /// Of elements of at least one byte each.
    public mutating func count() throws(StorageError) -> Int {
        let count = try unsigned()
        guard count <= UInt64(bytes.count - place) else { throw Self.damaged }
        return Int(count)
    }

    /// How many of a struct's members stand here.
    /// - Parameters:
    ///   - required: without which it is none.
    ///   - all: those that are known.
    public mutating func members(_ required: Int, of all: Int) throws(StorageError) -> Int {
        let count = try count()
        guard required...all ~= count else { throw Self.damaged }
        return count
    }

    public mutating func number() throws(StorageError) -> Int64 {
        let unsigned = try unsigned()
        return Int64(bitPattern: unsigned >> 1) ^ -Int64(bitPattern: unsigned & 1)
    }

    public mutating func text() throws(StorageError) -> String {
        let end = try count() + place
        guard let text = String(validating: bytes[place..<end], as: UTF8.self) else { throw Self.damaged }
        place = end
        return text
    }

    public mutating func someBytes() throws(StorageError) -> [UInt8] {
        let end = try count() + place
        defer { place = end }
        return Array(bytes[place..<end])
    }

    private mutating func unsigned() throws(StorageError) -> UInt64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = try byte()
            guard shift < 63 || byte <= 1 else { throw Self.damaged }
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
    }
}

extension Stored {
    /// All that stands in the column.
    public var storedBytes: [UInt8] {
        var bytes = StoredWriter()
        store(in: &bytes)
        return bytes.bytes
    }

    /// - Throws: ``StorageError/Kind/invalid`` when they are none of this form, also where some are left over.
    public init(storedBytes: [UInt8]) throws(StorageError) {
        var bytes = try StoredReader(storedBytes)
        try self.init(stored: &bytes)
        guard bytes.isAtEnd else { throw StoredReader.damaged }
    }
}

// MARK: What everything is made of

extension String: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(self) }
    public init(stored bytes: inout StoredReader) throws(StorageError) { self = try bytes.text() }
}

extension Int64: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(self) }
    public init(stored bytes: inout StoredReader) throws(StorageError) { self = try bytes.number() }
}

extension Int: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(Int64(self)) }
    public init(stored bytes: inout StoredReader) throws(StorageError) { self = Int(try bytes.number()) }
}

extension Bool: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(byte: self ? 1 : 0) }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = false
        case 1: self = true
        default: throw StoredReader.damaged
        }
    }
}

extension ID: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(text) }
    public init(stored bytes: inout StoredReader) throws(StorageError) { self.init(try bytes.text()) }
}

extension Timestamp: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(milliseconds) }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        self.init(milliseconds: try bytes.number())
    }
}

extension MPID: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(value) }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        guard let mpid = MPID(try bytes.number()) else { throw StoredReader.damaged }
        self = mpid
    }
}

extension TextDigest: Stored {
    public func store(in bytes: inout StoredWriter) { bytes.add(self.bytes) }
    public init(stored bytes: inout StoredReader) throws(StorageError) { self.init(bytes: try bytes.someBytes()) }
}

/// A word of a closed set is the word.
extension Stored where Self: RawRepresentable<String> {
    @inlinable public func store(in bytes: inout StoredWriter) { bytes.add(rawValue) }

    @inlinable public init(stored bytes: inout StoredReader) throws(StorageError) {
        guard let word = Self(rawValue: try bytes.text()) else { throw StoredReader.damaged }
        self = word
    }
}

extension Optional: Stored where Wrapped: Stored {
    @inlinable public func store(in bytes: inout StoredWriter) {
        bytes.add(byte: self == nil ? 0 : 1)
        self?.store(in: &bytes)
    }

    @inlinable public init(stored bytes: inout StoredReader) throws(StorageError) {
        self = try Bool(stored: &bytes) ? Wrapped(stored: &bytes) : nil
    }
}

extension Array: Stored where Element: Stored {
    @inlinable public func store(in bytes: inout StoredWriter) {
        bytes.add(count: count)
        for element in self { element.store(in: &bytes) }
    }

    @inlinable public init(stored bytes: inout StoredReader) throws(StorageError) {
        self = []
        for _ in 0..<(try bytes.count()) { append(try Element(stored: &bytes)) }
    }
}

/// In the order of the keys' bytes, so that the same content has the same bytes.
extension Dictionary: Stored where Key == String, Value: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: count)
        for (name, value) in sorted(by: { $0.key.precedesByBytes($1.key) }) {
            bytes.add(name)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        self = [:]
        for _ in 0..<(try bytes.count()) {
            let name = try bytes.text()
            self[name] = try Value(stored: &bytes)
        }
    }
}

extension SQLColumns {
    /// A value as its bytes.
    public func stored<Value: Stored>(
        _ name: StaticString, _ value: inout Value, _ role: Role = .latest
    ) throws(StorageError) {
        if let binder {
            try binder.bind(value.storedBytes)
        } else if let cursor {
            value = try Self.read(cursor, nextPlace(), name)
        } else {
            describe(name, role, [UInt8].self, selected: name)
        }
    }

    /// A list that is empty mostly, and `NULL` then.
    public func stored<Element: Stored>(
        list name: StaticString, _ list: inout [Element], _ role: Role = .latest
    ) throws(StorageError) {
        guard !areWritten || list.isEmpty else { return try stored(name, &list, role) }
        if let binder {
            try binder.bindNull()
        } else if let cursor {
            let place = nextPlace()
            list = try cursor.isNull(place) ? [] : Self.read(cursor, place, name)
        } else {
            describe(name, role, [UInt8].self, selected: name)
        }
    }

    private static func read<Value: Stored>(
        _ cursor: any SQLCursor, _ place: Int, _ name: StaticString
    ) throws(StorageError) -> Value {
        do throws(StorageError) {
            return try Value(storedBytes: try cursor.blob(place))
        } catch {
            throw .invalid("column \(name): \(error.message)")
        }
    }
}
