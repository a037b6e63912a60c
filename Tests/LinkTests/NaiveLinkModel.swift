// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

/// The link service as somebody would write it down from the tables who never saw the decider: plain records, every
/// look-up a search, nothing shared with the product but its value types.
struct NaiveLinkModel {
    struct InstallRow: Hashable {
        var app: AppID
        var device: Device
        var status: InstallStatus = .enabled
        var user: UserID?
        var activity: Install.Activity = .none
        var isUsersFirst = false
        var isOpen = false
        /// When the person without an external id came, or the linker began.
        var since: Int64?
        /// When whoever is there came there.
        var arrived: Int64?
        var version: Int64 = 0
        var erasedAt: Int64?
        /// Its person came with it from another system, and nobody has begun with that yet.
        var isBrought = false
    }

    struct PersonRow: Hashable {
        var app: AppID
        var externalID: ExternalID?
        var isErased = false
        /// Since when it has the external id, or has none again.
        var named: Int64?
        var created: Int64?
        /// External ids that it may not get by itself.
        var barred: Set<TextDigest> = []
        /// Its names in the past, and when each ended.
        var past: [FormerExternalID] = []
        /// Who says that it may be active nowhere, or said so, and when.
        var words: [MPID: Word] = [:]
    }

    struct Word: Hashable {
        var isFrozen: Bool
        var at: Int64
    }

    /// Whose an external id was, and from when until when it names nobody.
    struct HoldRow: Hashable {
        var user: UserID
        var begun: Int64
        var until: Int64
        /// When support gave it away.
        var givenAway: Int64?
    }

    var holds: [AppID: [ExternalID: HoldRow]] = [:]
    /// How long the app holds them, and what time it is.
    var holdFor: Int64 = 0
    var now: Int64 = 0

    /// Every app has installs of its own.
    var apps: [AppID: [InstallID: InstallRow]] = [:]
    var app: AppID = "demo"
    /// Those of the app whose command it is.
    var installs: [InstallID: InstallRow] {
        get { apps[app] ?? [:] }
        set { apps[app] = newValue }
    }

    /// One install took the person from another, whose row was then at this version.
    struct Takeover: Hashable {
        var winner: InstallID
        var loser: InstallID
        var version: Int64
        var before: Install.Activity
    }

    /// By person, in the order in which they would be undone.
    var takeovers: [UserID: [Takeover]] = [:]
    var persons: [UserID: PersonRow] = [:]
    /// By which element of a list people came, or were added to last.
    var elements: [UserID: ImportedUser] = [:]

    /// What a service has to do with an erased person.
    struct Task: Hashable {
        var user: UserID
        var service: String
    }

    /// Tasks that are begun: by the id of the command that was sent, or nil when it was refused.
    var begun: [Task: CommandID?] = [:]
    var finished: Set<Task> = []
    var externalIDs: [UserID: ExternalID] = [:]
    var pasts: [UserID: [FormerExternalID]] = [:]
    var erasedInstalls: [UserID: [InstallID]] = [:]
    var erasedAt: [UserID: Int64] = [:]
    /// How many installs went with an erased person.
    var removed: [UserID: Int] = [:]
    /// What the others answered that they erased of a person.
    var parts: [UserID: [ErasureCertificate.Counts]] = [:]
    /// Of whom all services are asked, and not only the user service.
    var whole: Set<UserID> = []
    /// The commands that wait, for what, and whether they are told what all services did.
    var waiting: [(id: CommandID, users: Set<UserID>, tasks: Set<Task>, isWhole: Bool)] = []

    /// What the last command led to, beside events.
    var sent: [CommandID: AnyHashable] = [:]
    var settled: [CommandID: Answer] = [:]
    /// When the command was sent.
    var moment: Int64 = 0

    /// The erased persons of whom not all is done.
    var unfinished: Set<UserID> { Set(begun.keys.map(\.user)) }

    typealias Told = (Answer, [AnyHashable])

