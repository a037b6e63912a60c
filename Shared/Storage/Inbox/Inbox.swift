// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Crypto

/// What was decided, once for each record: what a repeated command is known by, and answered from.
///
/// It stands in ``slotCount`` tables, one for each *generation*. New rows go into the newest generation; the oldest one
/// is emptied as a whole when all of it may be forgotten (``Inbox/turn(_:in:)``), and its table is used again. The row
/// of `inbox_state` names the newest generation. Every batch locks it for reading, so no generation begins or ends
/// beside a batch: a key that one batch looks for in vain is not written into another table by the next one.
///
/// All functions work inside the caller's transaction and on its thread.
public enum Inbox {
    /// How much of a content's digest is kept.
    public static let digestByteCount = 16
    static let slotCount: Int64 = 3

    /// What a look at the inbox found.
    public struct Found: Sendable {
        public var commands: [CommandKey: KnownCommand] = [:]
        /// The generation that new rows belong to.
        public var generation: Int64
    }

    /// Looks up what was decided on these commands before, and holds the generation until the transaction ends. One
    /// round trip.
    ///
    /// - Throws: `conflict` when a generation begins at the same time.
    public static func find(_ keys: [CommandKey], in transaction: any SQLTransaction) throws(StorageError) -> Found {
        try find(keys.map { ($0, StoredKey($0)) }, in: transaction)
    }

    /// - Parameter keys: with what they are stored under, which takes a hash to find out.
    public static func find(
        _ keys: [(key: CommandKey, stored: StoredKey)], in transaction: any SQLTransaction
    ) throws(StorageError) -> Found {
        var asked: [StoredKey: CommandKey] = [:]
        asked.reserveCapacity(keys.count)
        for (key, stored) in keys { asked[stored] = key }
        let sorted = asked.keys.sorted()
        var found = Found(generation: -1)
        func read(_ cursor: any SQLCursor) throws(StorageError) {
            guard let key = asked[try StoredKey(bytes: cursor.blob(0))] else { return }
            found.commands[key] = KnownCommand(
                digest: try cursor.blob(1), verdict: try Verdict(number: cursor.integer(2)),
                receipt: try cursor.blob(3), decidedAt: try cursor.integer(4))
        }
        switch transaction.engine {
        case .postgresql:
            var joined: [UInt8] = []
            joined.reserveCapacity(sorted.count * StoredKey.byteCount)
            for key in sorted { key.append(to: &joined) }
            try transaction.queryEach(findAll, count: 1) { (_, binder) throws(StorageError) in
                try binder.bind(joined)
            } row: { (_, cursor) throws(StorageError) in
                if try cursor.isNull(0) { found.generation = try cursor.integer(4) } else { try read(cursor) }
            }
        case .sqlite:
            found.generation = try generation(in: transaction)
            for slot in slots(of: found.generation) {
                try transaction.queryEach(findOne[slot], count: sorted.count) { (index, binder) throws(StorageError) in
                    try binder.bind(sorted[index].bytes)
                } row: { (_, cursor) throws(StorageError) in
                    try read(cursor)
                }
            }
        }
        guard found.generation >= 0 else { throw .invalid("the row of inbox_state is missing") }
        return found
    }

    /// Records decisions.
    ///
    /// - Parameter generation: from ``find(_:in:)`` in the same transaction.
    /// - Throws: `conflict`, or a later call does, when the position or the command of a row is in the generation
    ///   already: another replica was faster, or the batch holds a command twice.
    public static func append(
        _ rows: [InboxRow], generation: Int64, in transaction: any SQLTransaction
    ) throws(StorageError) {
        var logs = LogNumbers()
        try transaction.send(insert[slot(generation)], count: rows.count) { (index, binder) throws(StorageError) in
            let row = rows[index]
            try binder.bind(row.position.offset)
            try binder.bind(row.loggedAt)
            try binder.bind(row.decidedAt)
            try binder.bind(logs.number(of: row.position.log))
            // More deciders than that have no number any more.
            try binder.bind(Int16(exactly: row.decider).map(Int64.init) ?? 0)
            try binder.bind(row.verdict.number)
            try binder.bind(row.storedKey.bytes)
            try binder.bind(row.digest.count > digestByteCount ? Array(row.digest.prefix(digestByteCount)) : row.digest)
            try binder.bind(row.receipt)
            try binder.bind(row.before)
        }
    }

    /// The newest generation, without holding it.
    public static func generation(in transaction: any SQLTransaction) throws(StorageError) -> Int64 {
        try transaction.query("SELECT newest FROM inbox_state WHERE id = 1").first?.integer(0) ?? -1
    }

