// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Sync

/// What the events of a decision must tell, by nothing but what the naive model had before and has afterwards.
struct ToldEvents {
    var before: NaiveSyncModel
    var after: NaiveSyncModel
    var cause: SyncCause?
    /// The rule of the reply, where there is one.
    var rule: SyncRule?
    var trace: Comment

    func check(_ events: [any EventMessage]) throws {
        let changes = events.compactMap { $0 as? IdentitiesChanged }
        try created(events.compactMap { $0 as? ProfileCreated }, changes)
        for person in before.people { try changed(person, changes.filter { $0.mpid == person.mpid }) }
        try orphaned(events.compactMap { $0 as? ProfileOrphaned }, changes)
        let erased = events.compactMap { ($0 as? ProfileErased)?.mpid }
        try #require(
            erased.sorted() == newly { $0.isErased }.map(\.mpid).sorted() && Set(erased).count == erased.count, trace)
        try devices(events)
        try #require(
            events.filter { $0 is Aliased || $0 is AliasDropped }.map { AnyHashable($0) }
                == Array(after.toldOfAliases.dropFirst(before.toldOfAliases.count)), trace)
        for event in events {
            let told: SyncCause? =
                switch event {
                case let event as ProfileCreated: event.cause
                case let event as IdentitiesChanged: event.cause
                case let event as ProfileOrphaned: event.cause
                case let event as ProfileErased: event.cause
                case let event as CurrentUserChanged: event.cause
                case let event as CurrentUserErased: event.cause
                default: cause
                }
            try #require(told == cause, trace)
        }
    }

    /// Those that were there, and are so now only.
    private func newly(_ isSo: (NaiveSyncModel.Person) -> Bool) -> [NaiveSyncModel.Person] {
        before.people.filter { old in !isSo(old) && after.person(old.mpid).map(isSo) == true }
    }

    private func created(_ events: [ProfileCreated], _ changes: [IdentitiesChanged]) throws {
        let new = after.people.filter { before.person($0.mpid) == nil }
        try #require(events.map(\.mpid) == new.map(\.mpid), trace)
        for (event, person) in zip(events, new) {
            try #require(event.identities == person.ids && event.isLoggedIn == after.isKnown(person), trace)
            try #require(rule == nil || event.rule == rule, trace)
            try #require(!changes.contains { $0.mpid == person.mpid }, trace)
        }
    }

    /// Added up, the events lead from what the person had to what it has.
    private func changed(_ old: NaiveSyncModel.Person, _ events: [IdentitiesChanged]) throws {
        guard let new = after.person(old.mpid) else { return }
        var count: [Identity: Int] = [:]
        if !new.isErased {
            for identity in new.ids { count[identity, default: 0] += 1 }
            for identity in old.ids { count[identity, default: 0] -= 1 }
        }
        for event in events {
            for identity in event.added { count[identity, default: 0] -= 1 }
            for identity in event.removed { count[identity, default: 0] += 1 }
            try #require(event.isLoggedIn == after.isKnown(new) && !(event.added + event.removed).isEmpty, trace)
        }
        try #require(count.values.allSatisfy { $0 == 0 }, trace)
    }

    private func orphaned(_ events: [ProfileOrphaned], _ changes: [IdentitiesChanged]) throws {
        let new = newly { $0.isOrphan }.filter { after.person($0.mpid)?.isErased == false }
        try #require(events.map(\.mpid).sorted() == new.map(\.mpid).sorted(), trace)
        for event in events {
            let isTaken = changes.contains { $0.mpid == event.mpid && $0.reason == .taken }
            try #require((event.takenBy != nil) == isTaken, trace)
            guard let heir = event.takenBy, let lost = before.person(event.mpid)?.ids else { continue }
            let has = (after.person(heir)?.ids ?? []).map { after.settings.folded($0) }
            // A later change of the same modify may give the value up again.
            try #require(lost.contains { has.contains(after.settings.folded($0)) } || cause == .modify, trace)
        }
    }

    private func devices(_ events: [any EventMessage]) throws {
        let changes = events.compactMap { $0 as? CurrentUserChanged }
        try #require(Set(changes.map(\.deviceId)).count == changes.count, trace)
        for event in changes {
            let (old, new) = (before.devices[event.deviceId]?.current, after.devices[event.deviceId]?.current)
            try #require(event.previousMPID == old && event.mpid == new, trace)
            let person = try #require(after.person(event.mpid), trace)
            try #require(event.isLoggedIn == after.isKnown(person), trace)
            try #require(event.isEphemeral == after.isEphemeral(person), trace)
            try #require(rule == nil || event.rule == rule, trace)
            try #require(old != new || isSwitched(event.mpid), "\(trace): nothing changed")
        }
        let told = Set(changes.map(\.deviceId))
        let erased = events.compactMap { $0 as? CurrentUserErased }
        for (id, device) in before.devices.merging(after.devices, uniquingKeysWith: { $1 }) {
            let (old, new) = (before.devices[id]?.current, device.current)
            if let new, old != new { try #require(told.contains(id), trace) }
            if let new, cause == .modify, isSwitched(new) { try #require(told.contains(id), trace) }
            let wasErased = old.flatMap { after.person($0) }?.isErased == true && after.devices[id]?.current == nil
            try #require(erased.contains { $0.deviceId == id && $0.mpid == old } == wasErased, trace)
        }
    }

    /// Whether the person became known, or anonymous.
    private func isSwitched(_ mpid: MPID) -> Bool {
        guard let old = before.person(mpid), let new = after.person(mpid) else { return false }
        return before.isKnown(old) != after.isKnown(new)
    }
}

extension SyncCommand {
    /// What its events name as their cause.
    var toldCause: SyncCause? {
        switch self {
        case .move(let operation, _): operation.cause
        case .modify: .modify
        case .erase: .erase
        case .forget: .forget
        case .linked: .link
        case .search, .alias, .applyAlias, .getUsers, .answered: nil
        }
    }
}
