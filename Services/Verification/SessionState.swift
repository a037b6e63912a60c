// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
public import Runtime
public import Storage

/// The sessions and sagas that a batch touches, and what it counts.
public struct SessionState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case session(Session)
        /// Its user was erased.
        case removed(Session)
        /// Nobody used its device.
        case expired(Session)
        case began(LoginSaga)
        case ended(LoginSaga)
        /// These users are erased: no answer that is still on its way brings one back.
        case erased(app: AppID, [MPID])
        case counted(app: AppID, Tally, at: Timestamp)
    }

    private(set) var sessions = Table<Session>()
    private(set) var sagas = Table<LoginSaga>()
    /// Of each device its sagas' forwards: an answer asks for one device, and a batch may have a thousand.
    private var underWay: [Session.Key: [CommandID]] = [:]
    private(set) var erased: Set<Scoped<MPID>> = []
    /// By app: what stands in the database, where a command of the batch asks for it.
    private var totals: [AppID: [Tally: Count]] = [:]

    /// Users that have come to a session or were erased: what keeps a login and an erasure in two replicas apart.
    private(set) var changedPeople: Set<Scoped<MPID>> = []
    private(set) var counted: [AppID: [Tally: Count]] = [:]
    /// The longest that an event of the batch took to be read, in milliseconds.
    private(set) var lag: Int64?
    /// How many sessions have gone because nobody used their devices.
    private(set) var expired = 0

    public init(sessions: [Session] = [], sagas: [LoginSaga] = []) {
        load(sessions)
        load(sagas)
    }

    func session(app: AppID, deviceID: DeviceID) -> Session? { sessions[Session.Key(app: app, id: deviceID)] }

    /// The app's sessions of these users, in the order of their devices.
    func sessions(app: AppID, of mpids: Set<MPID>) -> [Session] {
        sessions.values.filter { session in
            session.key.app == app && session.mpid.map(mpids.contains) == true
        }.sorted { $0.key < $1.key }
    }

    func saga(app: AppID, forwardID: CommandID) -> LoginSaga? {
        sagas[forwardID].flatMap { $0.command.app == app ? $0 : nil }
    }

    /// The device's sagas, in no order.
    func sagas(app: AppID, of device: DeviceID) -> some Sequence<LoginSaga> {
        (underWay[Session.Key(app: app, id: device)] ?? []).lazy.compactMap { sagas[$0] }
    }

    func isErased(app: AppID, _ mpid: MPID) -> Bool { erased.contains(Scoped(app: app, id: mpid)) }

    /// The app's counts, those of the batch so far included.
    func usage(app: AppID) -> [Tally: Count] {
        (totals[app] ?? [:]).merging(counted[app] ?? [:], uniquingKeysWith: +)
    }

    // Adding rows as they stand in the database.

    mutating func load(_ rows: [Session]) { rows.forEach { sessions.load($0) } }

    mutating func load(_ rows: [LoginSaga]) {
        for saga in rows {
            sagas.load(saga)
            note(saga)
        }
    }

    private mutating func note(_ saga: LoginSaga) {
        let device = Session.Key(app: saga.command.app, id: saga.deviceID)
        if underWay[device]?.contains(saga.key) != true { underWay[device, default: []].append(saga.key) }
    }

    mutating func load(_ counts: [Tally: Count], app: AppID) { totals[app] = counts }

    /// Measures how long the sync service's word has taken.
    mutating func hear(of move: DeviceMove, at now: Timestamp) {
        lag = max(lag ?? 0, now.milliseconds - move.number)
    }

    mutating func load(erased people: [Scoped<MPID>]) { erased.formUnion(people) }

    public mutating func chain(_ change: Change, _ chain: inout DecisionChain) {
        switch change {
        case .session(let session):
            // Whom the device had, and whom it has.
            let former = sessions[session.key]?.mpid
            if former != session.mpid {
                for mpid in [former, session.mpid] { if let mpid { chain.mention(mpid.description) } }
            }
            sessions.chain(session.key, &chain)
        case .removed(let session), .expired(let session):
            chain.mention(session.deviceID.text, after: sessions.last(session.key))
        case .began(let saga), .ended(let saga):
            sessions.chainKnown(Session.Key(app: saga.command.app, id: saga.deviceID), &chain)
        case .erased(_, let mpids): for mpid in mpids { chain.mention(mpid.description) }
        case .counted: break
        }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .session(let session):
            let previous = sessions.put(session)
            if let mpid = session.mpid, previous?.mpid != mpid {
                changedPeople.insert(Scoped(app: session.app, id: mpid))
            }
        case .removed(let session): sessions.remove(session.key)
        case .expired(let session):
            sessions.remove(session.key)
            expired += 1
        case .began(let saga):
            sagas.put(saga)
            note(saga)
        case .ended(let saga): sagas.remove(saga.key)
        case .erased(let app, let mpids):
            let people = mpids.map { Scoped(app: app, id: $0) }
            erased.formUnion(people)
            changedPeople.formUnion(people)
        case .counted(let app, let tally, let now):
            let one = Count(count: 1, lastUsed: now)
            counted[app, default: [:]].merge([tally: one], uniquingKeysWith: +)
        }
    }
}