    // MARK: Slots

    static func slot(_ generation: Int64) -> Int { Int(generation % slotCount) }

    /// Those in use, the newest first.
    static func slots(of newest: Int64) -> [Int] {
        (max(0, newest - slotCount + 1)...max(0, newest)).reversed().map(slot)
    }

    public static let tables = (0..<slotCount).map { "inbox_\($0)" }

    private static let described: [(name: String, type: SQLType)] = [
        ("log_offset", .integer), ("logged_at", .integer), ("decided_at", .integer), ("log", .integer),
        ("decider", .integer), ("outcome", .integer), ("key", .bytes), ("digest", .bytes), ("receipt", .bytes),
        ("before", .bytes),
    ]

    static let columns = described.map(\.name).joined(separator: ", ")

    private static let insert = tables.map { SQLRowStatement.insert(into: $0, described) }

    private static let findOne = tables.map {
        "SELECT key, digest, outcome, receipt, decided_at FROM \($0) WHERE key = $1"
    }

    /// The keys come in one value, 16 bytes each: an array that each table's index is asked with at once.
    static let findAll: String = {
        let keys =
            "SELECT substring($1::bytea FROM place FOR 16) FROM generate_series(1, length($1::bytea), 16) AS place"
        let arms = tables.reversed().map {
            "SELECT key, digest, outcome, receipt, decided_at FROM \($0) WHERE key = ANY (ARRAY(\(keys)))"
        }
        return """
            SELECT NULL::bytea, NULL::bytea, NULL::smallint, NULL::bytea, newest
            FROM (SELECT newest FROM inbox_state WHERE id = 1 FOR SHARE) AS state
            UNION ALL \(arms.joined(separator: " UNION ALL "))
            """
    }()
}

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
    public let position: LogPosition
    /// The command's key. Nil for what takes no command's id: refused, repeated and tried records.
    public let key: CommandKey?
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
    /// The decisions before this one about what it changed, see ``DecisionChain``.
    public var before: [UInt8]
    /// What the row is found by. What has no command's key is kept under its position, so that it collides with nothing.
    public let storedKey: StoredKey

    /// - Parameter stored: the key's, where it is known already.
    public init(
        position: LogPosition, key: CommandKey?, stored: StoredKey? = nil, digest: [UInt8], verdict: Verdict,
        receipt: [UInt8], loggedAt: Int64, decidedAt: Int64, decider: Int64 = 0, before: [UInt8] = []
    ) {
        self.position = position
        self.key = key
        self.digest = digest
        self.verdict = verdict
        self.receipt = receipt
        self.loggedAt = loggedAt
        self.decidedAt = decidedAt
        self.decider = decider
        self.before = before
        storedKey = key.map { stored ?? StoredKey($0) } ?? StoredKey(position)
    }
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
public struct StoredKey: Sendable, Hashable, Comparable {
    static let byteCount = 16
    private let high: UInt64
    private let low: UInt64

    /// Of a command.
    public init(_ key: CommandKey) {
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

    /// What the links to its decision share, see ``ChainLink``.
    var decision: Int64 { Int64(bitPattern: high) & ~(ChainLink.places - 1) }

    public static func < (left: StoredKey, right: StoredKey) -> Bool { (left.high, left.low) < (right.high, right.low) }
}

/// Who decided: which apps file was in force, and which version of the code. An inbox row names it by a small number.
public struct Decider: Sendable, Hashable {
    /// The digest of the apps file and the files it names.
    public var apps: String
    /// The version of the code.
    public var code: String

    public init(apps: String, code: String) {
        self.apps = apps
        self.code = code
    }
}

public enum Deciders {
    /// The decider's number, given now if it has none. To be asked for in the transaction that claims partitions, and
    /// when the apps file has changed.
    ///
    /// - Throws: `conflict` when another replica gives a number at the same time.
    public static func number(of decider: Decider, in transaction: any SQLTransaction) throws(StorageError) -> Int64 {
        let known = { () throws(StorageError) in
            try transaction.query(
                "SELECT number FROM decider WHERE apps = $1 AND code = $2", [.text(decider.apps), .text(decider.code)]
            ).first?.integer(0)
        }
        if let number = try known() { return number }
        try transaction.execute(
            """
            INSERT INTO decider (number, apps, code)
            SELECT COALESCE(MAX(number), 0) + 1, CAST($1 AS TEXT), CAST($2 AS TEXT) FROM decider
            """, [.text(decider.apps), .text(decider.code)])
        return try known() ?? 0
    }
}
