// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
public import Storage

/// The rows that a batch touches. With an identity come the profiles that hold it; with a device its current user and
/// its anonymous one.
public struct SyncState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case profile(Profile)
        case identity(IdentityEntry)
        case device(DeviceRecord)
        case alias(AliasRecord)
        case aliasDone(AliasRecord.Key)
        /// The profile gives the value up. For a value that no command of the batch names, so that its row is not
        /// here and nothing relies on it.
        case release(IdentityEntry.Key, MPID)
        /// The value's row is written as it stands, see `Draft.guardSwitched`.
        case touch(IdentityEntry.Key)
        /// A profile took the link service's user from a link.
        case linked(LinkedUser)
        /// The link service's user is gone for good. Events about them that are read later, because they come over
        /// another topic, must not bring anybody back.
        case forgotten(LinkedUser)
        /// The link service's user has another external id, or none: what links of before say is over.
        case renamed(LinkedUser, at: Int64)
        case erasure(Erasure)
        case erasureDone(CommandKey)
        case certificate(ErasedProfile)
        /// Nobody came back to the profile: no row of it stays.
        case expired(Profile.Key)
        case request(SubjectRequestRow)
        /// Nobody used a device. Only counted: its row goes as it does by itself.
        case expiredDevice
        /// A value that names nobody was passed over.
        case ignored(IdentityType)
    }

    private(set) var profiles = Table<Profile>()
    private(set) var identities = Table<IdentityEntry>()
    private(set) var devices = Table<DeviceRecord>()
    private(set) var aliases = Table<AliasRecord>()
    private(set) var erasures = Table<Erasure>()
    private(set) var certificates = Table<ErasedProfile>()
    private(set) var requests = Table<SubjectRequestRow>()
    private(set) var erasedUsers: Set<LinkedUser> = []
    /// Since when users of the link service have another external id than a link gave them, or none (S118).
    private(set) var renamedAt: [LinkedUser: Int64] = [:]
    /// By app: the greatest number of a move of a device that was forgotten. No device begins below it (S86).
    private(set) var floors: [AppID: Int64] = [:]
    private var storedFloors: [AppID: Int64] = [:]

    /// The MPIDs that the batch's commands give to profiles they make. Each is an HMAC, and asked for several times.
    var newMPIDs: [CommandKey: MPID] = [:]

    /// What `save` has to write beside the tables.
    private(set) var releases: [IdentityEntry.Key: Set<MPID>] = [:]
    private(set) var changedUsers: Set<LinkedUser> = []
    private(set) var ignored: [IdentityType: Int] = [:]
    /// How many have gone because nobody came back, by what they are.
    private(set) var expired: [String: Int] = [:]

    public init() {}

    func profile(_ app: AppID, _ mpid: MPID) -> Profile? { profiles[Profile.Key(app: app, id: mpid)] }

    /// Since when the mark's user has its external id.
    func since(_ mark: LinkMark, _ app: AppID) -> Int64 {
        max(mark.linkedAt, renamedAt[LinkedUser(app: app, id: mark.userID)] ?? .min)
    }

    /// See ``Runtime/DecisionContext/newMPID(_:)``.
    func newMPID(_ context: DecisionContext, _ counter: Int) -> MPID {
        if counter == 0, let mpid = newMPIDs[context.command] { return mpid }
        return context.newMPID(counter)
    }

    func device(_ app: AppID, _ id: DeviceID) -> DeviceRecord {
        let key = DeviceRecord.Key(app: app, id: id)
        var device = devices[key] ?? DeviceRecord(key: key)
        if device.isUnused { device.lastMove = max(device.lastMove, floors[app] ?? 0) }
        return device
    }

    /// The floors that are higher than they were, in the order of their apps.
    var raisedFloors: [MoveFloor] {
        floors.filter { storedFloors[$0.key] != $0.value }.map { MoveFloor(key: $0, move: $1) }
            .sorted { $0.key < $1.key }
    }

    // MARK: Loading. Rows that are here already stay as they are.

    mutating func load(_ rows: [Profile]) { rows.forEach { profiles.load($0) } }

    /// - Parameter keys: what was asked for; what has no row is held by nobody.
    mutating func load(_ rows: [IdentityEntry], of keys: Set<IdentityEntry.Key>) {
        rows.forEach { identities.load($0) }
        for key in keys { identities.load(IdentityEntry(key: key), isStored: false) }
    }

    mutating func load(_ rows: [DeviceRecord]) { rows.forEach { devices.load($0) } }

    mutating func load(_ rows: [AliasRecord]) { rows.forEach { aliases.load($0) } }

    mutating func load(_ rows: [Erasure]) { rows.forEach { erasures.load($0) } }

    mutating func load(_ rows: [ErasedProfile]) { rows.forEach { certificates.load($0) } }

    mutating func load(_ rows: [SubjectRequestRow]) { rows.forEach { requests.load($0) } }

    mutating func load(_ rows: [LinkedUserRow], among users: Set<LinkedUser>) {
        let found = Dictionary(rows.map { ($0.key, $0) }) { first, _ in first }
        for user in users {
            guard let row = found[LinkedUserRow.key(user)] else { continue }
            if row.isErased { erasedUsers.insert(user) }
            if row.renamedAt > 0 { renamedAt[user] = row.renamedAt }
        }
    }

    mutating func load(_ rows: [MoveFloor]) {
        for row in rows { (floors[row.key], storedFloors[row.key]) = (row.move, row.move) }
    }

    // MARK: Changes

    /// What a value's row tells of is gone with its last holder; who lost it, or an alias, is mentioned.
    public mutating func chain(_ change: Change, _ chain: inout DecisionChain) {
        switch change {
        case .profile(let profile): profiles.chain(profile.key, &chain)
        case .identity(let entry):
            if entry.holders.isEmpty {
                if identities[entry.key]?.holders.isEmpty == false {
                    chain.mention(entry.key.id.value.text, after: identities.last(entry.key))
                }
            } else {
                identities.chain(entry.key, &chain)
            }
        case .device(let device): devices.chain(device.key, &chain)
        case .release(let key, _): chain.mention(key.id.value.text)
        case .alias(let alias): chain.mention(alias.key.id.text)
        case .aliasDone(let key): chain.mention(key.id.text)
        case .forgotten(let user): chain.mention(user.id.text)
        case .renamed(let user, _): chain.mention(user.id.text)
        case .request(let request): chain.mention(request.id.text)
        case .expired(let key): chain.mention(key.id.description, after: profiles.last(key))
        case .linked, .touch, .erasure, .erasureDone, .certificate, .ignored, .expiredDevice: break
        }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .profile(let profile): profiles.put(profile)
        case .identity(let entry): identities.put(entry)
        case .device(let device):
            devices.put(device)
            if !device.isKept, device.lastMove > floors[device.key.app] ?? 0 {
                floors[device.key.app] = device.lastMove
            }
        case .alias(let alias): aliases.put(alias)
        case .aliasDone(let key): aliases.remove(key)
        case .release(let key, let mpid):
            releases[key, default: []].insert(mpid)
        case .touch(let key):
            releases[key, default: []].formUnion([])
        case .linked(let user): changedUsers.insert(user)
        case .forgotten(let user):
            if erasedUsers.insert(user).inserted { changedUsers.insert(user) }
        case .renamed(let user, let moment):
            renamedAt[user] = max(moment, renamedAt[user] ?? .min)
            changedUsers.insert(user)
        case .erasure(let erasure): erasures.put(erasure)
        case .erasureDone(let command): erasures.remove(command)
        case .certificate(let certificate): certificates.put(certificate)
        case .request(let request): requests.put(request)
        case .expired(let key):
            profiles.remove(key)
            expired["profile", default: 0] += 1
        case .expiredDevice: expired["device", default: 0] += 1
        case .ignored(let type):
            ignored[type, default: 0] += 1
        }
    }
}

