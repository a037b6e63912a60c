// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Metrics
public import Runtime
public import Storage

/// Identity sync: sets of identities become profiles, and every device has its current user (docs/sync.md).
public struct SyncService: CommandService {
    public static let name = "sync"
    public static let migrations = SyncStore.migrations
    public static let inputs: [Input<SyncCommand>] = [
        .command(IdentifyUser.self) { .move(.identify, $0.request) },
        .command(LogInUser.self) { .move(.login, $0.request) },
        .command(LogOutUser.self) { .move(.logout, $0.request) },
        .command(SearchUser.self) { .search($0.request) },
        .command(ModifyIdentities.self, SyncCommand.modify),
        .command(AliasUsers.self, SyncCommand.alias),
        .command(ApplyAlias.self, SyncCommand.applyAlias),
        .command(DetachIdentities.self, SyncCommand.detach),
        .command(AllowMerge.self, SyncCommand.allow),
        .command(RestrictProfile.self, SyncCommand.restrict),
        .command(ImportProfiles.self, SyncCommand.importProfiles),
        .command(GetDeviceUsers.self, SyncCommand.getUsers),
        .command(EraseProfile.self, SyncCommand.erase),
        .command(ForgetProfiles.self, SyncCommand.forget),
        .command(KeepErased.self, SyncCommand.keepErased),
        .command(GetProfileErasure.self, SyncCommand.getErasure),
        .command(GetProfile.self, SyncCommand.getProfile),
        .command(FileRequest.self, SyncCommand.fileRequest),
        .command(GetRequest.self, SyncCommand.getRequest),
        .command(GetRequests.self, SyncCommand.getRequests),
        .command(CancelRequest.self, SyncCommand.cancelRequest),
        .command(GetRequestResults.self, SyncCommand.getRequestResults),
        .command(ProcessRequest.self, SyncCommand.processRequest),
        .command(ExpireProfile.self, SyncCommand.expireProfile),
        .command(ExpireDevice.self, SyncCommand.expireDevice),
        .command(ReadFacts<FactsOf.Sync>.self) { .facts($0.query) },
        .event(Linked.self, of: "link", SyncCommand.linked),
        .event(ExternalIDChanged.self, of: "link", SyncCommand.renamed),
        .event(ExternalIDRemoved.self, of: "link", SyncCommand.unlinked),
        .reply(from: ["link", "verification"]) { .answered(ForwardAnswer($0)) },
    ]
    public static let hasDueCommands = true

    /// How long a device is remembered that has asked, but on which nobody was seen: longer than any bucket takes to fill.
    static let unusedDevicesKept: Int64 = 3_600_000

    /// In milliseconds.
    private let aliasDelay: Int64

    /// - Parameter aliasDelay: how long an accepted alias waits.
    public init(aliasDelay: Duration) { self.aliasDelay = aliasDelay.inMilliseconds }

    /// Takes `ALIAS_DELAY` from the environment: whole seconds, 24 hours unless it says otherwise.
    /// - Throws: `ConfigurationProblem`.
    public init(environment: [String: String]) throws {
        let settings = EnvironmentSettings(environment)
        let seconds = try settings.integer(.aliasDelay)
        self.init(aliasDelay: .seconds(seconds))
    }

    /// What a restriction comes to on the user's installs.
    public static func listeners(to event: any EventMessage) -> [String] {
        event is UserRestrictionChanged ? ["link"] : []
    }

    public func ids(in command: SyncCommand, of app: AppID, _ state: SyncState) -> [String] {
        if command.isList { return [] }
        return (command.deviceID.map { [$0.text] } ?? []) + command.mpids.map(\.description)
            + command.identities.map(\.value.text)
    }

