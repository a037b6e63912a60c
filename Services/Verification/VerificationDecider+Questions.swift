// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage

/// What is asked without changing anything, but for what has to end anyway.
extension VerificationDecider {
    static func show(_ command: GetSession, _ state: SessionState, _ context: DecisionContext) -> Decision {
        let (session, told) = reviewed(command.deviceId, state, context)
        let isVerified = session.state == .verified
        let result = SessionResult(
            deviceId: session.deviceID, state: session.state, mayFileIssues: session.mayFileIssues,
            hasLogin: session.hasLogin, mpid: session.mpid, keyId: isVerified ? session.standing?.keyID : nil,
            verifiedAt: isVerified ? session.standing?.since.flatMap(Self.instant) : nil)
        return Decision(.succeeded(result), changes: changes(session, state, context), events: told)
    }

    static func review(_ command: ReviewSession, _ state: SessionState, _ context: DecisionContext) -> Decision {
        let (session, told) = reviewed(command.deviceId, state, context)
        return Decision(.noted, changes: changes(session, state, context), events: told)
    }

    /// A device that is not known stays so, and what is as it was is not written.
    private static func changes(
        _ session: Session, _ state: SessionState, _ context: DecisionContext
    ) -> [SessionState.Change] {
        let before = state.session(app: context.app.id, deviceID: session.deviceID)
        return before == nil || before == session ? [] : [.session(session)]
    }

    /// Sessions from before the time was kept have the beginning of 1970.
    private static func instant(_ time: Timestamp) -> String? { time.milliseconds > 0 ? time.rfc3339 : nil }

    static func answer(_ check: VerificationCheck, _ context: DecisionContext) -> Decision {
        let settings = context.app.verification
        switch Claimant(
            userID: check.userId, email: check.userEmail, fullPrivacy: settings.fullPrivacy, nobody: settings.nobody)
        {
        case .anonymous(let reason):
            let result = VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)
            return Decision(.succeeded(result))
        case .user(let identifiers):
            let verdict = AuthToken.verify(
                check.userAuthToken, of: identifiers, settings, fullPrivacy: settings.fullPrivacy, now: context.now)
            return switch verdict {
            case .valid(let keyID):
                Decision(.succeeded(VerificationResult(state: .verified, mayFileIssues: true, keyId: keyID)))
            case .notProvided: Decision(.rejected(Rejection(.authTokenNotProvided).carrying(Self.unverified)))
            case .invalid: Decision(.rejected(Rejection(.invalidAuthToken).carrying(Self.unverified)))
            }
        }
    }

    static func report(_ state: SessionState, _ context: DecisionContext) -> Decision {
        let counts = state.usage(app: context.app.id).sorted { $0.key.order.lexicographicallyPrecedes($1.key.order) }
            .map { tally, count in
                VerificationUsageResult.Count(
                    method: tally.method, keyId: tally.keyID, reason: tally.reason, count: count.count,
                    lastUsed: count.lastUsed.rfc3339)
            }
        return Decision(.succeeded(VerificationUsageResult(counts: counts)))
    }
}
