// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
public import Storage

/// The installs, codes and users that a batch touches.
public struct UserState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Installation)
        /// The install is in the state `none` again; nothing of it is kept.
        case remove(InstallKey)
        case code(AuthCode)
        case removeCode(CodeDigest)
        /// The user is on an install, or is erased. Written by every decision that relies on the user not being
        /// erased, so that an erasure at the same moment meets it (docs/decisions/0003-isolation.md).
        case user(id: UserID, isErased: Bool)
    }

    private(set) var installs = Table<Installation>()
    private(set) var codes = Table<AuthCode>()
    /// The users that are erased.
    private(set) var erased: Set<UserID> = []

    /// Where to look for an install by the command it waits for, and for the codes of an external id: a batch has up to
    /// a thousand of each, and looking at all of them for every command would take longer than all the rest. Entries
    /// that are out of date stay; who looks there checks.
    private var awaited: [Scoped<CommandID>: InstallKey] = [:]
    private var codesOf: [Scoped<ExternalID>: Set<CodeDigest>] = [:]

    /// Whether the user's row stays, of those whose row is to be written.
    private(set) var changedUsers: [UserID: Bool] = [:]

    public init(installs: [Installation] = [], codes: [AuthCode] = [], erased: [UserID] = []) {
        load(installs)
        load(codes)
        load(erased: erased)
    }

    func install(_ app: AppID, _ id: InstallID) -> Installation? { installs[InstallKey(app: app, id: id)] }

    /// The install that waits for the answer to the command with this id.
    func install(_ app: AppID, awaiting forward: CommandID) -> Installation? {
        guard let key = awaited[Scoped(app: app, id: forward)], let install = installs[key],
            install.forward == forward
        else { return nil }
        return install
    }

    /// The installs that the user is on, by id.
    func installs(_ app: AppID, of userID: UserID) -> [Installation] {
        installs.values.filter { install in
            install.facts.userID == userID && install.app == app
        }.sorted { $0.key < $1.key }
    }

    func code(_ digest: CodeDigest) -> AuthCode? { codes[digest] }

    /// The codes of the external id, in the order of their digests.
    func codes(_ app: AppID, _ externalID: ExternalID) -> [AuthCode] {
        (codesOf[Scoped(app: app, id: externalID)] ?? []).sorted().compactMap { codes[$0] }
    }

    /// How many codes of the external id can still be redeemed.
    func outstandingCodes(_ app: AppID, _ externalID: ExternalID, now: Timestamp) -> Int {
        codes(app, externalID).count { $0.refusal(app: app, now: now) == nil }
    }

    func isErased(_ userID: UserID) -> Bool { erased.contains(userID) }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Installation]) {
        for install in rows where installs.load(install) { index(install) }
    }

    mutating func load(_ rows: [AuthCode]) {
        for code in rows where codes.load(code) { index(code) }
    }

    mutating func load(erased users: [UserID]) {
        erased.formUnion(users)
    }

    /// Users and codes have no chain of their own: what is decided about them is mentioned, but for what an install of the
    /// user leads to.
    public mutating func chain(_ change: Change, _ chain: inout DecisionChain) {
        switch change {
        case .install(let install):
            if let former = installs[install.key]?.facts.userID, former != install.facts.userID {
                chain.mention(former.text, after: installs.last(install.key))
            }
            installs.chain(install.key, &chain)
        case .remove(let key):
            chain.mention(key.id.text, after: installs.last(key))
            if let userID = installs[key]?.facts.userID { chain.mention(userID.text, after: installs.last(key)) }
        case .code(let code):
            chain.mention(code.externalID.text)
        case .removeCode: break
        case .user(let id, let isErased):
            if isErased { chain.mention(id.text) }
        }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install):
            release(install.key, unless: install.facts.userID)
            installs.put(install)
            index(install)
        case .remove(let key):
            release(key)
            installs.remove(key)
        case .code(let code):
            codes.put(code)
            index(code)
        case .removeCode(let digest):
            if let code = codes.remove(digest) { codesOf[Scoped(app: code.app, id: code.externalID)]?.remove(digest) }
        case .user(let id, let isErased):
            if isErased { erased.insert(id) }
            changedUsers[id] = true
        }
    }

    private mutating func index(_ install: Installation) {
        if let forward = install.forward { awaited[Scoped(app: install.app, id: forward)] = install.key }
    }

    private mutating func index(_ code: AuthCode) {
        codesOf[Scoped(app: code.app, id: code.externalID), default: []].insert(code.digest)
    }

    /// The user leaves the install. Unless it is erased, nothing of it has to be kept.
    private mutating func release(_ key: InstallKey, unless stays: UserID? = nil) {
        guard let userID = installs[key]?.facts.userID, userID != stays
        else { return }
        changedUsers[userID] = erased.contains(userID)
    }
}

