// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime

/// All that is ever stored of an authentication code (U6), and what it is looked up by. How long a look-up takes tells
/// something about the digest at most, which tells nothing about the code.
public typealias CodeDigest = TextDigest

/// An authentication code that was given out (U3 to U5).
public struct AuthCode: Sendable, Hashable {
    public enum Use: Sendable, Hashable {
        case none
        /// An install's creation or link goes on with it; free again unless that succeeds (U7).
        case reserved(installID: InstallID)
        case used(installID: InstallID)
    }

    public var digest: CodeDigest
    public var app: AppID
    public var externalID: ExternalID
    /// When it was asked for. An erasure of its user ends what was asked before (U35).
    public var moment: Timestamp
    public var expires: Timestamp
    public var use: Use

    public init(
        digest: CodeDigest, app: AppID, externalID: ExternalID, moment: Timestamp, expires: Timestamp, use: Use = .none
    ) {
        self.digest = digest
        self.app = app
        self.externalID = externalID
        self.moment = moment
        self.expires = expires
        self.use = use
    }

    func with(_ use: Use) -> AuthCode {
        var code = self
        code.use = use
        return code
    }

    /// Why the code cannot be redeemed now; `nil` when it can.
    func refusal(app: AppID, now: Timestamp) -> ReasonCode? {
        if self.app != app { return .authCodeInvalid }
        guard case .none = use else { return .authCodeUsed }
        return expires <= now ? .authCodeExpired : nil
    }
}

/// Authentication codes (docs/user.md "Authentication codes").
extension UserDecider {
    /// The code that this command would give out: 64 bytes that nobody without the store's salt can guess, as
    /// hex (U2).
    static func newCode(_ context: DecisionContext) -> String {
        context.secret("auth-code").hex
    }

    /// U11.
    func issueCode(_ request: RequestAuthCode) throws(Rejection) -> Decision {
        guard app.linking.isEnabled else { throw Rejection(.userLinkingNotConfigured) }
        try app.linking.check(externalID: request.externalId)
        let text = Self.newCode(context)
        if let known = state.code(CodeDigest(of: text)) {
            // A command that the inbox has forgotten came again: its code stays what it has become.
            return Decision(.succeeded(result(text, known)))
        }
        guard state.outstandingCodes(app.id, request.externalId, now: now) < app.sdk.maxOutstandingCodes else {
            throw Rejection(.authCodeLimitReached)  // U10
        }
        let code = AuthCode(
            digest: CodeDigest(of: text), app: app.id, externalID: request.externalId,
            moment: Timestamp(milliseconds: context.moment.milliseconds),
            expires: Timestamp(milliseconds: now.milliseconds + app.sdk.authCodeLifetime))
        let event = AuthCodeIssued(externalId: request.externalId, expiresAt: code.expires)
        return Decision(.succeeded(result(text, code)), changes: [.code(code)], events: [event])
    }

    private func result(_ text: String, _ code: AuthCode) -> AuthCodeResult {
        AuthCodeResult(authenticationCode: text, expiresAt: code.expires)
    }

    /// Takes the code behind what a device shows, if it can be redeemed, for the install that shows it.
    func reserve(_ text: String, for installID: InstallID) throws(Rejection) -> (HeldCode, UserState.Change) {
        guard let code = state.code(CodeDigest(of: text)) else { throw Rejection(.authCodeInvalid) }
        if let refusal = code.refusal(app: app.id, now: now) { throw Rejection(refusal) }
        let held = HeldCode(externalID: code.externalID, digest: code.digest, moment: code.moment)
        return (held, .code(code.with(.reserved(installID: installID))))
    }

    /// The code that the install's creation or link went on with has done its work.
    func useCode(of install: Installation) -> [UserState.Change] { setCode(of: install, .used(installID: install.id)) }

    /// The code that the install's creation or link went on with may be shown again.
    func freeCode(of install: Installation) -> [UserState.Change] { setCode(of: install, .none) }

    private func setCode(of install: Installation, _ use: AuthCode.Use) -> [UserState.Change] {
        guard let digest = install.code?.digest, let code = state.code(digest) else { return [] }
        return [.code(code.with(use))]
    }
}