    mutating func run(
        _ command: LinkCommand, id: CommandID, app: AppID, linkingIsOn: Bool, newUser: UserID, moment: Int64,
        forwardID: (Int) -> CommandID
    ) -> Told {
        self.app = app
        self.moment = moment
        sent = [:]
        settled = [:]
        switch command {
        case .request(let request):
            return linking(request.installId) { model in
                if Self.isBad(request.externalId) { return .refuse(.invalidRequest) }  // L3
                if !linkingIsOn { return .refuse(.userLinkingNotConfigured) }  // L4
                guard let row = model.installs[request.installId] else {
                    return .refuse(model.unknown(request.installId))  // L5, L6
                }
                if row.status == .deleted || model.isOld(row) { return .refuse(.installDeleted) }  // L7, L62
                if row.status == .disabled { return .refuse(.installDisabled) }
                if row.user == nil, !row.isOpen { return .refuse(.noLinkingInProgress) }  // L7a
                let isLinked = row.user.map { model.persons[$0]?.externalID != nil } ?? false
                if !isLinked, let since = row.since, moment + 5000 < since { return .refuse(.noLinkingInProgress) }
                return model.rows8To15(
                    request.installId, row, request.externalId, app, newUser, isCreation: false, meant: moment)
            }
        case .establish(let command):
            return linking(command.installId) { model in
                model.establish(command, app: app, linkingIsOn: linkingIsOn, newUser: newUser)
            }
        case .registerInstall(let command): return register(command, app: app, newUser: newUser, moment)
        case .query(let query):
            if installs[query.installId] == nil { return (.rejected(unknown(query.installId)), []) }
            return (.install(result(query.installId)), [])
        case .detachInstall(let command): return detach(command)
        case .setInstallStatus(let command): return setStatus(command)
        case .eraseUser(let command): return erase(command.userId, app: app, id, forwardID)
        case .forget(let command): return forget(command, app: app, id, forwardID)
        case .getErasure(let query): return (erasure(query.userId, app: app), [])
        case .getUser(let query): return (look(for: query), [])
        case .makeActive(let command): return makeActive(command)
        case .unlink(let command): return unlink(command)
        case .changeExternalID(let command): return rename(command, linkingIsOn: linkingIsOn)
        case .importUsers(let list): return bring(list, linkingIsOn: linkingIsOn)
        case .restricted(let event): return (.noted, freeze(event))
        case .facts: return (.noted, [])
        case .expire(let command): return expire(command)
        case .answered(let answer):
            take(answer, app: app)
            return (.noted, [])
        }
    }

    // MARK: Linking

    private enum Step {
        case refuse(ReasonCode)
        case done(LinkResult, [AnyHashable])
    }

    /// A refused link is an event too.
    private mutating func linking(_ id: InstallID, _ steps: (inout NaiveLinkModel) -> Step) -> Told {
        let before = self
        switch steps(&self) {
        case .refuse(let reason):
            self = before
            return (.rejected(reason), [LinkRefused(installId: id, reason: reason)])
        case .done(let result, let events): return (.link(result), events)
        }
    }

    /// 403 where another app knows the id; what was erased is known to nobody.
    func unknown(_ id: InstallID) -> ReasonCode {
        let isElsewhere = apps.values.contains { $0[id].map { $0.device.platform != "erased" } ?? false }
        return isElsewhere ? .installDoesNotBelongToApp : .installNotFound
    }

    static func isBad(_ external: ExternalID) -> Bool {
        let externalID = external.text
        let blocked = ["null", "undefined", "anonymous", "guest", "0", "-1", "[object Object]", "NaN", ""]
        return blocked.contains(externalID) || externalID.hasPrefix(" ") || externalID.hasSuffix(" ")
            || externalID.allSatisfy { "-0".contains($0) }
    }

    /// Whether the command is of a time when somebody was there who is erased now.
    func isOld(_ row: InstallRow) -> Bool { row.erasedAt.map { $0 > moment } ?? false }

    func owner(of externalID: ExternalID, _ app: AppID) -> UserID? {
        persons.first { $0.value.app == app && $0.value.externalID == externalID }?.key
    }

