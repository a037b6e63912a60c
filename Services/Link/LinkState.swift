// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
public import Storage

/// The installs, persons and erasures that a batch touches. With a person come its active installs, and all of its
/// installs when a command of the batch erases it.
public struct LinkState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Install)
        case person(Person)
        case erasure(Erasure)
        case hold(Hold)
        /// The external id names whoever has it, and nobody else.
        case released(Hold.Key)
        /// Nobody came back who was never linked: no row stays.
        case expired(UserID)
        /// A link request was refused because it is older than the install's turn (L46). Nothing is stored.
        case late(LateLink)
    }

    private(set) var installs = Table<Install>()
    private(set) var persons = Table<Person>()
    /// By user id.
    private(set) var erasures = Table<Erasure>()
    private(set) var holds = Table<Hold>()

    /// By external id.
    private var userIDs: [Scoped<ExternalID>: UserID] = [:]
    private var installKeys: [UserID: Set<Install.Key>] = [:]
    /// The apps that know an install id, of those that are here. Not the ones whose install was erased.
    private var appsOf: [InstallID: Set<AppID>] = [:]
    /// By the forward that is waited for. Entries that are out of date stay; who looks there checks.
    private var awaited: [CommandID: UserID] = [:]

    private(set) var lateLinks: [LateLink] = []
    /// Persons who have given up an external id that somebody else may have taken.
    private(set) var renamed: Set<UserID> = []
    /// Whether another system has given the id of one of the persons (L156).
    private(set) var hasImported = false
    /// How many persons have gone because nobody came back.
    private(set) var expired = 0

    public init(installs: [Install] = [], persons: [Person] = [], erasures: [Erasure] = [], holds: [Hold] = []) {
        load(installs)
        load(persons)
        load(erasures)
        load(holds)
    }

    func install(_ app: AppID, _ id: InstallID) -> Install? { installs[Install.Key(app: app, id: id)] }
    func install(_ key: Install.Key) -> Install? { installs[key] }

    /// Whether an app has an install with this id.
    func isKnown(_ id: InstallID) -> Bool { appsOf[id]?.isEmpty == false }

    func person(userID: UserID) -> Person? { persons[userID] }

    /// Whose external id it is.
    func user(_ name: Scoped<ExternalID>) -> UserID? { userIDs[name] }

    func person(app: AppID, externalID: ExternalID) -> Person? {
        user(Scoped(app: app, id: externalID)).flatMap { persons[$0] }
    }

    /// The person's installs that are here, by id.
    func installs(of userID: UserID) -> [Install] {
        (installKeys[userID] ?? []).sorted().compactMap { installs[$0] }
    }

    func erasure(of userID: UserID) -> Erasure? { erasures[userID] }

    func hold(_ app: AppID, _ externalID: ExternalID) -> Hold? {
        holds.isEmpty ? nil : holds[Hold.key(app, externalID)]
    }

    /// Of the external ids that the person had.
    func holds(of userID: UserID) -> [Hold] { holds.values.filter { $0.userID == userID }.sorted { $0.key < $1.key } }

    /// The erasure that waits for the answer to the command with this id.
    func erasure(_ app: AppID, awaiting forward: CommandID) -> Erasure? {
        guard let erasure = awaited[forward].flatMap({ erasures[$0] }), erasure.app == app,
            [erasure.user, erasure.sync].contains(where: { $0.forward == forward })
        else { return nil }
        return erasure
    }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Install]) {
        for install in rows where installs.load(install) { index(install, insteadOf: nil) }
    }

    mutating func load(_ rows: [Person]) {
        for person in rows where persons.load(person) {
            if person.imported != nil { hasImported = true }
            index(person, insteadOf: nil)
        }
    }

    mutating func load(_ rows: [Erasure]) {
        for erasure in rows where erasures.load(erasure) { index(erasure) }
    }

    mutating func load(_ rows: [Hold]) { rows.forEach { holds.load($0) } }

    /// An install's decisions are its person's too: of the one that it has, and of the one that it had.
    public mutating func chain(_ change: Change, _ chain: inout DecisionChain) {
        switch change {
        case .install(let install):
            let before = installs[install.key]?.userID
            if let before { persons.chainKnown(before, &chain) }
            if let now = install.userID, now != before { persons.chainKnown(now, &chain) }
            installs.chain(install.key, &chain)
        case .person(let person):
            persons.chain(person.key, &chain)
            // What it was called is found by nothing else.
            if let former = persons[person.key]?.externalID, former != person.externalID { chain.mention(former.text) }
        case .erasure(let erasure): persons.chainKnown(erasure.userID, &chain)
        case .expired(let userID): chain.mention(userID.text, after: persons.last(userID))
        case .hold, .released, .late: break
        }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install): index(install, insteadOf: installs.put(install))
        case .person(let person):
            if person.imported != nil { hasImported = true }
            index(person, insteadOf: persons.put(person))
        case .erasure(let erasure):
            erasures.put(erasure)
            index(erasure)
        case .hold(let hold): holds.put(hold)
        case .released(let key): holds.remove(key)
        case .expired(let userID):
            persons.remove(userID)
            expired += 1
        case .late(let late): lateLinks.append(late)
        }
    }

    private mutating func index(_ install: Install, insteadOf previous: Install?) {
        if let userID = previous?.userID { installKeys[userID]?.remove(install.key) }
        if let userID = install.userID { installKeys[userID, default: []].insert(install.key) }
        if install.isErased {
            appsOf[install.id]?.remove(install.app)
        } else {
            appsOf[install.id, default: []].insert(install.app)
        }
    }

    private mutating func index(_ person: Person, insteadOf previous: Person?) {
        if let previous, let externalID = previous.externalID {
            userIDs[Scoped(app: previous.app, id: externalID)] = nil
            if person.externalID != externalID { renamed.insert(person.key) }
        }
        if let externalID = person.externalID { userIDs[Scoped(app: person.app, id: externalID)] = person.key }
    }

    private mutating func index(_ erasure: Erasure) {
        for forward in [erasure.user.forward, erasure.sync.forward].compactMap({ $0 }) {
            awaited[forward] = erasure.key
        }
    }
}

