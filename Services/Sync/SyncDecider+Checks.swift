// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

extension SyncDecider {
    // MARK: Who may say who is who

    /// In an app that enforces verification, login identities are the word of the verification service or of the app's
    /// backend; a device's own word is worth nothing.
    func mayVouch(_ context: DecisionContext) -> Bool {
        context.app.verification.mode != .enforce || context.principal.kind == .service
            || context.principal.scopes.contains(.identityVouch)
    }

    /// - Throws: `VERIFICATION_REQUIRED`.
    func requireVouching(for identities: [Identity], _ context: DecisionContext) throws(Rejection) {
        guard !context.app.sync.logins(identities).isEmpty, !mayVouch(context) else { return }
        throw Rejection(.verificationRequired)
    }

    // MARK: Values that name nobody

    /// The identities that may be somebody's. Of the others a login identity refuses the command, since its sender means
    /// a person; any other is passed over, since a device cannot help what its system gives out.
    /// - Parameter ignoringLogins: a logout looks at no login identity.
    /// - Throws: `VALIDATION_ERROR`.
    func sift(
        _ identities: [Identity], ignoringLogins: Bool, _ settings: SyncSettings
    ) throws(Rejection) -> ([Identity], [SyncState.Change]) {
        var named: [Identity] = []
        var ignored: [SyncState.Change] = []
        for identity in identities {
            let isLogin = settings.loginIdentities.contains(identity.type)
            if isLogin && ignoringLogins || !settings.nobody.contains(identity.value) {
                named.append(identity)
            } else if isLogin {
                throw Self.namesNobody(identity.type)
            } else {
                ignored.append(.ignored(identity.type))
            }
        }
        return (named, ignored)
    }

    static func namesNobody(_ type: IdentityType) -> Rejection {
        Rejection(.validationError, "The value of \(type.rawValue) names nobody.")
    }

    /// The answer when nothing is left after `sift`.
    static func nothingNamed(_ ignored: [SyncState.Change]) -> Decision {
        Decision(.rejected(Rejection(.lookupError, "knownIdentities names nobody.")), changes: ignored)
    }

    // MARK: Erased profiles

    /// The command made a profile once that was erased since: it is old, and comes again from a log.
    /// - Throws: `PROFILE_ERASED`.
    func refuseErased(_ state: SyncState, _ context: DecisionContext) throws(Rejection) {
        var counter = 0
        while let profile = state.profile(context.app.id, context.newMPID(counter)) {
            if profile.isErased { throw Rejection(.profileErased) }
            counter += 1
        }
    }
}
