// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Authentication codes (seed 001 "Requesting an Authentication Code").
extension UserDecider {
    /// The code that this command would give out: 64 bytes that nobody without the store's salt can guess, as
    /// hex.
    static func newCode(_ context: DecisionContext) -> String {
        context.secret("auth-code").hex
    }

    static func issueCode(
        _ request: RequestAuthCode, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        guard context.app.linking.isEnabled else { return .rejected(.userLinkingNotConfigured) }
        do throws(Rejection) {
            try context.app.linking.check(externalID: request.externalId)
        } catch {
            return Decision(.rejected(error))
        }
        let text = newCode(context)
        if let known = state.code(CodeDigest(of: text)) {
            // A command that the journal has forgotten came again: its code stays what it has become.
            return Decision(.succeeded(result(text, known)))
        }
        let limit = context.app.sdk.maxOutstandingCodes
        guard state.outstandingCodes(context.app.id, request.externalId, now: context.now) < limit else {
            return .rejected(.authCodeLimitReached)
        }
        let code = AuthCode(
            digest: CodeDigest(of: text), app: context.app.id, externalID: request.externalId,
            expires: Timestamp(milliseconds: context.now.milliseconds + context.app.sdk.authCodeLifetime))
        let event = AuthCodeIssued(externalId: request.externalId, expiresAt: code.expires.rfc3339)
        return Decision(.succeeded(result(text, code)), changes: [.code(code)], events: [event])
    }

    private static func result(_ text: String, _ code: AuthCode) -> AuthCodeResult {
        AuthCodeResult(authenticationCode: text, expiresAt: code.expires.rfc3339)
    }

    /// The code behind what a device shows, if it can be redeemed.
    static func redeemable(
        _ text: String, _ state: UserState, _ context: DecisionContext
    ) throws(Rejection) -> AuthCode {
        guard let code = state.code(CodeDigest(of: text)) else { throw Rejection(.authCodeInvalid) }
        if let refusal = code.refusal(app: context.app.id, now: context.now) { throw Rejection(refusal) }
        return code
    }

    /// What becomes of the code that the install's saga holds.
    static func settleCode(of install: Installation, isUsed: Bool, _ state: UserState) -> [UserState.Change] {
        guard let digest = install.saga?.digest, let code = state.code(digest) else { return [] }
        return [.code(code.with(isUsed ? .used(installID: install.id) : .none))]
    }
}
