// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// What the naive model answers.
extension NaiveSyncModel {
    func result(
        _ profile: Person, _ ids: [Identity], _ previous: MPID?, _ request: SyncRequest, _ rule: SyncRule,
        isSearch: Bool = false
    ) -> SyncResult {
        let counting = isKnown(profile) ? settings.loginIdentities : Set(settings.priority)
        let matched = ids.filter { id in counting.contains(id.type) && profile.ids.contains { same($0, id) } }
        return SyncResult(
            mpid: profile.mpid, previousMPID: isSearch ? nil : previous, isLoggedIn: isKnown(profile),
            isEphemeral: isEphemeral(profile),
            matchedIdentities: Dictionary(uniqueKeysWithValues: matched.map { ($0.type.rawValue, $0.value.text) }),
            previousMismatch: request.previousMPID.map { $0 != previous }, context: request.context,
            isRestricted: profile.isFrozen ? true : nil, rule: rule)
    }

    func isEphemeral(_ profile: Person) -> Bool {
        settings.strategy != .userIDThenEmail && profile.ids.allSatisfy { !settings.priority.contains($0.type) }
    }

    mutating func search(_ request: SyncRequest, now: Int64) throws(Refusal) -> SyncResult {
        if sent(request).isEmpty { throw Refusal(reason: .lookupError) }
        let ids = try usable(sent(request), leaving: false)
        try takeTokens(request.deviceId, ids, now: now)
        let current = devices[DeviceID(request.deviceId.text)]?.current
        let needed = settings.immutableIdentities
        if !needed.isEmpty, !settings.searchByAnyIdentity, !ids.contains(where: { needed.contains($0.type) }) {
            throw Refusal(reason: .notFoundError)
        }
        var found = settings.strategy == .userIDThenEmail ? findPerson(ids) : find(ids, current: current)
        if found == nil, settings.strategy == .userIDThenEmail {
            found = find(ids.filter { !settings.loginIdentities.contains($0.type) }, current: current)
        }
        guard let found, let profile = person(found.0) else { throw Refusal(reason: .notFoundError) }
        return result(profile, ids, current, request, found.1, isSearch: true)
    }

    func users(_ id: DeviceID) throws(Refusal) -> DeviceUsersResult {
        if !isBelieved { throw Refusal(reason: .verificationRequired) }
        let users = (devices[id]?.users ?? []).compactMap { seen -> DeviceUsersResult.User? in
            guard let person = person(seen.mpid), !person.isErased else { return nil }
            var identities: [String: [String]] = [:]
            for id in person.ids { identities[id.type.rawValue, default: []].append(id.value.text) }
            return DeviceUsersResult.User(
                mpid: seen.mpid, firstSeen: Timestamp(milliseconds: min(seen.first, person.since ?? .max)),
                lastSeen: Timestamp(milliseconds: seen.last), isLoggedIn: isKnown(person),
                isCurrent: devices[id]?.current == seen.mpid, name: person.name, identities: identities)
        }
        return DeviceUsersResult(deviceId: id, users: users)
    }
}
