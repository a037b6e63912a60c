// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Link

/// The platform's one record of links, as ``NaiveUserModel`` needs it: written down from the tables of docs/link.md by
/// somebody who never saw the decider. Every look-up is a search, and nothing is shared with the product but its value
/// types. Its own events, versions and what other services have to forget are left out.
struct NaiveLinks {
    struct InstallRow {
        var app: AppID
        var device: Device
        var status: InstallStatus = .enabled
        var user: UserID?
        var activity: Install.Activity = .none
        var isOpen = false
        /// When the linker began, or the person came that has no external id.
        var since: Int64?
        /// When whoever was here was erased.
        var closed: Int64?
        /// Grows with each change of what the install is to its person.
        var changes = 0
        /// From whom this install took its person over.
        var took: [Taken] = []
    }

    struct Taken {
        var id: InstallID
        var changes: Int
        var before: Install.Activity
    }

    struct PersonRow {
        var app: AppID
        var externalID: ExternalID?
        /// Where it came to life, until it is taken off there.
        var birthplace: InstallID?
        /// Names that support took from it.
        var barred: Set<ExternalID> = []
    }

    /// External ids that were changed, and whose they were. No sequence of the tests takes thirty days.
    private var holds: [AppID: [ExternalID: UserID]] = [:]

    /// Every app has installs of its own.
    private(set) var apps: [AppID: [InstallID: InstallRow]] = [:]
    private var app: AppID = "demo"
    /// Those of the app whose command it was.
    private(set) var installs: [InstallID: InstallRow] {
        get { apps[app] ?? [:] }
        set { apps[app] = newValue }
    }
    mutating func look(at app: AppID) { self.app = app }

    private(set) var persons: [UserID: PersonRow] = [:]
    private var count = 1000
    /// When the command was made.
    private var made: Int64 = 0

    /// - Returns: why it was refused; nil when it was done.
    mutating func run(_ command: LinkCommand, _ app: AppSettings, now: Int64, made moment: Int64) -> ReasonCode? {
        (self.app, made) = (app.id, moment)
        switch command {
        case .request(let request):
            if let refusal = Self.refusal(of: request.externalId, app) { return refusal }  // L3, L4
            guard let row = installs[request.installId] else { return unknown(request.installId) }  // L5, L6
            if let closed = row.closed, moment < closed { return .installDeleted }  // L62
            if let refusal = refusal(of: row) { return refusal }  // L7
            if row.user == nil, !row.isOpen { return .noLinkingInProgress }  // L7a
            let isLinked = row.user.flatMap { persons[$0]?.externalID } != nil
            if !isLinked, let since = row.since, moment < since - 5000 { return .noLinkingInProgress }
            return link(request.installId, row, request.externalId, isCreation: false)
        case .establish(let command):
            if let refusal = Self.refusal(of: command.externalId, app) { return refusal }
            let known = installs[command.installId]
            if let refusal = known.flatMap({ refusal(of: $0) }) { return refusal }
            if command.mode == .linkExistingUser, known?.user == nil { return .userNotFound }
            var row = known ?? InstallRow(app: app.id, device: command.device)
            row.device = command.device
            return link(command.installId, row, command.externalId, isCreation: command.mode == .create)
        case .registerInstall(let command): return register(command, app, now)
        case .detachInstall(let command): return detach(command)
        case .setInstallStatus(let command): return set(command.status, of: command.installId, app)
        case .eraseUser(let command):
            guard persons[command.userId]?.app == app.id else { return .userNotFound }
            persons[command.userId]?.externalID = nil
            holds[app.id] = holds[app.id]?.filter { $0.value != command.userId }
            for (id, row) in installs where row.user == command.userId {
                // What is left of it is known to nobody else.
                installs[id] = InstallRow(
                    app: row.app, device: Device(kind: .other, platform: ""), status: row.status,
                    closed: max(moment, row.closed ?? moment))
            }
            return nil
        case .makeActive(let command): return makeActive(command.installId)
        case .unlink(let command): return unlink(command.userId, app.id)
        case .changeExternalID(let command): return rename(command, app)
        case .query, .getUser, .forget, .getErasure, .importUsers, .restricted, .answered, .facts, .expire:
            preconditionFailure("no model of \(command)")
        }
    }

    private static func refusal(of externalID: ExternalID, _ app: AppSettings) -> ReasonCode? {
        // Of all that may not be an external id, the tests send this one.
        if externalID == "null" { return .invalidRequest }
        return app.linking.isEnabled ? nil : .userLinkingNotConfigured
    }