/// The sync service's tables. Runs inside the batch's transaction; every question is one round trip, whatever the
/// size of the batch.
public struct SyncStore {
    public static let migrations = [
        Migration(
            number: 100, name: "profiles, identities, devices, aliases and erasures",
            statements: [
                """
                CREATE TABLE profiles (
                  app TEXT NOT NULL, mpid BIGINT NOT NULL, identities BYTEA NOT NULL, first_seen BIGINT NOT NULL,
                  last_seen BIGINT NOT NULL, given_at TEXT NOT NULL, is_orphaned BIGINT NOT NULL,
                  is_erased BIGINT NOT NULL, name TEXT, user_id TEXT, link_external_id TEXT, linked_at BIGINT,
                  link_mpid BIGINT, former_name TEXT, former_since BIGINT, former_until BIGINT, aliases TEXT,
                  growth BIGINT NOT NULL, barriers BYTEA, restriction TEXT, imported_at BIGINT, imported_as BIGINT,
                  last_decision BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (app, mpid))
                """,
                "CREATE INDEX profiles_of_user ON profiles (app, user_id) WHERE user_id IS NOT NULL",
                "CREATE INDEX profiles_formerly ON profiles (app, former_name) WHERE former_name IS NOT NULL",
                """
                CREATE TABLE identities (
                  app TEXT NOT NULL, type TEXT NOT NULL, value_key BYTEA NOT NULL, value TEXT NOT NULL,
                  holders TEXT NOT NULL, tokens BIGINT, tokens_at BIGINT, is_told BIGINT NOT NULL,
                  last_decision BIGINT NOT NULL DEFAULT 0,
                  PRIMARY KEY (app, type, value_key))
                """,
                """
                CREATE TABLE devices (
                  app TEXT NOT NULL, device_id TEXT NOT NULL, current_mpid BIGINT, anonymous_mpid BIGINT,
                  users TEXT NOT NULL, identities BYTEA NOT NULL, last_move BIGINT NOT NULL, tokens BIGINT,
                  tokens_at BIGINT, last_decision BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (app, device_id))
                """,
                "CREATE INDEX devices_of_user ON devices (app, current_mpid) WHERE current_mpid IS NOT NULL",
                "CREATE INDEX devices_of_anonymous ON devices (app, anonymous_mpid) WHERE anonymous_mpid IS NOT NULL",
                "CREATE INDEX devices_unused ON devices (tokens_at) WHERE users = ''",
                "CREATE TABLE move_floors (app TEXT NOT NULL PRIMARY KEY, move BIGINT NOT NULL)",
                """
                CREATE TABLE aliases (
                  app TEXT NOT NULL, alias_id TEXT NOT NULL, source_mpid BIGINT NOT NULL,
                  destination_mpid BIGINT NOT NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL,
                  reach TEXT NOT NULL, stamp TEXT, due_at BIGINT NOT NULL, ask_at BIGINT NOT NULL,
                  is_vouched BIGINT NOT NULL, growth BIGINT NOT NULL, PRIMARY KEY (app, alias_id))
                """,
                "CREATE INDEX aliases_to_ask ON aliases (ask_at)",
                "CREATE INDEX aliases_by_source ON aliases (app, source_mpid)",
                "CREATE INDEX aliases_by_destination ON aliases (app, destination_mpid)",
                """
                CREATE TABLE linked_users (
                  app TEXT NOT NULL, user_key BYTEA NOT NULL, is_erased BIGINT NOT NULL, renamed_at BIGINT NOT NULL,
                  PRIMARY KEY (app, user_key))
                """,
                """
                CREATE TABLE erasures (
                  app TEXT NOT NULL, source TEXT NOT NULL, command_id TEXT NOT NULL, certificate BYTEA NOT NULL,
                  waiting TEXT NOT NULL, has_failed BIGINT NOT NULL, persons BYTEA NOT NULL,
                  also BYTEA NOT NULL,
                  PRIMARY KEY (app, source, command_id))
                """,
                """
                CREATE TABLE erasure_forwards (
                  app TEXT NOT NULL, forward_id TEXT NOT NULL, source TEXT NOT NULL, command_id TEXT NOT NULL,
                  external_id TEXT, PRIMARY KEY (app, forward_id))
                """,
                "CREATE INDEX erasure_forwards_person ON erasure_forwards (app, external_id)",
                """
                CREATE TABLE certificates (
                  app TEXT NOT NULL, mpid BIGINT NOT NULL, certificate BYTEA NOT NULL, PRIMARY KEY (app, mpid))
                """,
                "CREATE TABLE foldings (app TEXT NOT NULL PRIMARY KEY, types TEXT NOT NULL)",
                RetentionWalk.table,
            ] + requestStatements)
    ]