/// The verification service's tables, which tell of nobody who they are (V55). Runs inside the batch's transaction; every
/// question is one round trip, whatever the size of the batch.
public struct VerificationStore {
    public static let migrations = [
        Migration(
            number: 100, name: "sessions, logins on their way, people and counts",
            statements: [
                // `basis`: see `Standing`; null where a session has nothing that could be taken away. `asked_at`: when the
                // service last told itself to look at it.
                """
                CREATE TABLE sessions (
                  app TEXT NOT NULL, device_id TEXT NOT NULL, state TEXT NOT NULL, may_file_issues BIGINT NOT NULL,
                  mpid BIGINT, basis BIGINT, key_id TEXT, since BIGINT, number BIGINT NOT NULL, shown BIGINT NOT NULL,
                  moved BIGINT NOT NULL, has_login BIGINT NOT NULL, move BIGINT NOT NULL, heard_move BIGINT,
                  heard_mpid BIGINT, heard_user TEXT, heard_detached BIGINT NOT NULL, seen_at BIGINT NOT NULL,
                  asked_at BIGINT NOT NULL DEFAULT 0,
                  last_decision BIGINT NOT NULL DEFAULT 0,
                  PRIMARY KEY (app, device_id))
                """,
                "CREATE INDEX sessions_by_basis ON sessions (app, basis)",
                "CREATE INDEX sessions_by_age ON sessions (app, since)",
                "CREATE INDEX sessions_of_user ON sessions (app, mpid)",
                """
                CREATE TABLE login_sagas (
                  forward_id TEXT NOT NULL PRIMARY KEY, app TEXT NOT NULL, source TEXT NOT NULL,
                  command_id TEXT NOT NULL, device_id TEXT NOT NULL, kind TEXT NOT NULL, number BIGINT NOT NULL,
                  state TEXT NOT NULL, may_file_issues BIGINT NOT NULL, basis BIGINT, key_id TEXT, since BIGINT,
                  anonymous_reason TEXT)
                """,
                "CREATE INDEX login_sagas_of_device ON login_sagas (app, device_id)",
                // Everybody who was on a device, and whether they were erased since.
                """
                CREATE TABLE people (
                  app TEXT NOT NULL, mpid BIGINT NOT NULL, is_erased BIGINT NOT NULL, PRIMARY KEY (app, mpid))
                """,
                """
                CREATE TABLE verification_counts (
                  app TEXT NOT NULL, method TEXT NOT NULL, reason TEXT NOT NULL, key_id TEXT NOT NULL,
                  shard BIGINT NOT NULL, count BIGINT NOT NULL, last_used BIGINT NOT NULL,
                  PRIMARY KEY (app, method, reason, key_id, shard))
                """,
                RetentionWalk.table,
            ])
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func sessions(_ keys: Set<Session.Key>) throws -> [Session] { try Session.table.find(keys, in: transaction) }

    func sessions(of mpids: [MPID], app: AppID) throws -> [Session] {
        try Session.table.find(
            "app = $1 AND mpid = $2", mpids.map { Scoped(app: app, id: $0) }, in: transaction)
    }

    func sagas(forwardIDs: Set<CommandID>) throws -> [LoginSaga] {
        try LoginSaga.table.find(forwardIDs, in: transaction)
    }

    func sagas(of devices: Set<Session.Key>) throws -> [LoginSaga] {
        try LoginSaga.table.find("app = $1 AND device_id = $2", devices, in: transaction)
    }

    func erased(among people: Set<Scoped<MPID>>) throws -> [Scoped<MPID>] {
        try Person.table.find("app = $1 AND mpid = $2 AND is_erased = 1", people, in: transaction).map(\.key)
    }

    func counts(app: AppID) throws -> [Tally: Count] {
        try CountRow.table.find("app = $1", [.text(app.text)], in: transaction)
            .reduce(into: [:]) { $0.merge([$1.tally: $1.count], uniquingKeysWith: +) }
    }

    // MARK: Writing

    /// - Parameter shard: whose counters this replica adds to, so that replicas do not wait for each other's.
    func save(_ state: SessionState, shard: Int64) throws {
        try Session.table.save(state.sessions, in: transaction)
        // A row is written also for those who are not erased: a login and an erasure that two replicas decide at one
        // time then meet in it, and one of them is decided again.
        try Person.table.save(
            state.changedPeople.sorted().map { Person(key: $0, isErased: state.erased.contains($0)) }, in: transaction)
        // Over one that is there: a login that the inbox has forgotten came again while it was on its way.
        try LoginSaga.table.save(state.sagas.changed, in: transaction)
        try LoginSaga.table.remove(state.sagas.removed, in: transaction)
        let counts = state.counted.sorted { $0.key < $1.key }.flatMap { app, counts in
            counts.sorted { $0.key < $1.key }.map {
                CountRow(app: app, tally: $0.key, shard: shard, count: $0.value)
            }
        }
        try CountRow.table.save(counts, in: transaction)
    }

    // MARK: What becomes due

    /// Sessions that stand on something else than what the settings allow now, or are too old, and that this was not
    /// asked of lately. They are noted as asked.
    func toReview(
        _ apps: [(app: AppID, settings: VerificationSettings)], now: Timestamp, askedBefore: Int64, limit: Int
    ) throws -> [Session.Key] {
        var gaps: [[SQLValue]] = []
        var ages: [[SQLValue]] = []
        for (app, settings) in apps {
            // Those that are gone lie between those that are not: each gap is one look at the index.
            var below: Int64 = -1
            for basis in settings.standingBases(at: now) + [Int64.max] {
                gaps.append(
                    [.text(app.text), .integer(below), .integer(basis), .integer(askedBefore), SQLValue(limit)])
                below = basis
            }
            if let lifetime = settings.sessionLifetime {
                let oldest = now.milliseconds - lifetime
                ages.append([.text(app.text), .integer(oldest), .integer(askedBefore), SQLValue(limit)])
            }
        }
        let gone = try transaction.queryEach(
            """
            SELECT app, device_id FROM sessions WHERE app = $1 AND basis > $2 AND basis < $3 AND asked_at < $4
            ORDER BY basis LIMIT $5
            """, gaps)
        let aged = try transaction.queryEach(
            """
            SELECT app, device_id FROM sessions WHERE app = $1 AND since <= $2 AND asked_at < $3
            ORDER BY since LIMIT $4
            """, ages)
        let found = Set(
            try (gone + aged).joined().map { row in
                Session.Key(app: AppID(try row.text(0)), id: DeviceID(try row.text(1)))
            }
        ).sorted().prefix(limit)
        try transaction.sendEach(
            "UPDATE sessions SET asked_at = $3 WHERE app = $1 AND device_id = $2",
            found.map { [.text($0.app.text), .text($0.id.text), .integer(now.milliseconds)] })
        return Array(found)
    }
}
