// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// What is asked without moving anything.
extension SyncDecider {
    /// S45.
    func search(_ request: SyncRequest) throws(Rejection) -> Decision {
        let given = request.identities
        guard !given.isEmpty else { throw Rejection(.lookupError) }
        try requireVouching(for: given.map(\.type))
        var draft = Draft(state, context, .identify)
        let identities = try draft.sift(given, ignoringLogins: false)
        guard !identities.isEmpty else { return draft.nothingNamed }
        var device = draft.device(request.deviceId)
        try draft.throttle(&device)
        // What nobody has needs no row: whoever tries values is held up by the device (S66).
        try draft.throttle(identities.filter { !draft.holders(of: $0).isEmpty })
        if device.bucket != nil { draft.put(device) }
        let resolver = resolver(draft, device)
        // Not thrown: the buckets stay emptied.
        guard let match = resolver.search(identities) else {
            return draft.decision(.rejected(Rejection(.notFoundError)))
        }
        let profile = match.profile
        return draft.decision(
            .succeeded(
                SyncResult(
                    mpid: profile.mpid, isLoggedIn: profile.isKnown(settings),
                    isEphemeral: profile.isEphemeral(settings),
                    matchedIdentities: profile.matched(identities, settings),
                    // S11
                    previousMismatch: request.previousMPID.map { $0 != device.current }, context: request.context,
                    isRestricted: profile.isRestricted ? true : nil, rule: match.rule)))
    }

    /// S120.
    func profile(_ query: GetProfile) throws(Rejection) -> Decision {
        let profile = try found(query)
        return Decision(.succeeded(result(profile, after: try pages(of: profile).end(query.after))))
    }

    private func pages(of profile: Profile) -> Paging {
        Paging(context, [GetProfile.type, profile.mpid.description])
    }

    func found(_ query: GetProfile) throws(Rejection) -> Profile {
        if let mpid = query.mpid {
            guard let profile = state.profile(app, mpid) else { throw Rejection(.notFoundError) }
            return profile
        }
        guard let identity = query.named else { throw Rejection(.notFoundError) }
        guard !settings.nobody.contains(identity.value.text) else { throw Self.namesNobody(identity.type) }
        let draft = Draft(state, context, .identify)
        let meant = Resolver(settings: settings, index: draft).meant(by: [identity])
        let others = Set(draft.holders(of: identity)).subtracting(meant.map(\.mpid))
        let holders = IdentityHolders(count: meant.count, heldByOthers: others.count)
        guard let profile = meant.first else { throw Rejection(.notFoundError).carrying(holders) }
        guard meant.count == 1 else {
            throw Rejection(.ambiguousIdentity, "The identity leads to \(meant.count) profiles. Name one by mpid.")
                .carrying(holders)
        }
        return profile
    }

    /// What is known of a person, without the barriers, which name others (S216).
    func ownData(_ profile: Profile) -> ProfileResult {
        var data = result(profile, after: nil, Self.devicesOfOwnData)
        (data.barriers, data.barrierCount) = ([], 0)
        return data
    }

    private func result(
        _ profile: Profile, after end: PageEnd?, _ most: Int = devicesInPage
    ) -> ProfileResult {
        let devices = seen(profile)
        let sources = Set(profile.aliasedFrom)
        let left = devices.filter { device in end.map { $0.isBefore(device.pageEnd) } ?? true }
        let page = left.prefix(most)
        return ProfileResult(
            mpid: profile.mpid, identities: told(profile.identities), identityCount: profile.identities.count,
            isLoggedIn: profile.isKnown(settings), firstSeen: Timestamp(milliseconds: profile.firstSeen),
            lastSeen: Timestamp(milliseconds: profile.lastSeen),
            aliasedSince: profile.aliasedSince.map(Timestamp.init(milliseconds:)),
            aliasedFrom: Array(sources.sorted().prefix(Self.sourcesTold)),
            aliasedFromCount: sources.count, name: profile.name, userId: profile.mark?.userID,
            devices: Array(page), deviceCount: devices.count,
            next: left.count > page.count ? page.last.flatMap { pages(of: profile).next($0.pageEnd) } : nil,
            barriers: told(profile.barriers), barrierCount: profile.barriers.count, isRestricted: profile.isRestricted,
            isOrphaned: profile.isOrphaned, isErased: profile.isErased)
    }

    /// The devices whose user it is, or the anonymous one, the one on which it was seen last first.
    private func seen(_ profile: Profile) -> [ProfileResult.Device] {
        state.devices.values.compactMap { device -> ProfileResult.Device? in
            guard device.key.app == app, device.current == profile.mpid || device.anonymous == profile.mpid,
                let user = device.users.first(where: { $0.mpid == profile.mpid })
            else { return nil }
            return ProfileResult.Device(
                deviceId: device.key.id, isCurrent: device.current == profile.mpid,
                firstSeen: Timestamp(milliseconds: user.firstSeen), lastSeen: Timestamp(milliseconds: user.lastSeen))
        }.sorted { $0.pageEnd.isBefore($1.pageEnd) }
    }

    /// What fits into an answer: of very many values the latest.
    private func told(_ identities: [Identity]) -> [IdentityType.RawValue: [String]] {
        let latest = Self.latest(identities, bytes: Self.bytesOfIdentities) { $0 }
        return Dictionary(grouping: latest, by: \.type.rawValue).mapValues { $0.map(\.value.text) }
    }

    /// The latest.
    func told(_ barriers: [Barrier]) -> [MergeBarrier] {
        Self.latest(barriers.suffix(Self.barriersTold), bytes: Self.bytesOfBarriers, \.identity).map(\.told)
    }

    /// - Parameter bytes: as many may the values have.
    private static func latest<Element>(
        _ elements: some BidirectionalCollection<Element>, bytes: Int, _ identity: (Element) -> Identity
    ) -> [Element] {
        var room = bytes
        let latest = elements.reversed().prefix { element in
            room -= identity(element).value.text.utf8.count
            return room >= 0
        }
        return latest.reversed()
    }

    static let devicesInPage = 100
    /// All that anybody has: an answer has room for some 4,000.
    static let devicesOfOwnData = 2000
    static let sourcesTold = 1000
    static let barriersTold = 100
    /// With two bytes for one where a letter has to be escaped, an answer stays below 256 KiB.
    static let bytesOfIdentities = 48_000
    static let bytesOfBarriers = 12_000

    /// S71.
    func users(_ command: GetDeviceUsers) throws(Rejection) -> Decision {
        try requireVouching()
        let device = state.device(app, command.deviceId)
        let users = device.users.compactMap { user -> DeviceUsersResult.User? in
            guard let profile = state.profile(app, user.mpid), !profile.isErased else { return nil }
            let firstSeen = min(user.firstSeen, profile.aliasedSince ?? user.firstSeen)
            return DeviceUsersResult.User(
                mpid: user.mpid, firstSeen: Timestamp(milliseconds: firstSeen),
                lastSeen: Timestamp(milliseconds: user.lastSeen), isLoggedIn: profile.isKnown(settings),
                isCurrent: user.mpid == device.current, name: profile.name,
                identities: Dictionary(grouping: profile.identities, by: \.type.rawValue).mapValues {
                    $0.map(\.value.text)
                })
        }
        return Decision(.succeeded(DeviceUsersResult(deviceId: command.deviceId, users: users)))
    }
}

extension ProfileResult.Device {
    /// Where a page ends behind this device.
    fileprivate var pageEnd: PageEnd { PageEnd(time: lastSeen.milliseconds, id: deviceId.text) }
}
