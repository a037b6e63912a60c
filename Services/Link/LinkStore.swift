// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Runtime
public import Storage

/// The link service's tables. Runs inside the batch's transaction; every question is one round trip, whatever the
/// size of the batch.
public struct LinkStore {
    public static let migrations = [
        Migration(
            number: 100, name: "installs and persons",
            statements: [
                """
                CREATE TABLE installs (
                  install_id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, kind TEXT NOT NULL, platform TEXT NOT NULL,
                  model TEXT, os_version TEXT, status TEXT NOT NULL, user_id TEXT, activity TEXT NOT NULL)
                """,
                "CREATE INDEX installs_of_user ON installs (user_id, activity)",
                """
                CREATE TABLE persons (
                  user_id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, external_id TEXT, external_key BYTEA,
                  is_erased BIGINT NOT NULL, UNIQUE (app, external_key))
                """,
            ]),
        Migration(
            number: 101, name: "versions of installs",
            statements: [
                "ALTER TABLE installs ADD COLUMN is_users_first BIGINT NOT NULL DEFAULT 0",
                "ALTER TABLE installs ADD COLUMN version BIGINT NOT NULL DEFAULT 0",
            ]),
        Migration(
            number: 102, name: "open installs, erasures under way",
            statements: [
                "ALTER TABLE installs ADD COLUMN is_open BIGINT NOT NULL DEFAULT 0",
                // Of those that nobody is on, it is not known which are being waited for.
                "UPDATE installs SET is_open = 1 WHERE user_id IS NULL AND status <> 'deleted'",
                // `record` is the whole erasure; the other columns are what it is looked up by.
                """
                CREATE TABLE erasures (
                  user_id TEXT NOT NULL PRIMARY KEY, user_forward TEXT, sync_forward TEXT, record TEXT NOT NULL)
                """,
                "CREATE INDEX erasures_of_user_forward ON erasures (user_forward)",
                "CREATE INDEX erasures_of_sync_forward ON erasures (sync_forward)",
            ]),
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func installs(ids: Set<InstallID>) throws -> [Install] { try Install.table.find(ids, in: transaction) }

    func activeInstalls(of userIDs: Set<UserID>) throws -> [Install] {
        try Install.table.find("user_id = $1 AND activity = 'active'", userIDs, in: transaction)
    }

    func allInstalls(of userIDs: Set<UserID>) throws -> [Install] {
        try Install.table.find("user_id = $1", userIDs, in: transaction)
    }

    func persons(userIDs: Set<UserID>) throws -> [Person] { try Person.table.find(userIDs, in: transaction) }

    func persons(_ externalIDs: Set<Scoped<ExternalID>>) throws -> [Person] {
        let keys = externalIDs.map { Scoped(app: $0.app, id: TextDigest(of: $0.id.text)) }
        return try Person.table.find("app = $1 AND external_key = $2", keys, in: transaction)
    }

    func erasures(awaiting forwards: Set<CommandID>) throws -> [Erasure] {
        try Erasure.table.find("user_forward = $1", forwards, in: transaction)
            + Erasure.table.find("sync_forward = $1", forwards, in: transaction)
    }

    func erasures(of userIDs: Set<UserID>) throws -> [Erasure] { try Erasure.table.find(userIDs, in: transaction) }

    // MARK: Writing

    /// Persons without an external id go first: an erased one gives its external id up before another person takes it.
    func save(_ state: LinkState) throws {
        let persons = state.persons.changed
        try Person.table.save(
            persons.filter { $0.externalID == nil } + persons.filter { $0.externalID != nil }, in: transaction)
        try Install.table.save(state.installs, in: transaction)
        try Erasure.table.save(state.erasures, in: transaction)
    }
}

// MARK: Columns

extension Install: SQLKeyedRecord {
    public static let table = SQLTable<Install>("installs")
    public static var blank: Install { Install(id: "", app: "", device: Device(kind: .other, platform: "")) }

    public var key: InstallID { id }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("install_id", &id, .key)
        try columns.column("app", &app, .fixed)
        try columns.column("kind", &device.kind)
        try columns.column("platform", &device.platform)
        try columns.column("model", &device.model)
        try columns.column("os_version", &device.osVersion)
        try columns.column("status", &status)
        try columns.column("user_id", &userID)
        // A suspended install stands here as one that is active and disabled, which nothing else is: replicas of the
        // version before this one read the same rows while they are replaced.
        var stored = activity == .suspended ? .active : activity
        try columns.column("activity", &stored)
        activity = stored == .active && status == .disabled ? .suspended : stored
        try columns.column("is_users_first", &isUsersFirst)
        try columns.column("version", &version)
        try columns.column("is_open", &isOpen)
    }
}

extension Person: SQLKeyedRecord {
    public static let table = SQLTable<Person>("persons")
    public static var blank: Person { Person(userID: "", app: "") }

    public var key: UserID { userID }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("user_id", &userID, .key)
        try columns.column("app", &app, .fixed)
        try columns.column("external_id", &externalID)
        try columns.written("external_key", externalID.map { TextDigest(of: $0.text) })
        try columns.column("is_erased", &isErased)
    }
}

extension Erasure: SQLKeyedRecord {
    public static let table = SQLTable<Erasure>("erasures")
    public static var blank: Erasure { Erasure(app: "", userID: "", externalID: nil, installIDs: []) }

    public var key: UserID { userID }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.written("user_id", userID, .key)
        try columns.written("user_forward", user.forward)
        try columns.written("sync_forward", sync.forward)
        try columns.json("record", &self)
    }
}
