// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One step in the history of a schema.
///
/// A migration that has landed is never edited: write a new one. Statements are run one by one, on both engines, so
/// they use what both understand: `TEXT`, `BIGINT` and `BYTEA` columns, `CREATE TABLE`, `CREATE INDEX`,
/// `ALTER TABLE … ADD COLUMN`.
public struct Migration: Sendable, Hashable {
    /// Orders the migrations and names them for ever. 1 to 99 belong to Storage, services start at 100.
    public let number: Int
    public let name: String
    public let statements: [String]

    public init(number: Int, name: String, statements: [String]) {
        self.number = number
        self.name = name
        self.statements = statements
    }

    /// Notices that a landed migration was edited.
    var checksum: String {
        String(Fingerprint.of(statements), radix: 16)
    }
}

/// The store was migrated by another version of the code than this one, or is another service's. Only an operator can mend
/// that.
public struct SchemaMismatch: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
}

/// Brings a database to the state that the code expects, once, at start.
///
/// All replicas may start at the same instant: they take turns, and the first one does the work. Everything happens
/// in one transaction, so a migration that fails or is killed leaves nothing behind.
///
/// A migration ends all claims (``Progress``): replicas of the version before know the store as it was. They decide
/// nothing more on it, and learn why when they claim again (``check(in:)``).
public struct Migrator: Sendable {
    private let migrations: [Migration]

    /// The number of the last one.
    public var newest: Int { migrations.last.map { Int($0.number) } ?? 0 }

    /// The tables that the migrations make, and their own, in the order of their names.
    public let tables: [String]

    /// - Parameter migrations: in any order; ``StorageSchema/migrations`` and the service's own.
    public init(_ migrations: [Migration]) {
        self.migrations = migrations.sorted { $0.number < $1.number }
        let made = migrations.flatMap(\.statements).compactMap { statement -> String? in
            let words = statement.split(maxSplits: 3, whereSeparator: \.isWhitespace)
            guard words.count > 2, words[0] == "CREATE", words[1] == "TABLE" else { return nil }
            return String(words[2])
        }
        tables = (made + ["migrations"]).sorted()
    }

    /// Runs what has not been run yet, in the order of the numbers.
    ///
    /// - Returns: the numbers of the migrations that this call ran.
    /// - Throws: ``SchemaMismatch`` when a migration was edited after it had landed, or when the database has migrations
    ///   that this code does not know, `invalid` when a number is used twice; nothing is changed then.
    @discardableResult
    public func run(on database: any SQLDatabase) throws -> [Int] {
        try checkNumbers()
        return try database.exclusiveTransaction { transaction in
            if let place = try SchemaPlace(in: transaction), !place.exists {
                try transaction.execute("CREATE SCHEMA \"\(place.schema)\"")
            }
            try transaction.execute(Self.ownTable)
            let landed = try landedMigrations(transaction)
            try check(landed)
            let missing = migrations.filter { landed[$0.number] == nil }
            // First, so that this waits for the batches of older replicas, and keeps the next ones out.
            if !missing.isEmpty, landed[StorageSchema.progressNumber] != nil {
                try Progress.endClaims(in: transaction)
            }
            for migration in missing {
                try apply(migration, in: transaction)
            }
            try StorageSchema.keepRowsPlain(in: transaction)
            return missing.map(\.number)
        }
    }

    /// Brings the store to the state that the code expects, unless it is there already: then nothing is asked of it but two
    /// reads, for which a role needs no right to change a schema.
    ///
    /// - Returns: as ``run(on:)``.
    /// - Throws: as ``run(on:)``; `unavailable` where somebody else has to migrate it.
    @discardableResult
    public func bringUpToDate(_ database: any SQLDatabase, at time: MigrationTime = .start) throws -> [Int] {
        try checkNumbers()
        let (state, isDone) = try database.transaction { transaction in
            (try self.state(in: transaction), try StorageSchema.compressedTables(in: transaction).isEmpty)
        }
        if state.isUpToDate, isDone { return [] }
        if time == .never || state.place?.mayMigrate == false {
            guard !state.isUpToDate else { return [] }
            throw StorageError.unavailable(state.demand(time))
        }
        return try run(on: database)
    }

    /// How far the store is behind the code. Changes nothing, and takes no lock that anybody waits for.
    ///
    /// - Throws: ``SchemaMismatch`` as ``run(on:)`` does; `unavailable` for a role that may not look.
    package func state(in transaction: any SQLTransaction) throws -> SchemaState {
        let place = try SchemaPlace(in: transaction)
        if let place, place.exists, !place.mayUse {
            throw StorageError.unavailable(
                "role \(place.role) may not use the schema \(place.schema): "
                    + "GRANT USAGE ON SCHEMA \(place.schema), or identitybus migrate --grant, mends it",
                sqlState: "42501")
        }
        let hasTables = try place?.hasMigrations ?? hasMigrations(transaction)
        let landed = hasTables ? try landedMigrations(transaction) : [:]
        try check(landed)
        return SchemaState(
            place: place, landed: landed.keys.max(), newest: newest,
            missing: migrations.filter { landed[$0.number] == nil })
    }

