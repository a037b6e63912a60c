// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// `user.request-auth-code`.
public struct AuthCodeResult: CommandResult {
    public static var isConfidential: Bool { true }

    /// 128 lower-case hex characters; works once.
    public var authenticationCode: String
    /// RFC 3339 with milliseconds.
    public var expiresAt: String

    public init(authenticationCode: String, expiresAt: String) {
        self.authenticationCode = authenticationCode
        self.expiresAt = expiresAt
    }
}

/// `user.create`, `user.link`, `user.confirm-link`, `user.get`.
public struct UserResult: CommandResult {
    public static var isConfidential: Bool { true }

    /// 24 lower-case hex characters.
    public var userId: String
    public var installId: String
    public var isLinked: Bool
    /// Whether the user is active on this install. False on a tablet while a phone has the user, on an install that
    /// another one took over from, and on one that the platform disabled.
    public var isRemoteEnabled: Bool
    public var token: UserTokenResult
    /// The app's `sdk.configuration`, as it stands in the apps file.
    public var configuration: JSONValue
    /// Opens this install, and no other, until it is reset.
    public var installToken: UserTokenResult?

    public init(
        userId: String, installId: String, isLinked: Bool, isRemoteEnabled: Bool, token: UserTokenResult,
        configuration: JSONValue, installToken: UserTokenResult? = nil
    ) {
        self.userId = userId
        self.installId = installId
        self.isLinked = isLinked
        self.isRemoteEnabled = isRemoteEnabled
        self.token = token
        self.configuration = configuration
        self.installToken = installToken
    }
}

/// What the SDK shows to speak for its user, or for its install.
public struct UserTokenResult: Codable, Sendable, Hashable {
    /// The bearer token itself, a JWT.
    public var tokenId: String
    /// RFC 3339 with milliseconds.
    public var expiryDate: String

    public init(tokenId: String, expiryDate: String) {
        self.tokenId = tokenId
        self.expiryDate = expiryDate
    }
}

/// `user.reset`.
public struct ResetResult: CommandResult {
    public var installId: String

    public init(installId: String) { self.installId = installId }
}

/// Goes with the status `pending` of a user command.
public struct PendingUser: CommandResult {
    public enum Awaiting: String, WireEnum {
        /// The services settle it among themselves.
        case platform
        /// The app's linker has its turn: `link.request` by the backend, then `user.confirm-link`.
        case linker
    }

    public static var isConfidential: Bool { true }

    /// What the app's linker hands to its backend.
    public var installId: String
    public var awaiting: Awaiting
    /// With which the device confirms, while its linker has its turn: there is no user yet whose token it could show.
    public var installToken: UserTokenResult?

    public init(installId: String, awaiting: Awaiting, installToken: UserTokenResult? = nil) {
        self.installId = installId
        self.awaiting = awaiting
        self.installToken = installToken
    }
}
