// SPDX-License-Identifier: Apache-2.0

public import Contracts

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
    public var expires: Timestamp
    public var use: Use

    public init(digest: CodeDigest, app: AppID, externalID: ExternalID, expires: Timestamp, use: Use = .none) {
        self.digest = digest
        self.app = app
        self.externalID = externalID
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