    let transaction: any SQLTransaction

    // MARK: Reading

    func certificates(_ keys: Set<Profile.Key>) throws -> [ErasedProfile] {
        try ErasedProfile.table.find(keys, in: transaction)
    }

    func profiles(_ keys: Set<Profile.Key>) throws -> [Profile] { try Profile.table.find(keys, in: transaction) }

    /// The profiles that a link marked with one of these users.
    func profiles(of users: Set<LinkedUser>) throws -> [Profile] {
        try Profile.table.find("app = $1 AND user_id = $2", users, in: transaction)
    }

    /// The profiles that were called so before support gave their users other names (S123).
    func profiles(formerly names: Set<Scoped<ExternalID>>) throws -> [Profile] {
        try Profile.table.find("app = $1 AND former_name = $2", names, in: transaction)
    }

    func identities(_ keys: Set<IdentityEntry.Key>) throws -> [IdentityEntry] {
        try IdentityEntry.table.find(keys, in: transaction)
    }

    /// By what the rows of values are found by.
    func identities(_ digests: Set<Scoped<IdentityDigest>>) throws -> [IdentityEntry] {
        try IdentityEntry.table.find("app = $1 AND type = $2 AND value_key = $3", digests, in: transaction)
    }

    func devices(_ keys: Set<DeviceRecord.Key>) throws -> [DeviceRecord] {
        try DeviceRecord.table.find(keys, in: transaction)
    }

