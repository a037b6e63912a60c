// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

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
                    rule: match.rule)))
    }

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