/// A link request that came too late, for who runs the platform: a producer's clock may be wrong.
public struct LateLink: Sendable, Hashable {
    var app: AppID
    /// The API key that it was sent with.
    var key: KeyID?
    /// By how much it is older than the turn, in milliseconds.
    var age: Int64
}

/// A person: the user id the platform gave, and the external id once it is linked. (app, external id) -> user id is
/// 1:1 (L18).
public struct Person: Sendable, Hashable {
    /// 24 lower-case hex characters.
    public var userID: UserID
    public var app: AppID
    /// `nil` for a person that was created unlinked, and for an erased one.
    public var externalID: ExternalID?
    /// An erased person is a tombstone: the id is never used again.
    public var isErased: Bool
    /// The moment of the command that gave the person the external id, or took it, in milliseconds since 1970.
    public var linkedAt: Int64?
    /// The moment of the command that made the person, in milliseconds since 1970; `nil` for an erased one.
    public var createdAt: Int64?
    /// External ids that support has taken from the person, and that do not link it again (L74).
    public var barred: [TextDigest] = []
    /// External ids that it had until support changed them, the latest last (L78).
    var former: [FormerExternalID] = []
    /// What profiles of the sync service said of it, each last (L82).
    var restrictions: [Restriction] = []
    /// When an import made it, or added to it then, and by which element last (L152).
    var imported: Imported?
    public var lastDecision = LastDecision()

    public init(
        userID: UserID, app: AppID, externalID: ExternalID? = nil, isErased: Bool = false, linkedAt: Int64? = nil,
        createdAt: Int64? = nil
    ) {
        self.createdAt = createdAt
        self.userID = userID
        self.app = app
        self.externalID = externalID
        self.isErased = isErased
        self.linkedAt = linkedAt
    }

    fileprivate var withoutExternalID: Person {
        var person = self
        person.externalID = nil
        return person
    }

    /// L38.
    public var tombstone: Person { Person(userID: userID, app: app, isErased: true) }
}