    func floors(_ apps: Set<AppID>) throws -> [MoveFloor] { try MoveFloor.table.find(apps, in: transaction) }

    /// The devices whose current user is one of these.
    func devices(withCurrent users: Set<Profile.Key>) throws -> [DeviceRecord] {
        try DeviceRecord.table.find("app = $1 AND current_mpid = $2", users, in: transaction)
    }

    func devices(withAnonymous users: Set<Profile.Key>) throws -> [DeviceRecord] {
        try DeviceRecord.table.find("app = $1 AND anonymous_mpid = $2", users, in: transaction)
    }

    func aliases(_ keys: Set<AliasRecord.Key>) throws -> [AliasRecord] {
        try AliasRecord.table.find(keys, in: transaction)
    }

    /// The aliases that wait for their time with one of these as source or destination; one may come twice.
    func aliases(of profiles: Set<Profile.Key>) throws -> [AliasRecord] {
        try AliasRecord.table.find("app = $1 AND source_mpid = $2", profiles, in: transaction)
            + AliasRecord.table.find("app = $1 AND destination_mpid = $2", profiles, in: transaction)
    }

    func linkedUsers(_ users: Set<LinkedUser>) throws -> [LinkedUserRow] {
        try LinkedUserRow.table.find(users.map(LinkedUserRow.key), in: transaction)
    }

    func erasures(_ commands: Set<CommandKey>) throws -> [Erasure] {
        try Erasure.table.find(commands, in: transaction)
    }

    /// By the commands that began them, which two sources may have given one id.
    func erasures(begunBy requests: Set<Scoped<CommandID>>) throws -> [Erasure] {
        try Erasure.table.find("app = $1 AND command_id = $2", requests, in: transaction)
    }

    func erasures(waitingFor forwards: Set<Scoped<CommandID>>) throws -> [Erasure] {
        try Erasure.table.find(
            """
            (app, source, command_id) IN (
                SELECT app, source, command_id FROM erasure_forwards WHERE app = $1 AND forward_id = $2)
            """, forwards, in: transaction)
    }

    /// Those that wait for the link service to forget whoever has one of these external ids.
    func erasures(ofPersons externalIDs: Set<Scoped<ExternalID>>) throws -> [Erasure] {
        try Erasure.table.find(
            """
            (app, source, command_id) IN (
                SELECT app, source, command_id FROM erasure_forwards WHERE app = $1 AND external_id = $2)
            """, externalIDs, in: transaction)
    }

    // MARK: Writing