    private func unknown(_ id: InstallID) -> ReasonCode {
        let isElsewhere = apps.values.contains { $0[id].map { !$0.device.platform.isEmpty } ?? false }
        return isElsewhere ? .installDoesNotBelongToApp : .installNotFound
    }

    private func refusal(of row: InstallRow) -> ReasonCode? {
        switch row.status {
        case .deleted: return .installDeleted
        case .disabled: return .installDisabled
        case .enabled: return nil
        }
    }

    private mutating func newPerson(
        _ app: AppID, on install: InstallID, _ externalID: ExternalID? = nil
    ) -> UserID {
        count += 1
        let user = UserID("model-\(count)")
        persons[user] = PersonRow(app: app, externalID: externalID, birthplace: install)
        return user
    }

    private func active(of user: UserID, except id: InstallID) -> [InstallID] {
        installs.filter { $0.value.user == user && $0.value.activity == .active && $0.key != id }.map(\.key)
    }

    // MARK: L8 to L15

    private mutating func link(
        _ id: InstallID, _ row: InstallRow, _ externalID: ExternalID, isCreation: Bool
    ) -> ReasonCode? {
        let owner = owner(of: externalID)
        if owner == nil, holds[app]?[externalID] != nil { return .externalIDChanged }  // L66
        guard let user = row.user else {
            give(id, row, to: owner ?? newPerson(row.app, on: id, externalID))  // L11, L12, L13
            return nil
        }
        guard let mine = persons[user]?.externalID else {
            if owner != nil || isCreation { return .cannotLinkExistingPersonToOtherPerson }  // L15, L54
            if persons[user]?.barred.contains(externalID) == true { return .linkBarred }  // L74
            persons[user]?.externalID = externalID  // L14
            give(id, row, to: user)
            stir(user, but: [id] + (installs[id]?.took.map(\.id) ?? []))
            return nil
        }
        if mine != externalID { return .installLinkedToOtherUser }  // L8
        switch row.activity {
        case .deactivated where isCreation: give(id, row, to: user)
        case .deactivated: return .installDeactivated  // L10
        case .standby: give(id, row, to: user)
        default:  // L9
            installs[id] = row
            if isCreation, row.activity == .active { installs[id]?.took = [] }
        }
        return nil
    }

    /// The newest install is the active one, but for a tablet beside a phone.
    private mutating func give(_ id: InstallID, _ row: InstallRow, to user: UserID) {
        let staysBehind =
            row.device.kind == .tablet
            && active(of: user, except: id).contains { installs[$0]?.device.kind == .phone }
        installs[id] = row
        installs[id]?.user = user
        installs[id]?.isOpen = false
        installs[id]?.since = nil
        installs[id]?.took = []
        installs[id]?.changes += 1
        installs[id]?.activity = staysBehind ? .standby : .active
        // Who waits may still get back what was taken from it.
        for (other, taker) in installs where staysBehind {
            for (place, lost) in taker.took.enumerated() where lost.id == id && lost.changes == row.changes {
                installs[other]?.took[place].changes += 1
            }
        }
        for loser in holders(of: user, except: id) where !staysBehind {
            let before = installs[loser]?.activity ?? .none
            installs[loser]?.activity = .deactivated
            installs[loser]?.changes += 1
            let changes = installs[loser]?.changes ?? 0
            installs[id]?.took.append(Taken(id: loser, changes: changes, before: before))
        }
    }

    /// Those that are active, or would be when they are enabled.
    private func holders(of user: UserID, except id: InstallID) -> [InstallID] {
        installs.filter { $0.value.user == user && [.active, .suspended].contains($0.value.activity) && $0.key != id }
            .map(\.key).sorted()
    }

    /// Off the install, and after a failed creation as if it had never been on it.
    private mutating func detach(_ command: DetachInstall) -> ReasonCode? {
        let id = command.installId
        guard let row = installs[id] else { return unknown(id) }
        guard let user = row.user else {
            if row.status == .deleted { return .installDeleted }
            installs[id]?.isOpen = false
            return nil
        }
        if persons[user]?.birthplace == id { persons[user]?.birthplace = nil }
        installs[id] = InstallRow(
            app: row.app, device: row.device, status: row.status, closed: row.closed, changes: row.changes + 1)
        guard command.cause == .creationFailed else { return nil }
        var isTaken = false
        for (other, taker) in installs {
            guard let place = taker.took.firstIndex(where: { $0.id == id && $0.changes == row.changes }) else {
                continue
            }
            isTaken = true
            installs[other]?.took.replaceSubrange(place...place, with: row.took)
        }
        if let current = holders(of: user, except: id).first {
            let left = row.took.filter { installs[$0.id]?.user == user && installs[$0.id]?.changes == $0.changes }
            if !isTaken { installs[current]?.took += left }
            return nil
        }
        for taken in row.took where installs[taken.id]?.user == user && installs[taken.id]?.changes == taken.changes {
            installs[taken.id]?.activity = taken.before
            installs[taken.id]?.changes += 1
            if taken.before == .active { break }
        }
        return nil
    }

