// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

/// Who comes from another system, in the naive model: each of a list for itself, one after the other.
extension NaiveLinkModel {
    private enum Verdict {
        case no(ImportConflict)
        case same
        case new
        case more
    }

    mutating func bring(_ list: ImportUsers, linkingIsOn: Bool) -> Told {
        let named = list.users.contains { if case .read(let user) = $0 { user.externalId != nil } else { false } }
        if named, !linkingIsOn { return (.rejected(.userLinkingNotConfigured), []) }
        var events: [AnyHashable] = []
        let results = list.users.enumerated().map { index, element -> ImportResult.Element in
            guard case .read(let user) = element, Self.isWhole(user) else {
                return .init(index: index, outcome: .invalid)
            }
            switch verdict(on: user, mayAdd: list.upsert == true) {
            case .no(let reason): return .init(index: index, outcome: .conflict, reason: reason)
            case .same: return .init(index: index, outcome: .same)
            case .new:
                persons[user.userId] = PersonRow(
                    app: app, externalID: user.externalId, named: user.externalId == nil ? nil : moment,
                    created: user.createdAt?.milliseconds ?? moment)
                events += settle(user, isNew: true)
                return .init(index: index, outcome: .created)
            case .more:
                events += settle(user, isNew: false)
                return .init(index: index, outcome: .changed)
            }
        }
        return (.imported(results), list.events == false ? [] : events)
    }

    private static func isWhole(_ user: ImportedUser) -> Bool {
        let mine = user.installs ?? []
        if user.externalId == nil, mine.count > 1 || mine.contains(where: { $0.isActive == false }) { return false }
        return user.userId.text.count == 24 && Set(mine.map(\.installId)).count == mine.count
    }

    private func verdict(on user: ImportedUser, mayAdd: Bool) -> Verdict {
        let mine = user.installs ?? []
        if let name = user.externalId, Self.isBad(name) { return .no(.valueNamesNobody) }
        if let born = user.createdAt?.milliseconds, born - now > 3_600_000 { return .no(.badTime) }
        if mine.filter({ $0.isActive == true }).count > 1 { return .no(.twoActiveInstalls) }
        let unknown = mine.filter { installs[$0.installId] == nil }
        guard let person = persons[user.userId] else {
            if let name = user.externalId, owner(of: name, app) != nil || isHeld(name) { return .no(.externalIDTaken) }
            return unknown.count < mine.count && !mayAdd ? .no(.installTaken) : .new
        }
        if person.app != app { return .no(.userIDTaken) }
        if person.isErased { return .no(.userErased) }
        if elements[user.userId] == user { return .same }
        let isThere = mine.allSatisfy { installs[$0.installId]?.user == user.userId }
        if isThere, user.externalId == person.externalID { return .same }
        if !mayAdd { return .no(.differs) }
        if let name = user.externalId, name != person.externalID { return .no(.immutable) }
        let count = installs.values.filter { $0.user == user.userId }.count + unknown.count
        if person.externalID == nil, count > 1 { return .no(.limitExceeded) }
        return unknown.isEmpty ? .same : .more
    }

    /// Puts the person on the installs of which nobody knew.
    private mutating func settle(_ user: ImportedUser, isNew: Bool) -> [AnyHashable] {
        // Of who grew here and is added to, nobody keeps by what.
        if isNew || elements[user.userId] != nil { elements[user.userId] = user }
        let person = persons[user.userId]
        let before = installs.filter { $0.value.user == user.userId }.keys.sorted()
        let fresh = (user.installs ?? []).filter { installs[$0.installId] == nil }
        let only = user.installs?.count == 1
        let winner = before.isEmpty ? fresh.first { $0.isActive ?? only }?.installId : nil
        for one in fresh {
            var row = InstallRow(app: app, device: one.device)
            row.status = one.status ?? .enabled
            row.user = user.userId
            row.arrived = moment
            row.version = 1
            row.isBrought = person?.externalID == nil
            if row.isBrought { row.since = moment }
            row.activity = .deactivated
            if one.installId == winner, row.status == .enabled { row.activity = .active }
            if one.installId == winner, row.status == .disabled { row.activity = .suspended }
            installs[one.installId] = row
        }
        let all = before + fresh.map(\.installId)
        let active = all.first { installs[$0]?.activity == .active }
        for one in fresh where one.installId != winner && one.device.kind == .tablet {
            if active.flatMap({ installs[$0]?.device.kind }) == .phone { installs[one.installId]?.activity = .standby }
        }
        return fresh.enumerated().map { place, one in
            guard let name = person?.externalID else {
                return InstallRegistered(
                    installId: one.installId, device: one.device, userId: user.userId, cause: .importing)
            }
            return Linked(
                installId: one.installId, externalId: name, userId: user.userId, personCreated: isNew && place == 0,
                activeInstallId: isFrozen(user.userId) ? nil : active, deactivatedInstallIds: [], version: 1,
                linkedAt: person?.named.map(Timestamp.init(milliseconds:)), cause: .importing)
        }
    }
}
