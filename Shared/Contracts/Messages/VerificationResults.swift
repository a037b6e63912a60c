// SPDX-License-Identifier: Apache-2.0

/// What is known about who uses a device (docs/verification.md).
public enum VerificationState: String, WireEnum {
    case anonymous
    /// The app's backend vouched for the user.
    case verified
    /// The user gave identifiers that nobody vouched for.
    case unverified
    /// The app does not verify.
    case unchecked
}

/// Why a login with identifiers, or without, is an anonymous one (V3).
public enum AnonymousReason: String, WireEnum {
    case noIdentifier
    case userIdOuterWhiteSpace, userIdTooLong, userIdControlCharacter
    /// Such as `null`: many people have it.
    case userIdNamesNobody
    case userEmailOuterWhiteSpace, userEmailInvalid
    /// With full privacy only a user id counts.
    case fullPrivacyWithoutUserId
}

/// `verification.login`, `.login-identity`, `.logout` and `.check`.
public struct VerificationResult: CommandResult {
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// The id of the key that the token was made with.
    public var keyId: String?
    /// The user's profile, once the sync service has answered.
    public var mpid: MPID?
    public var anonymousReason: AnonymousReason?

    public init(
        state: VerificationState, mayFileIssues: Bool, keyId: String? = nil, mpid: MPID? = nil,
        anonymousReason: AnonymousReason? = nil
    ) {
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.keyId = keyId
        self.mpid = mpid
        self.anonymousReason = anonymousReason
    }
}

/// `verification.get-session`.
public struct SessionResult: CommandResult {
    public var deviceId: String
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// A login was sent to the sync service and no logout has been done since: the device may have a user there.
    public var hasLogin: Bool
    public var mpid: MPID?
    /// The key that vouched, while the session is `verified`; a single `identityTokenSecret` has no id.
    public var keyId: String?
    /// RFC 3339: when it vouched. Sessions from before the service remembered have none.
    public var verifiedAt: String?

    public init(
        deviceId: String, state: VerificationState, mayFileIssues: Bool, hasLogin: Bool, mpid: MPID? = nil,
        keyId: String? = nil, verifiedAt: String? = nil
    ) {
        self.deviceId = deviceId
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.hasLogin = hasLogin
        self.mpid = mpid
        self.keyId = keyId
        self.verifiedAt = verifiedAt
    }
}

/// `verification.usage`: logins by what their verification came to.
public struct VerificationUsageResult: CommandResult {
    public struct Count: Codable, Sendable, Hashable {
        public var method: VerificationMethod
        /// The key that verified; a single `identityTokenSecret` has no id.
        public var keyId: String?
        /// Why it was refused, or would have been in mode `report`.
        public var reason: ReasonCode?
        public var count: Int64
        /// RFC 3339.
        public var lastUsed: String

        public init(
            method: VerificationMethod, keyId: String? = nil, reason: ReasonCode? = nil, count: Int64, lastUsed: String
        ) {
            self.method = method
            self.keyId = keyId
            self.reason = reason
            self.count = count
            self.lastUsed = lastUsed
        }
    }

    /// Sorted by method, reason and key; those that passed come first. What was never met is not listed.
    public var counts: [Count]

    public init(counts: [Count]) { self.counts = counts }
}
