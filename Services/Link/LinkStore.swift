// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Runtime
public import Storage
import WireJSON

/// The link service's tables. Runs inside the batch's transaction; every call is one round trip, whatever the size of
/// the batch.
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

    private static let installColumns = """
        install_id, app, kind, platform, model, os_version, status, user_id, activity, is_users_first, version, is_open
        """
    private static let personColumns = "user_id, app, external_id, is_erased"

    func installs(ids: Set<ExactText>) throws -> [Install] {
        try transaction.queryEach(
            "SELECT \(Self.installColumns) FROM installs WHERE install_id = $1", ids.sorted().map { [.text($0.text)] }
        ).joined().map(Self.install)
    }

    func activeInstalls(of userIDs: Set<ExactText>) throws -> [Install] {
        try transaction.queryEach(
            "SELECT \(Self.installColumns) FROM installs WHERE user_id = $1 AND activity = 'active'",
            userIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.install)
    }

    func allInstalls(of userIDs: Set<ExactText>) throws -> [Install] {
        try transaction.queryEach(
            "SELECT \(Self.installColumns) FROM installs WHERE user_id = $1", userIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.install)
    }

    func persons(userIDs: Set<ExactText>) throws -> [Person] {
        try transaction.queryEach(
            "SELECT \(Self.personColumns) FROM persons WHERE user_id = $1", userIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.person)
    }

    func persons(_ keys: Set<LinkState.ExternalKey>) throws -> [Person] {
        let sorted = keys.sorted { ($0.app, $0.externalID) < ($1.app, $1.externalID) }
        return try transaction.queryEach(
            "SELECT \(Self.personColumns) FROM persons WHERE app = $1 AND external_key = $2",
            sorted.map { [.text($0.app.text), Self.key($0.externalID.text)] }
        ).joined().map(Self.person)
    }

    func erasures(awaiting forwards: Set<ExactText>) throws -> [Erasure] {
        let sorted = forwards.sorted().map { [SQLValue.text($0.text)] }
        return try ["user_forward", "sync_forward"].flatMap { column in
            try transaction.queryEach("SELECT record FROM erasures WHERE \(column) = $1", sorted).joined()
                .map(Self.erasure)
        }
    }

    func erasures(of userIDs: Set<ExactText>) throws -> [Erasure] {
        try transaction.queryEach(
            "SELECT record FROM erasures WHERE user_id = $1", userIDs.sorted().map { [.text($0.text)] }
        ).joined().map(Self.erasure)
    }

    private static func erasure(_ row: SQLRow) throws -> Erasure {
        try WireJSONDecoder().decode(Erasure.self, from: Array(try row.text(0).utf8))
    }

    private static func install(_ row: SQLRow) throws -> Install {
        guard let kind = Device.Kind(rawValue: try row.text(2)), let status = InstallStatus(rawValue: try row.text(6)),
            let activity = Install.Activity(rawValue: try row.text(8))
        else {
            throw StorageError(kind: .invalid, message: "installs: a kind, status or activity of no known value")
        }
        // A suspended install stands here as one that is active and disabled, which nothing else is: replicas of the
        // version before this one read the same rows while they are replaced.
        let isSuspended = activity == .active && status == .disabled
        return Install(
            id: try row.text(0), app: try row.text(1),
            device: Device(
                kind: kind, platform: try row.text(3), model: try row.optionalText(4),
                osVersion: try row.optionalText(5)),
            status: status, userID: try row.optionalText(7), activity: isSuspended ? .suspended : activity,
            isUsersFirst: try row.integer(9) != 0, isOpen: try row.integer(11) != 0, version: try row.integer(10))
    }

    private static func person(_ row: SQLRow) throws -> Person {
        Person(
            userID: try row.text(0), app: try row.text(1), externalID: try row.optionalText(2),
            isErased: try row.integer(3) != 0)
    }

    // MARK: Writing

    /// Rows go in sorted by key: neighbours share pages, and two replicas take their row locks in one order. Persons
    /// without an external id go first: an erased one gives its external id up before another person takes it.
    func save(_ state: LinkState) throws {
        let persons = state.changedPersons.sorted().compactMap { state.persons[$0] }
        try transaction.executeEach(
            """
            INSERT INTO persons (user_id, app, external_id, external_key, is_erased) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (user_id) DO UPDATE SET external_id = excluded.external_id,
            external_key = excluded.external_key, is_erased = excluded.is_erased
            """,
            (persons.filter { $0.externalID == nil } + persons.filter { $0.externalID != nil }).map { person in
                [
                    .text(person.userID), .text(person.app), Self.text(person.externalID),
                    person.externalID.map(Self.key) ?? .null, .integer(person.isErased ? 1 : 0),
                ]
            })
        try transaction.executeEach(
            """
            INSERT INTO installs (\(Self.installColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            ON CONFLICT (install_id) DO UPDATE SET kind = excluded.kind, platform = excluded.platform,
            model = excluded.model, os_version = excluded.os_version, status = excluded.status,
            user_id = excluded.user_id, activity = excluded.activity, is_users_first = excluded.is_users_first,
            version = excluded.version, is_open = excluded.is_open
            """,
            state.changedInstalls.sorted().compactMap { state.installs[$0] }.map { install in
                [
                    .text(install.id), .text(install.app), .text(install.device.kind.rawValue),
                    .text(install.device.platform), Self.text(install.device.model),
                    Self.text(install.device.osVersion),
                    .text(install.status.rawValue), Self.text(install.userID),
                    .text((install.activity == .suspended ? .active : install.activity).rawValue),
                    .integer(install.isUsersFirst ? 1 : 0), .integer(install.version),
                    .integer(install.isOpen ? 1 : 0),
                ]
            })
        try saveErasures(state)
    }

    private func saveErasures(_ state: LinkState) throws {
        let changed = state.changedErasures.sorted()
        try transaction.executeEach(
            """
            INSERT INTO erasures (user_id, user_forward, sync_forward, record) VALUES ($1, $2, $3, $4)
            ON CONFLICT (user_id) DO UPDATE SET user_forward = excluded.user_forward,
            sync_forward = excluded.sync_forward, record = excluded.record
            """,
            try changed.compactMap { state.erasures[$0] }.map { erasure in
                [
                    .text(erasure.userID), Self.text(erasure.user.forward),
                    Self.text(erasure.sync.forward),
                    .text(String(decoding: try WireJSONEncoder().encode(erasure), as: UTF8.self)),
                ]
            })
        try transaction.executeEach(
            "DELETE FROM erasures WHERE user_id = $1",
            changed.filter { state.erasures[$0] == nil }.map { [.text($0.text)] })
    }

    private static func text(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }

    /// What an external id is found by: its SHA-256. The id itself may be longer than an index entry can be.
    private static func key(_ externalID: String) -> SQLValue {
        .blob(Array(SHA256.hash(data: Array(externalID.utf8))))
    }
}