/// The user service's tables. Runs inside the batch's transaction; every question is one round trip, whatever the
/// size of the batch.
public struct UserStore {
    public static let migrations = [
        Migration(
            number: 100, name: "installations, codes and users",
            statements: [
                // `record` is the whole installation; the other columns are what it is looked up by.
                """
                CREATE TABLE installations (
                  app TEXT NOT NULL, install_id TEXT NOT NULL, phase TEXT NOT NULL, user_id TEXT, forward_id TEXT,
                  due_at BIGINT, state BYTEA NOT NULL,
                  last_decision BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (app, install_id))
                """,
                "CREATE INDEX installations_of_user ON installations (user_id)",
                "CREATE INDEX installations_of_forward ON installations (forward_id)",
                "CREATE INDEX installations_due ON installations (due_at)",
                """
                CREATE TABLE auth_codes (
                  digest BYTEA NOT NULL PRIMARY KEY, app TEXT NOT NULL, external_id TEXT NOT NULL,
                  external_key BYTEA NOT NULL, moment BIGINT NOT NULL, expires_at BIGINT NOT NULL, use_kind TEXT NOT NULL,
                  install_id TEXT)
                """,
                "CREATE INDEX auth_codes_of_external_id ON auth_codes (app, external_key)",
                "CREATE INDEX auth_codes_expiring ON auth_codes (expires_at)",
                "CREATE TABLE users (user_id TEXT NOT NULL PRIMARY KEY, is_erased BIGINT NOT NULL)",
                RetentionWalk.table,
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func installs(_ keys: Set<InstallKey>) throws -> [Installation] {
        try Installation.table.find(keys, in: transaction)
    }

    func installs(awaiting forwards: Set<CommandID>) throws -> [Installation] {
        try Installation.table.find("forward_id = $1", forwards, in: transaction)
    }

    func installs(of userIDs: Set<UserID>) throws -> [Installation] {
        try Installation.table.find("user_id = $1", userIDs, in: transaction)
    }

    func codes(_ digests: Set<CodeDigest>) throws -> [AuthCode] { try AuthCode.table.find(digests, in: transaction) }

    func codes(of externalIDs: Set<Scoped<ExternalID>>) throws -> [AuthCode] {
        let keys = externalIDs.map { Scoped(app: $0.app, id: TextDigest(of: $0.id.text)) }
        return try AuthCode.table.find("app = $1 AND external_key = $2", keys, in: transaction)
    }

    func erased(among userIDs: Set<UserID>) throws -> [UserID] {
        try KnownUser.table.find("user_id = $1 AND is_erased = 1", userIDs, in: transaction).map(\.id)
    }

    // MARK: Writing

    func save(_ state: UserState) throws {
        try Installation.table.save(state.installs, in: transaction)
        try AuthCode.table.save(state.codes, in: transaction)
        let users = state.changedUsers.keys.sorted().map { KnownUser(id: $0, isErased: state.erased.contains($0)) }
        try KnownUser.table.save(
            users.filter { $0.isErased || state.changedUsers[$0.id] == true }, in: transaction)
        let gone = users.filter { !$0.isErased && state.changedUsers[$0.id] == false }
        try transaction.sendEach(
            "DELETE FROM users WHERE user_id = $1 AND is_erased = 0", gone.map { [.text($0.id.text)] })
    }

    // MARK: What becomes due

    /// The installs whose linker has taken too long. Each comes again after 30 seconds at the earliest, and after longer
    /// and longer while it is not decided.
    func due(now: Timestamp, limit: Int) throws -> [Installation] {
        let due = try Installation.table.find(
            "due_at <= $1 ORDER BY due_at, app, install_id LIMIT $2", [.integer(now.milliseconds), SQLValue(limit)],
            in: transaction)
        try transaction.sendEach(
            "UPDATE installations SET due_at = $3 WHERE app = $1 AND install_id = $2",
            due.map { install in
                let overdue = now.milliseconds - (install.linkersTurn?.deadline ?? now).milliseconds
                return [
                    .text(install.app.text), .text(install.id.text),
                    .integer(now.milliseconds + DueCommand.pause(overdue: overdue)),
                ]
            })
        return due
    }

    /// Forgets codes that expired before `horizon`; not those that a creation goes on with.
    func prune(before horizon: Timestamp, limit: Int) throws {
        try transaction.execute(
            """
            DELETE FROM auth_codes WHERE digest IN (SELECT digest FROM auth_codes
              WHERE expires_at < $1 AND use_kind <> 'reserved' ORDER BY expires_at LIMIT $2)
            """, [.integer(horizon.milliseconds), SQLValue(limit)])
    }
}

// MARK: Columns

extension Installation: SQLKeyedRecord {
    public static let table = SQLTable<Installation>("installations")
    public static var blank: Installation {
        let state = Reset(cause: .commandForUnknown, facts: .nothing, resets: [], forward: "")
        return Installation(app: "", id: "", .resetting(state))
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("install_id", &id, .key)
        try columns.written("phase", phase.rawValue)
        try columns.written("user_id", facts.userID)
        try columns.written("forward_id", forward)
        try columns.written("due_at", linkersTurn?.deadline)
        try columns.stored("state", &state)
        try columns.lastDecision(&lastDecision)
    }
}

extension AuthCode: SQLKeyedRecord {
    public static let table = SQLTable<AuthCode>("auth_codes")
    public static var blank: AuthCode {
        let never = Timestamp(milliseconds: 0)
        return AuthCode(digest: CodeDigest(bytes: []), app: "", externalID: "", moment: never, expires: never)
    }

    public var key: CodeDigest { digest }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("digest", &digest, .key)
        try columns.column("app", &app, .fixed)
        try columns.column("external_id", &externalID, .fixed)
        try columns.written("external_key", TextDigest(of: externalID.text), .fixed)
        try columns.column("moment", &moment, .fixed)
        try columns.column("expires_at", &expires, .fixed)
        var (kind, install): (String, InstallID?) =
            switch use {
            case .none: ("none", nil)
            case .reserved(let install): ("reserved", install)
            case .used(let install): ("used", install)
            }
        try columns.column("use_kind", &kind)
        try columns.column("install_id", &install)
        use =
            switch (kind, install) {
            case ("none", _): .none
            case ("reserved", let install?): .reserved(installID: install)
            case ("used", let install?): .used(installID: install)
            default: throw StorageError(kind: .invalid, message: "auth_codes: a use of no known value")
            }
    }
}

/// A user who is on an install, or was erased; who was erased stays so.
private struct KnownUser: SQLRecord {
    static let table = SQLTable<KnownUser>("users")
    static let blank = KnownUser(id: "", isErased: false)

    var id: UserID
    var isErased: Bool

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("user_id", &id, .key)
        try columns.column("is_erased", &isErased, .highest)
    }
}
