// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// Who may name people in an app that enforces verification (docs/sync.md "Who may name people"); what an SDK's key is left
/// with stands in V59, what becomes of people stored before in V60.
extension SyncDecider {
    var enforces: Bool { context.app.verification.mode == .enforce }

    /// S76.
    var isVoucher: Bool { context.principal.isVoucher }

    /// S47. Where verification is enforced, a device's word about its user is worth nothing.
    var mayVouch: Bool { !enforces || isVoucher }

    /// - Throws: `VERIFICATION_REQUIRED`, unless the sender may vouch.
    func requireVouching() throws(Rejection) {
        guard mayVouch else { throw Rejection(.verificationRequired) }
    }

    /// Of a repair: nobody logs in.
    func requireVouchingKey() throws(Rejection) {
        guard mayVouch else {
            throw Rejection(
                .verificationRequired, "This app verifies its users: the key needs the scope identity.vouch too.")
        }
    }

    /// S48.
    /// - Throws: `VERIFICATION_REQUIRED`, unless only a device is named or the sender may vouch.
    func requireVouching(for types: some Sequence<IdentityType>) throws(Rejection) {
        if types.contains(where: { !$0.isDevice }) { try requireVouching() }
    }

    /// S73. Nothing tells who vouched for what an anonymous profile holds. A person takes one over only when it can be
    /// nobody else's: the own device's, which is on no other device, with nothing but devices' identities and the person's.
    /// - Parameter device: as it was before.
    func mayTakeOver(_ profile: Profile, naming identities: [Identity], on device: DeviceRecord) -> Bool {
        guard enforces, !profile.isKnown(settings), identities.contains(where: { !$0.type.isDevice }) else {
            return true
        }
        let isOwn = device.current == profile.mpid || device.anonymous == profile.mpid
        let isElsewhere = state.devices.values.contains {
            $0.key.app == app && $0.key != device.key && $0.current == profile.mpid
        }
        let named = Set(identities.map { key($0) })
        return isOwn && !isElsewhere
            && profile.identities.allSatisfy { $0.type.isDevice || named.contains(key($0)) }
    }

    private func key(_ identity: Identity) -> IdentityEntry.Key {
        IdentityEntry.Key(app: app, identity, settings)
    }
}