    /// What of a store that has all migrations is not as they have made it, in words: `progress has no column last_time`.
    /// Empty where the code finds what it needs; what somebody has added does not matter to it.
    ///
    /// - Parameter query: answers a statement without parameters.
    package func flaws(_ engine: SQLEngine, reading query: (String) throws -> [SQLRow]) throws -> [String] {
        let wanted = try StoreShape(of: [Self.ownTable] + migrations.flatMap(\.statements))
        return try StoreShape(engine, reading: query).flaws(comparedWith: wanted)
    }

    private static let ownTable = """
        CREATE TABLE IF NOT EXISTS migrations (
            number BIGINT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            checksum TEXT NOT NULL,
            applied_at BIGINT NOT NULL
        )
        """

    private func checkNumbers() throws(StorageError) {
        for (one, next) in zip(migrations, migrations.dropFirst()) where one.number == next.number {
            throw StorageError.invalid("migration number \(one.number) is used by '\(one.name)' and '\(next.name)'")
        }
    }

    private func hasMigrations(_ transaction: any SQLTransaction) throws(StorageError) -> Bool {
        try !transaction.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").isEmpty
    }

    /// Whether the store is still one that this code knows: a replica of a later version may have migrated it.
    ///
    /// - Precondition: ``run(on:)`` was run, by this replica or another one.
    /// - Throws: ``SchemaMismatch`` as ``run(on:)`` does, or a ``StorageError``.
    public func check(in transaction: any SQLTransaction) throws {
        try check(try landedMigrations(transaction))
    }

    /// What stands in a store's table of migrations, for ``missing(after:)``.
    package static let columns = "number, name, checksum"

    /// The migrations that a store still has to get.
    ///
    /// - Parameter rows: the ``columns`` of its table `migrations`.
    /// - Throws: ``SchemaMismatch`` as ``run(on:)`` does, or a ``StorageError``.
    package func missing(after rows: [SQLRow]) throws -> [Int] {
        let landed = try Self.landed(rows)
        try check(landed)
        return migrations.map(\.number).filter { landed[$0] == nil }
    }

    private func landedMigrations(
        _ transaction: any SQLTransaction
    ) throws(StorageError) -> [Int: (name: String, checksum: String)] {
        try Self.landed(try transaction.query("SELECT \(Self.columns) FROM migrations"))
    }

    private static func landed(_ rows: [SQLRow]) throws(StorageError) -> [Int: (name: String, checksum: String)] {
        var landed: [Int: (name: String, checksum: String)] = [:]
        for row in rows {
            landed[Int(try row.integer(0))] = (try row.text(1), try row.text(2))
        }
        return landed
    }

    private func check(_ landed: [Int: (name: String, checksum: String)]) throws(SchemaMismatch) {
        let known = Dictionary(uniqueKeysWithValues: migrations.map { ($0.number, $0) })
        for (number, record) in landed.sorted(by: { $0.key < $1.key }) {
            guard let migration = known[number] else {
                throw SchemaMismatch(
                    description: "the database is newer than this code: it has migration \(number) '\(record.name)'; "
                        + "run the version that made it, or a later one")
            }
            // Services name their migrations by what they keep.
            guard migration.name == record.name else {
                throw SchemaMismatch(
                    description: "the database is the store of another service, or of another version of this code: "
                        + "its migration \(number) is '\(record.name)', and not '\(migration.name)'; put the store of this "
                        + "service in its place, or run that version")
            }
            guard migration.checksum == record.checksum else {
                throw SchemaMismatch(
                    description: "the database was made by another version of this code: its migration \(number) "
                        + "'\(record.name)' is another one; run that version, or start with an empty database")
            }
        }
    }

    private func apply(_ migration: Migration, in transaction: any SQLTransaction) throws(StorageError) {
        do {
            for statement in migration.statements {
                try transaction.execute(statement)
            }
        } catch {
            throw StorageError(
                kind: error.kind, message: "migration \(migration.number) '\(migration.name)': \(error.message)",
                sqlState: error.sqlState)
        }
        try transaction.execute(
            "INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
            [SQLValue(migration.number), .text(migration.name), .text(migration.checksum), .integer(Self.now())])
    }

    /// Milliseconds since 1970. Only for people who read the table.
    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// A short hash (FNV-1a, 64 bits) that is the same in every process. It notices accidents; it is no defence.
enum Fingerprint {
    static func of(_ parts: [String]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for part in parts {
            for byte in part.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            // A byte that no UTF-8 text holds keeps ["ab", "c"] and ["a", "bc"] apart.
            hash = (hash ^ 0xff) &* 0x100_0000_01b3
        }
        return hash
    }
}
