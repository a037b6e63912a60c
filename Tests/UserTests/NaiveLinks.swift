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
    }

    struct PersonRow {
        var app: AppID
        var externalID: ExternalID?
        /// Where it came to life, until it is taken off there.
        var birthplace: InstallID?
    }

    private(set) var installs: [InstallID: InstallRow] = [:]
    private(set) var persons: [UserID: PersonRow] = [:]
    private var count = 1000

    /// - Returns: why it was refused; nil when it was done.
    mutating func run(_ command: LinkCommand, _ app: AppSettings) -> ReasonCode? {
        switch command {
        case .request(let request):
            if let refusal = Self.refusal(of: request.externalId, app) { return refusal }  // L3, L4
            guard let row = installs[request.installId] else { return .installNotFound }  // L5
            if let refusal = refusal(of: row, app) { return refusal }  // L6, L7
            if row.user == nil, !row.isOpen { return .noLinkingInProgress }  // L7a
            return link(request.installId, row, request.externalId)
        case .establish(let command):
            if let refusal = Self.refusal(of: command.externalId, app) { return refusal }
            let known = installs[command.installId]
            if let refusal = known.flatMap({ refusal(of: $0, app) }) { return refusal }
            if command.mode == .linkExistingUser, known?.user == nil { return .userNotFound }
            var row = known ?? InstallRow(app: app.id, device: command.device)
            row.device = command.device
            return link(command.installId, row, command.externalId)
        case .registerInstall(let command): return register(command, app)
        case .detachInstall(let command):
            guard let row = installs[command.installId] else { return .installNotFound }
            if row.app != app.id { return .installDoesNotBelongToApp }
            if row.status == .deleted { return .installDeleted }
            if let user = row.user, persons[user]?.birthplace == command.installId { persons[user]?.birthplace = nil }
            installs[command.installId] = InstallRow(app: row.app, device: row.device, status: row.status)
            return nil
        case .setInstallStatus(let command): return set(command.status, of: command.installId, app)
        case .eraseUser(let command):
            guard persons[command.userId]?.app == app.id else { return .userNotFound }
            persons[command.userId]?.externalID = nil
            for (id, row) in installs where row.user == command.userId {
                installs[id] = InstallRow(app: row.app, device: row.device, status: .deleted)
            }
            return nil
        case .query, .forget, .answered: preconditionFailure("no model of \(command)")
        }
    }

    private static func refusal(of externalID: ExternalID, _ app: AppSettings) -> ReasonCode? {
        // Of all that may not be an external id, the tests send this one.
        if externalID == "null" { return .invalidRequest }
        return app.linking.isEnabled ? nil : .userLinkingNotConfigured
    }

    private func refusal(of row: InstallRow, _ app: AppSettings) -> ReasonCode? {
        if row.app != app.id { return .installDoesNotBelongToApp }
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

    private mutating func link(_ id: InstallID, _ row: InstallRow, _ externalID: ExternalID) -> ReasonCode? {
        let owner = persons.first { $0.value.app == row.app && $0.value.externalID == externalID }?.key
        guard let user = row.user else {
            give(id, row, to: owner ?? newPerson(row.app, on: id, externalID))  // L11, L12, L13
            return nil
        }
        guard let mine = persons[user]?.externalID else {
            if owner != nil { return .cannotLinkExistingPersonToOtherPerson }  // L15
            persons[user]?.externalID = externalID  // L14
            give(id, row, to: user)
            return nil
        }
        if mine != externalID { return .installLinkedToOtherUser }  // L8
        switch row.activity {
        case .deactivated: return .installDeactivated  // L10
        case .standby: give(id, row, to: user)
        default: installs[id] = row  // L9
        }
        return nil
    }

    /// The newest install is the active one, but for a tablet beside a phone.
    private mutating func give(_ id: InstallID, _ row: InstallRow, to user: UserID) {
        let losers = active(of: user, except: id)
        let staysBehind = row.device.kind == .tablet && losers.contains { installs[$0]?.device.kind == .phone }
        installs[id] = row
        installs[id]?.user = user
        installs[id]?.isOpen = false
        installs[id]?.activity = staysBehind ? .standby : .active
        for loser in losers where !staysBehind { installs[loser]?.activity = .deactivated }
    }

    // MARK: The rest

    private mutating func register(_ command: RegisterInstall, _ app: AppSettings) -> ReasonCode? {
        let known = installs[command.installId]
        if let refusal = known.flatMap({ refusal(of: $0, app) }) { return refusal }
        var row = known ?? InstallRow(app: app.id, device: command.device)
        row.device = command.device
        if command.user == .new, row.user == nil {
            row.user = newPerson(app.id, on: command.installId)
            row.activity = .active
        }
        row.isOpen = row.user == nil
        installs[command.installId] = row
        return nil
    }

    private mutating func set(_ status: InstallStatus, of id: InstallID, _ app: AppSettings) -> ReasonCode? {
        guard let row = installs[id] else { return .installNotFound }
        if row.app != app.id { return .installDoesNotBelongToApp }
        if row.status == status { return nil }
        if row.status == .deleted { return .installDeleted }
        installs[id]?.status = status
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