    func activeInstalls(of user: UserID, except id: InstallID) -> [InstallID] {
        installs.filter { $0.value.user == user && $0.value.activity == .active && $0.key != id }.map(\.key).sorted()
    }

    func losers(of user: UserID, except id: InstallID) -> [InstallID] {
        installs.filter { $0.value.user == user && [.active, .suspended].contains($0.value.activity) && $0.key != id }
            .map(\.key).sorted()
    }

    private mutating func rows8To15(
        _ id: InstallID, _ row: InstallRow, _ externalID: ExternalID, _ app: AppID, _ newUser: UserID, isCreation: Bool,
        meant: Int64
    ) -> Step {
        let owner = owner(of: externalID, app)
        if owner == nil, isHeld(externalID) { return .refuse(.externalIDChanged) }
        if row.user == nil || row.user != owner, meant < givenAway(externalID) { return .refuse(.externalIDChanged) }
        if let user = row.user, let mine = persons[user]?.externalID {
            if mine != externalID { return .refuse(.installLinkedToOtherUser) }  // L8
            let phones = activeInstalls(of: user, except: id).filter { installs[$0]?.device.kind == .phone }
            let mayWait = row.device.kind == .tablet && !phones.isEmpty
            if row.activity == .standby, !mayWait { return give(id, row, to: user, externalID, isNew: false) }
            if row.activity == .deactivated {
                if isCreation { return give(id, row, to: user, externalID, isNew: false) }
                return .refuse(.installDeactivated)  // L10
            }
            // A creation that finds its person active takes it from nobody.
            if isCreation, row.activity == .active { takeovers[user]?.removeAll { $0.winner == id } }
            return .done(  // L9
                LinkResult(
                    userId: user, installId: id, isActive: row.activity == .active && !isFrozen(user),
                    isRestricted: isFrozen(user) ? true : nil, personCreated: false,
                    version: row.version), [])
        }
        if let user = row.user {
            // L15, and who is no child of this creation.
            if owner != nil || isCreation { return .refuse(.cannotLinkExistingPersonToOtherPerson) }
            if persons[user]?.barred.contains(TextDigest(of: externalID.text)) == true { return .refuse(.linkBarred) }
            name(user, externalID)  // L14
            guard case .done(let result, let events) = give(id, row, to: user, externalID, isNew: false) else {
                return .refuse(.multipleInstallsActive)
            }
            let losers = events.compactMap { ($0.base as? InstallStatusChanged)?.installId }
            let others = installs.filter { $0.value.user == user && $0.key != id && !losers.contains($0.key) }
            return .done(result, events + others.keys.sorted().map { stir($0, .relinked, nil) })
        }
        if let owner { return give(id, row, to: owner, externalID, isNew: false) }  // L11, L13
        if let taken = persons[newUser] { return .refuse(taken.isErased ? .userErased : .idReused) }
        persons[newUser] = PersonRow(app: app, externalID: externalID, named: moment, created: moment)  // L12
        return give(id, row, to: newUser, externalID, isNew: true)
    }