    func save(_ state: SyncState) throws {
        // A new profile is inserted plainly: should another command have made the same MPID meanwhile, this is a
        // conflict and decided again, and no profile is ever overwritten.
        let profiles = state.profiles.written(isAlone: transaction.isAlone)
        try Profile.table.insert(profiles.created, in: transaction)
        try Profile.table.update(profiles.updated, in: transaction)
        try Profile.table.remove(state.profiles.removed, in: transaction)
        try saveIdentities(state)
        try saveDevices(state)
        try AliasRecord.table.save(state.aliases, in: transaction)
        // A row is written for a link, too: a link and the erasure of its user come over two topics, and two replicas that
        // decide them at one time meet in it.
        try LinkedUserRow.table.save(
            state.changedUsers.map { LinkedUserRow($0, state) }
                .sorted { $0.key < $1.key }, in: transaction)
        try saveErasures(state)
    }

    /// A device of which nothing is known leaves no row. Plainly, as the values' rows are written.
    private func saveDevices(_ state: SyncState) throws {
        let (created, updated) = state.devices.written(isAlone: transaction.isAlone)
        try DeviceRecord.table.insert(created.filter(\.isKept), in: transaction)
        try DeviceRecord.table.update(updated.filter(\.isKept), in: transaction)
        try DeviceRecord.table.remove(updated.filter { !$0.isKept }.map(\.key), in: transaction)
        try MoveFloor.table.save(state.raisedFloors, in: transaction)
    }

    /// A value without holders leaves no row, so that nothing tells of it. A row may therefore go at any time: one that
    /// was read is updated and one that was not there is inserted, plainly, and whatever changed meanwhile is a conflict.
    private func saveIdentities(_ state: SyncState) throws {
        let (created, known) = state.identities.written(isAlone: transaction.isAlone)
        try IdentityEntry.table.insert(created.filter { !$0.holders.isEmpty }, in: transaction)
        var updated = known
        // Values that somebody lost, or that are only to be written: their rows are read only now.
        for var entry in try identities(Set(state.releases.keys.filter { state.identities[$0] == nil })) {
            entry.holders.removeAll { state.releases[entry.key]?.contains($0) == true }
            updated.append(entry)
        }
        updated.sort { $0.key < $1.key }
        // Those that go are updated too: row locks are taken in one order.
        try IdentityEntry.table.update(updated, in: transaction)
        try IdentityEntry.table.remove(updated.filter(\.holders.isEmpty).map(\.key), in: transaction)
    }

    private func saveErasures(_ state: SyncState) throws {
        try Erasure.table.save(state.erasures, in: transaction)
        try ErasedProfile.table.save(state.certificates, in: transaction)
        try SubjectRequestRow.table.save(state.requests, in: transaction)
        try ErasureForward.table.save(
            state.erasures.changed.flatMap { erasure in
                erasure.waiting.map {
                    ErasureForward(
                        id: $0, command: erasure.command, externalID: erasure.persons[$0.text]?.externalId)
                }
            }, in: transaction)
        try transaction.sendEach(
            "DELETE FROM erasure_forwards WHERE app = $1 AND source = $2 AND command_id = $3",
            state.erasures.removed.map { [.text($0.app.text), .text($0.source.text), .text($0.id.text)] })
    }

    // MARK: What becomes due

    /// Forgets devices on which nobody was seen, that asked something before `horizon` and not since.
    func pruneDevices(before horizon: Int64, limit: Int) throws {
        try transaction.execute(
            """
            DELETE FROM devices WHERE (app, device_id) IN (
                SELECT app, device_id FROM devices WHERE users = '' AND tokens_at < $1 ORDER BY tokens_at LIMIT $2)
            """, [.integer(horizon), SQLValue(limit)])
    }

    /// Aliases whose time has come. Each comes again after 30 seconds at the earliest, and after longer and longer while it
    /// is not decided.
    func dueAliases(now: Int64, limit: Int) throws -> [AliasRecord] {
        let due = try AliasRecord.table.find(
            "ask_at <= $1 ORDER BY ask_at, app, alias_id LIMIT $2", [.integer(now), SQLValue(limit)], in: transaction)
        try transaction.sendEach(
            "UPDATE aliases SET ask_at = $3 WHERE app = $1 AND alias_id = $2",
            due.map { alias in
                let pause = DueCommand.pause(overdue: now - alias.dueAt)
                return [.text(alias.key.app.text), .text(alias.key.id.text), .integer(now + pause)]
            })
        return due
    }
}