/// The link service's tables. Runs inside the batch's transaction; every question is one round trip, whatever the
/// size of the batch.
public struct LinkStore {
    public static let migrations = [
        Migration(
            number: 100, name: "installs, persons and erasures",
            statements: [
                // The id goes first in the key: which apps know an id is asked too (L6).
                """
                CREATE TABLE installs (
                  install_id TEXT NOT NULL, app TEXT NOT NULL, kind TEXT NOT NULL, platform TEXT NOT NULL,
                  model TEXT, os_version TEXT, status TEXT NOT NULL, user_id TEXT, activity TEXT NOT NULL,
                  is_users_first BIGINT NOT NULL, version BIGINT NOT NULL, is_open BIGINT NOT NULL, erased_at BIGINT,
                  turn_began BIGINT, turn_is_brokers BIGINT NOT NULL, person_since BIGINT,
                  is_imported BIGINT NOT NULL, superseded TEXT,
                  last_decision BIGINT NOT NULL DEFAULT 0,
                  PRIMARY KEY (install_id, app))
                """,
                "CREATE INDEX installs_of_user ON installs (user_id, activity)",
                """
                CREATE TABLE persons (
                  user_id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, external_id TEXT, external_key BYTEA,
                  is_erased BIGINT NOT NULL, linked_at BIGINT, created_at BIGINT, barred TEXT, former BYTEA,
                  restrictions BYTEA, imported_at BIGINT, imported_as BIGINT,
                  last_decision BIGINT NOT NULL DEFAULT 0,
                  UNIQUE (app, external_key))
                """,
                """
                CREATE TABLE holds (
                  app TEXT NOT NULL, external_key BYTEA NOT NULL, user_id TEXT NOT NULL, since BIGINT NOT NULL,
                  until BIGINT NOT NULL, ended BIGINT, PRIMARY KEY (app, external_key))
                """,
                "CREATE INDEX holds_of_user ON holds (user_id)",
                // `record` is the whole erasure; the other columns are what it is looked up by.
                """
                CREATE TABLE erasures (
                  user_id TEXT NOT NULL PRIMARY KEY, user_forward TEXT, sync_forward TEXT, record BYTEA NOT NULL)
                """,
                "CREATE INDEX erasures_of_user_forward ON erasures (user_forward)",
                "CREATE INDEX erasures_of_sync_forward ON erasures (sync_forward)",
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func installs(_ keys: Set<Install.Key>) throws -> [Install] { try Install.table.find(keys, in: transaction) }

    /// Of any app.
    func installs(ids: Set<InstallID>) throws -> [Install] {
        try Install.table.find("install_id = $1", ids, in: transaction)
    }

    /// The suspended ones too.
    /// Those that a person uses, or would if they were enabled: ``Install/Activity/active`` and `suspended`, which begin
    /// alike. One range of the index is read in two thirds of the time that two values take.
    func usedInstalls(of userIDs: Set<UserID>) throws -> [Install] {
        try Install.table.find(
            "user_id = $1 AND activity >= 'active' AND activity < 'activf'", userIDs, in: transaction)
    }

    func allInstalls(of userIDs: Set<UserID>) throws -> [Install] {
        try Install.table.find("user_id = $1", userIDs, in: transaction)
    }

    func holds(_ keys: Set<Hold.Key>) throws -> [Hold] { try Hold.table.find(keys, in: transaction) }

    func holds(of userIDs: Set<UserID>) throws -> [Hold] {
        try Hold.table.find("user_id = $1", userIDs, in: transaction)
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

    /// An external id is given up before another person takes it: each stands in one row at any moment.
    func save(_ state: LinkState) throws {
        let (created, updated) = state.persons.written(isAlone: transaction.isAlone)
        let renamed = state.renamed.isEmpty ? [] : updated.filter { state.renamed.contains($0.userID) }
        try Person.table.update(renamed.map(\.withoutExternalID), in: transaction)
        try Person.table.insert(created, in: transaction)
        try Person.table.update(updated, in: transaction)
        try Person.table.remove(state.persons.removed, in: transaction)
        try Install.table.save(state.installs, in: transaction)
        try Erasure.table.save(state.erasures, in: transaction)
        try Hold.table.save(state.holds, in: transaction)
    }
}

// MARK: Columns

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
        try columns.column("linked_at", &linkedAt)
        try columns.column("created_at", &createdAt)
        var text = barred.isEmpty ? nil : barred.map(\.bytes.hex).joined(separator: ",")
        try columns.column("barred", &text)
        try columns.stored(list: "former", &former)
        try columns.stored(list: "restrictions", &restrictions)
        var (at, element) = (imported?.at, imported?.element)
        try columns.column("imported_at", &at)
        try columns.column("imported_as", &element)
        imported = at.flatMap { at in element.map { Imported(at: at, element: $0) } }
        try columns.lastDecision(&lastDecision)
        guard columns.areRead, let text else { return }
        barred = try text.split(separator: ",").map { (hex) throws(StorageError) in
            guard let bytes = [UInt8](hex: String(hex)) else {
                throw StorageError(kind: .invalid, message: "column barred holds no digest")
            }
            return TextDigest(bytes: bytes)
        }
    }
}

extension Hold: SQLKeyedRecord {
    public static let table = SQLTable<Hold>("holds")
    public static var blank: Hold { Hold(app: "", externalID: "", userID: "", since: 0, until: 0) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("external_key", &key.id, .key)
        try columns.column("user_id", &userID)
        try columns.column("since", &since)
        try columns.column("until", &until)
        try columns.column("ended", &ended)
    }
}

extension Erasure: SQLKeyedRecord {
    public static let table = SQLTable<Erasure>("erasures")
    public static var blank: Erasure {
        let certificate = ErasureCertificate(requestId: "", erasedAt: Timestamp(milliseconds: 0), done: .init())
        return Erasure(
            app: "", userID: "", moment: certificate.erasedAt, externalID: nil, installIDs: [],
            certificate: certificate)
    }

    public var key: UserID { userID }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.written("user_id", userID, .key)
        try columns.written("user_forward", user.forward)
        try columns.written("sync_forward", sync.forward)
        try columns.stored("record", &self)
    }
}