    private mutating func give(
        _ id: InstallID, _ row: InstallRow, to user: UserID, _ externalID: ExternalID, isNew: Bool
    ) -> Step {
        let active = activeInstalls(of: user, except: id)
        if active.count > 1 { return .refuse(.multipleInstallsActive) }
        let phoneStays = row.device.kind == .tablet && active.contains { installs[$0]?.device.kind == .phone }
        installs[id] = row
        let arrival = row.user == user ? row.arrived : moment
        installs[id]?.arrived = arrival
        installs[id]?.user = user
        installs[id]?.activity = phoneStays ? .standby : .active
        installs[id]?.isOpen = false
        installs[id]?.isBrought = false
        installs[id]?.since = nil
        // Who is called otherwise now, and active as before, has what it took to give back as before.
        if row.user != user || row.activity != .active { takeovers[user]?.removeAll { $0.winner == id } }
        if phoneStays { keepTheClaim(of: id, row, user) }
        installs[id]?.isUsersFirst = isNew || row.user == user && row.isUsersFirst
        installs[id]?.version = row.version + 1
        var events: [AnyHashable] = [
            Linked(
                installId: id, externalId: externalID, userId: user, personCreated: isNew,
                activeInstallId: isFrozen(user) ? nil : phoneStays ? active[0] : id,
                deactivatedInstallIds: phoneStays ? [] : losers(of: user, except: id),
                version: row.version + 1, linkedAt: persons[user]?.named.map(Timestamp.init(milliseconds:)))
        ]
        for loser in losers(of: user, except: id) where !phoneStays {
            let before = installs[loser]?.activity ?? .none
            installs[loser]?.activity = .deactivated
            installs[loser]?.isBrought = false
            installs[loser]?.version += 1
            installs[loser]?.since = nil
            takeovers[user, default: []].append(
                Takeover(winner: id, loser: loser, version: installs[loser]?.version ?? -1, before: before))
            events.append(
                InstallStatusChanged(
                    installId: loser, status: installs[loser]?.status ?? .enabled, isActive: false, userId: user,
                    isLinked: true, cause: .superseded, inactiveBecause: reason(loser),
                    version: installs[loser]?.version ?? -1))
        }
        return .done(
            LinkResult(
                userId: user, installId: id, isActive: !phoneStays && !isFrozen(user),
                isRestricted: isFrozen(user) ? true : nil, personCreated: isNew, version: row.version + 1),
            events)
    }

    /// It waits, and has lost nothing by asking.
    private mutating func keepTheClaim(of id: InstallID, _ row: InstallRow, _ user: UserID) {
        takeovers[user] = takeovers[user]?.map { one in
            var one = one
            if one.loser == id, one.version == row.version { one.version += 1 }
            return one
        }
    }

    private mutating func establish(
        _ command: EstablishLink, app: AppID, linkingIsOn: Bool, newUser: UserID
    ) -> Step {
        if Self.isBad(command.externalId) { return .refuse(.invalidRequest) }
        if !linkingIsOn { return .refuse(.userLinkingNotConfigured) }
        let known = installs[command.installId]
        if let known {
            if known.status == .deleted || isOld(known) { return .refuse(.installDeleted) }
            if known.status == .disabled { return .refuse(.installDisabled) }
        }
        if command.mode == .linkExistingUser, known?.user == nil { return .refuse(.userNotFound) }
        var row = known ?? InstallRow(app: app, device: command.device)
        row.device = command.device
        let isCreation = command.mode == .create
        let meant = command.askedAt?.milliseconds ?? moment
        switch rows8To15(command.installId, row, command.externalId, app, newUser, isCreation: isCreation, meant: meant)
        {
        case .refuse(let reason): return .refuse(reason)
        case .done(let result, var events):
            if installs[command.installId]?.device != command.device { installs[command.installId] = row }
            if known?.device != command.device {
                events.insert(
                    InstallRegistered(installId: command.installId, device: command.device, userId: known?.user), at: 0)
            }
            return .done(result, events)
        }
    }

    // MARK: The rest

    func result(_ id: InstallID) -> InstallResult {
        guard let row = installs[id] else { preconditionFailure("no install \(id)") }
        return InstallResult(
            installId: id, appId: row.app, userId: row.user, externalId: row.user.flatMap { persons[$0]?.externalID },
            status: row.status, isActive: row.activity == .active && !isFrozen(row.user), inactiveBecause: reason(id),
            isUsersFirst: row.isUsersFirst, version: row.version)
    }

    func reason(_ id: InstallID) -> InactiveBecause? {
        guard let row = installs[id], row.user != nil else { return nil }
        if isFrozen(row.user) { return .restricted }
        if row.activity == .active { return nil }
        return row.status != .enabled ? .disabled : row.activity == .standby ? .waitsForPhone : .superseded
    }

