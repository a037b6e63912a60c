// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Crypto

/// What became of a record.
public enum Verdict: String, Sendable, Hashable, CaseIterable {
    case succeeded, rejected, expired, pending, noted, repeated
    case dryRun = "dry-run"
    case deadLettered = "dead-lettered"

    /// As it stands in the store. A number that was given is not given again.
    var number: Int64 {
        switch self {
        case .succeeded: 1
        case .rejected: 2
        case .expired: 3
        case .pending: 4
        case .noted: 5
        case .repeated: 6
        case .dryRun: 7
        case .deadLettered: 8
        }
    }

    private static let numbered = Dictionary(uniqueKeysWithValues: allCases.map { ($0.number, $0) })

    /// - Throws: `invalid` for a number that no version gave.
    public init(number: Int64) throws(StorageError) {
        guard let verdict = Self.numbered[number] else { throw .invalid("no verdict has the number \(number)") }
        self = verdict
    }
}

/// One decided record, as the inbox keeps it.
public struct InboxRow: Sendable, Hashable {
    public var position: LogPosition
    /// The command's key. Nil for what takes no command's id: refused, repeated and tried records.
    public var key: CommandKey?
    /// The hash of the command's content, which tells a repeated command from a reused id. Its first
    /// ``Inbox/digestByteCount`` bytes are kept.
    public var digest: [UInt8]
    public var verdict: Verdict
    /// What is told about it later, encoded by the caller: the reply above all.
    public var receipt: [UInt8]
    /// The time that Kafka gave to the record, in milliseconds since 1970.
    public var loggedAt: Int64
    /// When it was decided, in milliseconds since 1970.
    public var decidedAt: Int64
    /// Who decided, see ``Deciders``. 0 when that is not known.
    public var decider: Int64

    public init(
        position: LogPosition, key: CommandKey?, digest: [UInt8], verdict: Verdict, receipt: [UInt8], loggedAt: Int64,
        decidedAt: Int64, decider: Int64 = 0
    ) {
        self.position = position
        self.key = key
        self.digest = digest
        self.verdict = verdict
        self.receipt = receipt
        self.loggedAt = loggedAt
        self.decidedAt = decidedAt
        self.decider = decider
    }

    /// What the row is found by. What has no command's key is kept under its position, so that it collides with nothing.
    var storedKey: StoredKey { key.map(StoredKey.init) ?? StoredKey(position) }
}

/// What the inbox knows of a command that was decided before.
public struct KnownCommand: Sendable, Hashable {
    /// As much of it as is kept.
    public var digest: [UInt8]
    public var verdict: Verdict
    public var receipt: [UInt8]
    /// In milliseconds since 1970.
    public var decidedAt: Int64
}

/// The 16 bytes that stand for a command's key, or for a position, in the inbox: the beginning of a SHA-256.
struct StoredKey: Sendable, Hashable, Comparable {
    static let byteCount = 16
    private let high: UInt64
    private let low: UInt64

    init(_ key: CommandKey) {
        var hash = SHA256()
        hash.update(data: [1])
        for part in [key.app.text, key.source.text] {
            var part = part
            part.withUTF8 { text in
                withUnsafeBytes(of: UInt32(truncatingIfNeeded: text.count).littleEndian) {
                    hash.update(bufferPointer: $0)
                }
                hash.update(bufferPointer: UnsafeRawBufferPointer(text))
            }
        }
        var id = key.id.text
        id.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        self.init(hash.finalize())
    }

    init(_ position: LogPosition) {
        var hash = SHA256()
        hash.update(data: [2])
        for number in [position.log.number, position.offset] {
            withUnsafeBytes(of: number.littleEndian) { hash.update(bufferPointer: $0) }
        }
        self.init(hash.finalize())
    }

    private init(_ digest: SHA256.Digest) {
        (high, low) = digest.withUnsafeBytes {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }

    init(bytes: [UInt8]) throws(StorageError) {
        guard bytes.count == Self.byteCount else { throw .invalid("a key of the inbox has \(bytes.count) bytes") }
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        (high, low) = (number(bytes[..<8]), number(bytes[8...]))
    }

    func append(to bytes: inout [UInt8]) {
        for number in [high, low] {
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        append(to: &bytes)
        return bytes
    }

    static func < (left: StoredKey, right: StoredKey) -> Bool { (left.high, left.low) < (right.high, right.low) }
}

/// What makes a command the same command: the app it was authenticated for, its source and its id.
public struct CommandKey: Sendable, Hashable {
    public var app: AppID
    public var source: SourceID
    public var id: CommandID

    public init(app: AppID, source: SourceID, id: CommandID) {
        self.app = app
        self.source = source
        self.id = id
    }
}

extension SQLColumns {
    /// A command's key, in three columns.
    public func command(
        _ app: StaticString, _ source: StaticString, _ id: StaticString, _ key: inout CommandKey, _ role: Role = .latest
    ) throws(StorageError) {
        try column(app, &key.app, role)
        try column(source, &key.source, role)
        try column(id, &key.id, role)
    }
}

extension CommandKey: Comparable, SQLBindable {
    public static func < (left: CommandKey, right: CommandKey) -> Bool {
        (left.app, left.source, left.id) < (right.app, right.source, right.id)
    }

    public func bind(to binder: any SQLBinder) throws(StorageError) {
        try app.bind(to: binder)
        try source.bind(to: binder)
        try id.bind(to: binder)
    }
}