    // MARK: Support

    private func owner(of externalID: ExternalID) -> UserID? {
        persons.first { $0.value.app == app && $0.value.externalID == externalID }?.key
    }

    /// Whether nobody has an external id and it is kept for who had it.
    func keeps(_ externalID: ExternalID, in app: AppID) -> Bool {
        holds[app]?[externalID] != nil
            && !persons.values.contains { $0.app == app && $0.externalID == externalID }
    }

    /// What the person is on its installs has changed.
    private mutating func stir(_ user: UserID, but others: [InstallID] = [], since: Int64? = nil) {
        for (id, row) in installs where row.user == user && !others.contains(id) {
            installs[id]?.changes += 1
            installs[id]?.since = since
            // It may still be owed its person.
            for (other, taker) in installs {
                for (place, lost) in taker.took.enumerated() where lost.id == id && lost.changes == row.changes {
                    installs[other]?.took[place].changes += 1
                }
            }
        }
    }

    private mutating func makeActive(_ id: InstallID) -> ReasonCode? {
        guard let row = installs[id] else { return unknown(id) }
        if let refusal = refusal(of: row) { return refusal }
        guard let user = row.user else { return .noUser }
        if row.activity != .active { installs[id]?.changes += 1 }
        installs[id]?.activity = .active
        if row.activity != .active { installs[id]?.took = [] }
        for loser in holders(of: user, except: id) {
            let before = installs[loser]?.activity ?? .none
            installs[loser]?.activity = .deactivated
            installs[loser]?.changes += 1
            let changes = installs[loser]?.changes ?? 0
            installs[id]?.took.append(Taken(id: loser, changes: changes, before: before))
        }
        return nil
    }

    private mutating func unlink(_ user: UserID, _ app: AppID) -> ReasonCode? {
        guard persons[user]?.app == app else { return .userNotFound }
        guard let externalID = persons[user]?.externalID else { return nil }
        persons[user]?.externalID = nil
        persons[user]?.barred.insert(externalID)
        stir(user, since: made)
        return nil
    }

    private mutating func rename(_ command: ChangeExternalID, _ app: AppSettings) -> ReasonCode? {
        if let refusal = Self.refusal(of: command.newExternalId, app) { return refusal }
        guard let old = command.externalId, let user = owner(of: old) else { return .userNotFound }
        let new = command.newExternalId
        if old == new { return nil }
        let held = holds[app.id]?[new]
        if owner(of: new) != nil || held != nil && held != user { return .externalIDTaken }
        persons[user]?.externalID = new
        persons[user]?.barred.remove(new)
        holds[app.id, default: [:]][old] = user
        holds[app.id]?[new] = nil
        return nil
    }

    // MARK: The rest

    private mutating func register(_ command: RegisterInstall, _ app: AppSettings, _ now: Int64) -> ReasonCode? {
        let known = installs[command.installId]
        if let refusal = known.flatMap({ refusal(of: $0) }) { return refusal }
        if command.user == .new, known?.user != nil { return .userAlreadyExists }
        var row = known ?? InstallRow(app: app.id, device: command.device)
        row.device = command.device
        if command.user == .new, row.user == nil {
            row.user = newPerson(app.id, on: command.installId)
            row.activity = .active
            row.changes += 1
        }
        if command.user == .new || row.user == nil { row.since = now }
        row.isOpen = row.user == nil
        installs[command.installId] = row
        return nil
    }

    private mutating func set(_ status: InstallStatus, of id: InstallID, _ app: AppSettings) -> ReasonCode? {
        guard let row = installs[id] else { return unknown(id) }
        if row.status == status { return nil }
        if row.status == .deleted { return .installDeleted }
        installs[id]?.status = status
        installs[id]?.changes += 1
        switch (row.activity, status) {
        case (.active, .disabled): installs[id]?.activity = .suspended
        case (.active, .deleted), (.suspended, .deleted): installs[id]?.activity = .deactivated
        case (.suspended, .enabled):
            let isAlone = row.user.map { active(of: $0, except: id).isEmpty } ?? true
            installs[id]?.activity = isAlone ? .active : .deactivated
        default: break
        }
        return nil
    }
}