    private mutating func register(
        _ command: RegisterInstall, app: AppID, newUser: UserID, _ moment: Int64
    ) -> Told {
        let known = installs[command.installId]
        if let known {
            if known.status == .deleted || isOld(known) { return (.rejected(.installDeleted), []) }
            if known.status == .disabled { return (.rejected(.installDisabled), []) }
        }
        let getsUser = command.user == .new && known?.user == nil
        if command.user == .new, let user = known?.user, user != newUser {
            let isGiven = known?.isBrought == true && persons[user]?.externalID == nil
            if !isGiven { return (.rejected(.userAlreadyExists), []) }
        }
        if getsUser, let taken = persons[newUser] {
            return (.rejected(taken.isErased ? .userErased : .idReused), [])
        }
        var row = known ?? InstallRow(app: app, device: command.device)
        row.device = command.device
        if getsUser {
            persons[newUser] = PersonRow(app: app, created: moment)
            row.user = newUser
            row.activity = .active
            row.isUsersFirst = true
            row.version += 1
            row.since = moment
            row.arrived = moment
        }
        // A linker's turn begins, but never earlier than it did.
        if command.user == .none, row.user == nil { row.since = row.isOpen ? max(row.since ?? moment, moment) : moment }
        row.isOpen = row.user == nil
        if command.user == .new { row.isBrought = false }
        installs[command.installId] = row
        let isNews = known?.device != command.device || getsUser
        let event = InstallRegistered(installId: command.installId, device: command.device, userId: row.user)
        return (.install(result(command.installId)), isNews ? [event] : [])
    }

    private mutating func detach(_ command: DetachInstall) -> Told {
        let id = command.installId
        guard let row = installs[id] else { return (.rejected(unknown(id)), []) }
        if isOld(row) { return (.rejected(.installDeleted), []) }
        guard let user = row.user else {
            if row.status == .deleted { return (.rejected(.installDeleted), []) }
            if row.isOpen { installs[id]?.since = nil }
            installs[id]?.isOpen = false
            return (.install(result(id)), [])
        }
        installs[id]?.user = nil
        installs[id]?.activity = .none
        installs[id]?.isUsersFirst = false
        installs[id]?.isBrought = false
        installs[id]?.isOpen = false
        installs[id]?.since = nil
        installs[id]?.arrived = nil
        installs[id]?.version += 1
        let told: AnyHashable = InstallDetached(installId: id, userId: user, version: row.version + 1)
        let undone = command.cause == .creationFailed ? undo(id, row, of: user) : []
        takeovers[user]?.removeAll { $0.winner == id }
        return (.install(result(id)), [told] + undone)
    }

    /// What the install took from others goes to whoever took it from this one, or back.
    private mutating func undo(_ id: InstallID, _ row: InstallRow, of user: UserID) -> [AnyHashable] {
        let mine = takeovers[user, default: []].filter { $0.winner == id }
        let isTaken = takeovers[user, default: []].contains { $0.loser == id && $0.version == row.version }
        takeovers[user] = takeovers[user]?.flatMap { other in
            guard other.loser == id, other.version == row.version else { return [other] }
            return mine.map { Takeover(winner: other.winner, loser: $0.loser, version: $0.version, before: $0.before) }
        }
        var events: [AnyHashable] = []
        if let current = losers(of: user, except: id).first {
            // It came after this one had been switched off, and owes what this one owed.
            if !isTaken {
                takeovers[user, default: []] += mine.filter { one in
                    installs[one.loser].map { $0.user == user && $0.version == one.version } ?? false
                }.map { Takeover(winner: current, loser: $0.loser, version: $0.version, before: $0.before) }
            }
            return events
        }
        for one in mine {
            guard let left = installs[one.loser], left.user == user, left.version == one.version else { continue }
            installs[one.loser]?.activity = one.before
            installs[one.loser]?.version += 1
            events.append(
                InstallStatusChanged(
                    installId: one.loser, status: left.status, isActive: one.before == .active && !isFrozen(user),
                    userId: user,
                    isLinked: persons[user]?.externalID != nil, cause: .restored, inactiveBecause: reason(one.loser),
                    version: left.version + 1))
            if one.before == .active { break }
        }
        return events
    }
}