    public func load(
        _ commands: [(SyncCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> SyncState {
        let store = SyncStore(transaction: transaction)
        var state = SyncState()
        var wanted = Wanted(commands)
        try loadRequests(&wanted, &state, store)
        state.newMPIDs = wanted.newMPIDs
        state.load(try store.aliases(wanted.aliases))
        state.load(try store.devices(wanted.devices))
        // After the devices: one that is forgotten meanwhile has raised its app's.
        let unused = wanted.devices.filter { state.devices[$0]?.isUnused != false }
        state.load(try store.floors(Set(unused.map(\.app)).union(wanted.erasing.keys)))
        let identities = wanted.identities.union(remembered(commands, state))
        state.load(try store.identities(identities), of: identities)
        state.load(try store.identities(wanted.digests), of: [])
        try loadErasures(wanted, &state, store)
        state.load(try store.linkedUsers(wanted.users), among: wanted.users)
        state.load(try store.profiles(reached(from: commands, wanted, state)))
        state.load(try store.profiles(of: wanted.markedUsers))
        state.load(try store.profiles(formerly: wanted.formerNames))
        if wanted.hasErasure { try loadAliasSources(&state, store) }
        if !wanted.expiring.isEmpty { try store.loadExpiring(wanted.expiring, &state) }
        if !wanted.moving.isEmpty { try loadMarked(wanted.moving, &state, store) }
        if wanted.hasErasure { try loadShared(wanted.erasing, &state, store) }
        if wanted.changesBarriers {
            let apart = state.profiles.values.flatMap { profile in
                profile.barriers.flatMap { [$0.mpid, $0.other] }.map { Profile.Key(app: profile.app, id: $0) }
            }
            state.load(try store.profiles(Set(apart).subtracting(state.profiles.keys)))
        }
        if wanted.hasErasure || !wanted.linked.isEmpty {
            // Since when others have their names (S122).
            let others = Set(state.profiles.values.compactMap(\.linkedUser)).subtracting(wanted.users)
            state.load(try store.linkedUsers(others), among: others)
        }
        // Any profile of the batch may be the one that changes, since commands see what those before them did.
        if wanted.reachesDevices {
            state.load(try store.devices(withCurrent: Set(state.profiles.keys)))
        }
        if wanted.hasErasure || wanted.readsDevices {
            state.load(try store.devices(withAnonymous: Set(state.profiles.keys)))
        }
        if !wanted.takenApart.isEmpty { try loadTakenApart(wanted.takenApart, &state, store) }
        if wanted.hasErasure || !wanted.takenApart.isEmpty {
            state.load(try store.aliases(of: Set(state.profiles.keys)))
        }
        if wanted.hasErasure {
            let seen = state.devices.values.flatMap { device in
                device.users.map { Profile.Key(app: device.key.app, id: $0.mpid) }
            }
            state.load(try store.profiles(Set(seen).subtracting(state.profiles.keys)))
        }
        try loadTaken(commands, &state, store)
        return state
    }

    /// Requests of data subjects, and whom they are about.
    private func loadRequests(_ wanted: inout Wanted, _ state: inout SyncState, _ store: SyncStore) throws {
        if wanted.requests.isEmpty, wanted.requestGroups.isEmpty { return }
        state.load(try store.requests(Set(wanted.requests.keys)))
        for group in wanted.requestGroups.sorted() {
            state.load(try store.requests(ofGroup: group.id.text, group.app))
        }
        for request in state.requests.values {
            wanted.certificates.formUnion(request.profiles.map { .init(app: request.app, id: $0) })
            guard let settings = wanted.requests[request.key] else { continue }
            wanted.profiles.formUnion(request.profiles.map { .init(app: request.app, id: $0) })
            wanted.identities.formUnion(request.identities.map { .init(app: request.app, $0, settings) })
        }
    }

    /// Erasures that a command may end or repeat, and what their certificates say.
    private func loadErasures(_ wanted: Wanted, _ state: inout SyncState, _ store: SyncStore) throws {
        state.load(try store.erasures(wanted.erasures))
        state.load(try store.erasures(waitingFor: wanted.answers))
        state.load(try store.erasures(ofPersons: wanted.linked))
        let ended = state.erasures.values.flatMap { erasure in
            erasure.certificate.subject.mpids.map { Profile.Key(app: erasure.command.app, id: $0) }
        }
        state.load(try store.certificates(wanted.certificates.union(ended)))
        // Whoever went with an erased profile has the same certificate, which is written again for all of them (S97).
        let together = Set(
            state.certificates.values.flatMap { row in
                row.certificate.subject.mpids.map { Profile.Key(app: row.key.app, id: $0) }
            })
        state.load(try store.certificates(together.subtracting(state.certificates.keys)))
        // What is not complete may be asked for again (S55).
        let open = state.certificates.values.filter { $0.certificate.completedAt == nil }
        state.load(
            try store.erasures(
                begunBy: Set(open.map { Scoped(app: $0.key.app, id: $0.certificate.requestId) })))
    }

    /// The profiles that the commands name, and those that what is loaded leads to.
    private func reached(
        from commands: [(SyncCommand, DecisionContext)], _ wanted: Wanted, _ state: SyncState
    ) -> Set<Profile.Key> {
        var profiles = wanted.profiles
        for alias in state.aliases.values {
            profiles.insert(.init(app: alias.key.app, id: alias.source))
        }
        for entry in state.identities.values {
            for holder in entry.holders { profiles.insert(.init(app: entry.key.app, id: holder)) }
        }
        for device in state.devices.values {
            for mpid in [device.current, device.anonymous] {
                if let mpid { profiles.insert(.init(app: device.key.app, id: mpid)) }
            }
        }
        for case (.getUsers(let command), let context) in commands {
            for user in state.device(context.app.id, command.deviceId).users {
                profiles.insert(.init(app: context.app.id, id: user.mpid))
            }
        }
        return profiles
    }

    /// An MPID is taken only when a command comes again that the inbox has forgotten.
    private func loadTaken(
        _ commands: [(SyncCommand, DecisionContext)], _ state: inout SyncState, _ store: SyncStore
    ) throws {
        for (command, context) in commands where command.mayCreateProfile {
            var counter = 0
            while state.profile(context.app.id, state.newMPID(context, counter)) != nil {
                counter += 1
                state.load(try store.profiles([.init(app: context.app.id, id: context.newMPID(counter))]))
            }
        }
    }

    /// What devices are known by whose identities a service need not name (S88).
    private func remembered(
        _ commands: [(SyncCommand, DecisionContext)], _ state: SyncState
    ) -> Set<IdentityEntry.Key> {
        var keys: Set<IdentityEntry.Key> = []
        for case (.move(_, let request), let context) in commands where context.principal.kind == .service {
            for identity in state.device(context.app.id, request.deviceId).identities {
                keys.insert(.init(app: context.app.id, identity, context.app.sync))
            }
        }
        return keys
    }

    /// Who has the customer ids of marked profiles: a mark may move on (S115, S124).
    private func loadMarked(_ moving: [AppID: SyncSettings], _ state: inout SyncState, _ store: SyncStore) throws {
        let keys = state.profiles.values.compactMap { profile in
            profile.mark.flatMap { mark in
                moving[profile.app].map {
                    IdentityEntry.Key(
                        app: profile.app, Identity(.customerID, IdentityValue(mark.externalID.text)), $0)
                }
            }
        }
        // The MPID of its own that the link would give may be an erased profile's by now.
        let own = state.profiles.values.compactMap { profile in
            profile.mark.map { Profile.Key(app: profile.app, id: $0.ownMPID) }
        }
        state.load(try store.profiles(Set(own).subtracting(state.profiles.keys)))
        let missing = Set(keys.filter { state.identities[$0] == nil })
        state.load(try store.identities(missing), of: missing)
        let holders = missing.flatMap { key in
            (state.identities[key]?.holders ?? []).map { Profile.Key(app: key.app, id: $0) }
        }
        state.load(try store.profiles(Set(holders).subtracting(state.profiles.keys)))
    }

    /// What the next login on a device of a profile finds that is taken apart (S134).
    private func loadTakenApart(
        _ apart: [Profile.Key: SyncSettings], _ state: inout SyncState, _ store: SyncStore
    ) throws {
        let settings = Dictionary(apart.map { ($0.key.app, $0.value) }) { first, _ in first }
        let ofProfiles = apart.flatMap { key, settings in
            (state.profiles[key]?.identities ?? []).map { IdentityEntry.Key(app: key.app, $0, settings) }
        }
        let ofDevices = state.devices.values.flatMap { device in
            settings[device.key.app].map { settings in
                device.identities.map { IdentityEntry.Key(app: device.key.app, $0, settings) }
            } ?? []
        }
        let missing = Set(ofProfiles + ofDevices).filter { state.identities[$0] == nil }
        state.load(try store.identities(missing), of: missing)
        let holders = Set(
            missing.flatMap { key in
                (state.identities[key]?.holders ?? []).map { Profile.Key(app: key.app, id: $0) }
            }
        ).subtracting(state.profiles.keys)
        state.load(try store.profiles(holders))
        state.load(try store.devices(withCurrent: holders))
    }

    /// Who else has the login identities of profiles that may go, where several may have one (S125).
    private func loadShared(_ erasing: [AppID: SyncSettings], _ state: inout SyncState, _ store: SyncStore) throws {
        let keys = state.profiles.values.flatMap { profile in
            erasing[profile.app].map { settings in
                settings.logins(profile.identities).filter { !settings.uniqueIdentities.contains($0.type) }
                    .map { IdentityEntry.Key(app: profile.app, $0, settings) }
            } ?? []
        }
        let missing = Set(keys.filter { state.identities[$0] == nil })
        if !missing.isEmpty { state.load(try store.identities(missing), of: missing) }
    }

    /// Whoever was aliased into a profile that may go, and into these.
    private func loadAliasSources(_ state: inout SyncState, _ store: SyncStore) throws {
        while true {
            let sources = state.profiles.values.flatMap { profile in
                profile.aliasedFrom.map { Profile.Key(app: profile.app, id: $0) }
            }
            let rows = try store.profiles(Set(sources).subtracting(state.profiles.keys))
            if rows.isEmpty { return }
            state.load(rows)
        }
    }

    /// What a batch has to know before anything is read.
    private struct Wanted {
        var aliases: Set<AliasRecord.Key> = []
        var devices: Set<DeviceRecord.Key> = []
        var identities: Set<IdentityEntry.Key> = []
        /// Of values of those who were erased.
        var digests: Set<Scoped<IdentityDigest>> = []
        var profiles: Set<Profile.Key> = []
        var newMPIDs: [CommandKey: MPID] = [:]
        /// Of the link service.
        var users: Set<LinkedUser> = []
        /// The external ids that events of the link service name.
        var linked: Set<Scoped<ExternalID>> = []
        /// Whose profiles are looked for by their marks.
        var markedUsers: Set<LinkedUser> = []
        /// By which profiles are looked for that have them no longer.
        var formerNames: Set<Scoped<ExternalID>> = []
        var erasures: Set<CommandKey> = []
        var answers: Set<Scoped<CommandID>> = []
        var certificates: Set<Profile.Key> = []
        var reachesDevices = false
        var readsDevices = false
        var changesBarriers = false
        /// The profiles that are taken apart.
        var takenApart: [Profile.Key: SyncSettings] = [:]
        /// The apps in which somebody may be erased.
        var erasing: [AppID: SyncSettings] = [:]
        var hasErasure: Bool { !erasing.isEmpty }
        /// Profiles to which nobody came back.
        var expiring: Set<Profile.Key> = []
        /// Of data subjects.
        var requests: [SubjectRequestRow.Key: SyncSettings] = [:]
        var requestGroups: Set<Scoped<ID<SubjectRequestRow>>> = []
        /// The apps in which marks may move on.
        var moving: [AppID: SyncSettings] = [:]

        init(_ commands: [(SyncCommand, DecisionContext)]) {
            for (command, context) in commands {
                let app = context.app
                switch command {
                case .linked, .renamed, .unlinked:
                    guard app.sync.fromLinks else { continue }
                default: break
                }
                linked.formUnion(command.linked.map { .init(app: app.id, id: $0) })
                if case .alias = command { aliases.insert(.init(app: app.id, id: context.newAliasID)) }
                if case .applyAlias(let apply) = command { aliases.insert(.init(app: app.id, id: apply.aliasId)) }
                if case .answered(let answer) = command {
                    answers.insert(.init(app: app.id, id: answer.forwardID))
                    // The certificate is written for all whom the part names, also for those who went before (S97).
                    let named = answer.part?.subject.mpids ?? []
                    certificates.formUnion(named.map { .init(app: app.id, id: $0) })
                }
                if let id = command.requestID { requests[.init(app: app.id, id: id)] = app.sync }
                if case .getRequests(let query) = command {
                    requestGroups.insert(.init(app: app.id, id: ID(query.groupId)))
                }
                if case .expireProfile(let command) = command {
                    expiring.insert(.init(app: app.id, id: command.mpid))
                }
                if case .keepErased(let kept) = command { want(kept.traces(context) ?? [], of: app) }
                if let device = command.deviceID { devices.insert(.init(app: app.id, id: device)) }
                for device in command.listedDevices { devices.insert(.init(app: app.id, id: device)) }
                for identity in command.identities { identities.insert(.init(app: app.id, identity, app.sync)) }
                for mpid in command.mpids { profiles.insert(.init(app: app.id, id: mpid)) }
                if command.readsCertificates {
                    certificates.formUnion(command.mpids.map { .init(app: app.id, id: $0) })
                }
                let named = command.users.map { LinkedUser(app: app.id, id: $0) }
                users.formUnion(named)
                if command.findsByMark { markedUsers.formUnion(named) }
                formerNames.formUnion(command.formerNames.map { .init(app: app.id, id: $0) })
                if command.movesMarks { moving[app.id] = app.sync }
                if command.mayCreateProfile {
                    let mpid = context.newMPID(0)
                    newMPIDs[context.command] = mpid
                    profiles.insert(.init(app: app.id, id: mpid))
                }
                if command.reachesDevices(app.sync) { reachesDevices = true }
                if command.readsDevices { readsDevices = true }
                if command.changesBarriers { changesBarriers = true }
                if let mpid = command.takenApart { takenApart[.init(app: app.id, id: mpid)] = app.sync }
                if command.isErasure {
                    erasing[app.id] = app.sync
                    erasures.insert(context.command)
                }
            }
        }

        private mutating func want(_ traces: [ErasedTrace], of app: AppSettings) {
            digests.formUnion(traces.flatMap(\.logins).map { .init(app: app.id, id: $0.key(app.sync)) })
            devices.formUnion(traces.flatMap(\.devices).map { .init(app: app.id, id: $0) })
        }
    }

    public func decide(
        _ command: SyncCommand, _ state: SyncState, _ context: DecisionContext
    ) -> Decision<SyncState.Change> {
        SyncDecider(state, context, aliasDelay: aliasDelay).decide(command)
    }

    public func save(_ state: SyncState, in transaction: any SQLTransaction) throws {
        try SyncStore(transaction: transaction).save(state)
        for (what, count) in state.expired { RetentionWalk.count(what, count) }
        for (type, count) in state.ignored {
            Counter(label: "identity_ignored_values", dimensions: [("type", type.rawValue)]).increment(by: count)
        }
    }

    public func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        try due(now: now, limit: limit, in: transaction)
            + SyncStore(transaction: transaction).dueRetention(now: now, limit: limit, apps: apps)
            + SyncStore(transaction: transaction).dueRequests(now: now.milliseconds, limit: limit)
    }

    public func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand] {
        let store = SyncStore(transaction: transaction)
        try store.pruneDevices(before: now.milliseconds - Self.unusedDevicesKept, limit: limit)
        return try store.dueAliases(now: now.milliseconds, limit: limit)
            .map { alias in
                DueCommand(
                    app: alias.key.app, id: CommandID(alias.key.id.text), dueAt: Timestamp(milliseconds: alias.dueAt),
                    command: ApplyAlias(aliasId: alias.key.id, destinationMPID: alias.destination))
            }
    }
}
