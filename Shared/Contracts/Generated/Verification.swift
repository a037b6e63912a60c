// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import WireJSON

/// A device logs somebody in (V1). Without an identifier, or with one that is not valid, the user is anonymous.
/// `pending` until the sync service has found the user. Result: ``VerificationResult``.
public struct VerificationLogin: CommandMessage {
    public static let type = "identity.verification.login.v1"
    public static let scope = Scope.sdk

    public var deviceId: DeviceID
    /// Case-sensitive.
    public var userId: String?
    /// Case-insensitive when users are looked up; signed as it is typed.
    public var userEmail: String?
    /// Cut at 255 characters.
    public var userName: String?
    /// HMAC-SHA256 by the app's backend: base64 of either alphabet, padded or not, or hex.
    public var userAuthToken: String?
    /// Only the user id is used and signed; name and e-mail are dropped. Also on when the app's settings say so.
    public var fullPrivacy: Bool?

    public init(
        deviceId: DeviceID, userId: String? = nil, userEmail: String? = nil, userName: String? = nil,
        userAuthToken: String? = nil, fullPrivacy: Bool? = nil
    ) {
        self.deviceId = deviceId
        self.userId = userId
        self.userEmail = userEmail
        self.userName = userName
        self.userAuthToken = userAuthToken
        self.fullPrivacy = fullPrivacy
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let userId = json.textIfPresent("userId"),
            let userEmail = json.textIfPresent("userEmail"),
            let userName = json.textIfPresent("userName"),
            let userAuthToken = json.textIfPresent("userAuthToken"),
            let fullPrivacy = json.valueIfPresent("fullPrivacy", as: Bool.self)
        else { return nil }
        self.init(
            deviceId: DeviceID(deviceId), userId: userId, userEmail: userEmail, userName: userName,
            userAuthToken: userAuthToken, fullPrivacy: fullPrivacy)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("userEmail", userEmail)
        json.memberIfPresent("userName", userName)
        json.memberIfPresent("userAuthToken", userAuthToken)
        json.memberIfPresent("fullPrivacy", fullPrivacy)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// A device logs somebody in with an identity JWT of the app's backend. An empty one means the anonymous user.
/// `pending` until the sync service has found the user. Result: ``VerificationResult``.
public struct VerificationLoginIdentity: CommandMessage {
    public static let type = "identity.verification.login-identity.v1"
    public static let scope = Scope.sdk

    public var deviceId: DeviceID
    /// HS256; `identities` (at most 30) and `iat` (seconds, at most 24 hours old).
    public var identityToken: String
    /// Only the identity `uid` is used. Also on when the app's settings say so.
    public var fullPrivacy: Bool?

    public init(deviceId: DeviceID, identityToken: String, fullPrivacy: Bool? = nil) {
        self.deviceId = deviceId
        self.identityToken = identityToken
        self.fullPrivacy = fullPrivacy
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let identityToken = json.text("identityToken"),
            let fullPrivacy = json.valueIfPresent("fullPrivacy", as: Bool.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), identityToken: identityToken, fullPrivacy: fullPrivacy)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.member("identityToken", identityToken)
        json.memberIfPresent("fullPrivacy", fullPrivacy)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// The device goes back to its anonymous user. `pending` until the sync service has moved the device. What it refuses
/// leaves the session as it was. Result: ``VerificationResult``.
public struct VerificationLogout: CommandMessage {
    public static let type = "identity.verification.logout.v1"
    public static let scope = Scope.sdk

    public var deviceId: DeviceID

    public init(deviceId: DeviceID) {
        self.deviceId = deviceId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// Whether a token is right for these identifiers, whatever the app's mode. Touches no session and no counter. A token
/// that does not pass is rejected with `InvalidAuthToken`. Result: ``VerificationResult``.
public struct VerificationCheck: CommandMessage {
    public static let type = "identity.verification.check.v1"
    public static let scope = Scope.verificationCheck

    public var userId: String?
    public var userEmail: String?
    public var userAuthToken: String

    public init(userId: String? = nil, userEmail: String? = nil, userAuthToken: String) {
        self.userId = userId
        self.userEmail = userEmail
        self.userAuthToken = userAuthToken
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.textIfPresent("userId"),
            let userEmail = json.textIfPresent("userEmail"),
            let userAuthToken = json.text("userAuthToken")
        else { return nil }
        self.init(userId: userId, userEmail: userEmail, userAuthToken: userAuthToken)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("userEmail", userEmail)
        json.member("userAuthToken", userAuthToken)
        json.end()
    }

    public var partitionSubject: String { userId ?? userEmail ?? "" }
}

/// How often each key and each refusal was met, to see when an old key is not used any more. Result:
/// ``VerificationUsageResult``.
public struct VerificationUsage: CommandMessage {
    public static let type = "identity.verification.usage.v1"
    public static let scope = Scope.admin

    public init() {}

    public init?(usual view: JSONView) {
        guard view.isObject else { return nil }
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.end()
    }

    public var partitionSubject: String { "usage" }

    public func validate() throws(Rejection) {}
}

/// Who uses a device, and what they may do: for help desks that missed an event. Decides on the settings of now, so a
/// session whose key is gone ends by being asked about. A device that is not known is anonymous. Result:
/// ``SessionResult``.
public struct GetSession: PersonQuery {
    public static let type = "identity.verification.get-session.v1"
    public static let scope = Scope.verificationCheck
    public static let orScope: Scope? = .support

    public var deviceId: DeviceID

    public init(deviceId: DeviceID) {
        self.deviceId = deviceId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public var subject: (kind: String, name: String) { ("deviceId", deviceId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// The service found a session that may have to end: its key is gone, the app's mode is another, or it is too old. Sent
/// by the service to itself; nobody is answered.
public struct ReviewSession: CommandMessage {
    public static let type = "identity.verification.review-session.v1"
    public static let scope = Scope.internal

    public var deviceId: DeviceID

    public init(deviceId: DeviceID) {
        self.deviceId = deviceId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// The sync service erased profiles: their sessions go. Result: ``ErasureCertificate``.
public struct ForgetSessions: CommandMessage {
    public static let type = "identity.verification.forget.v1"
    public static let scope = Scope.internal

    public var mpids: [MPID]

    public init(mpids: [MPID]) {
        self.mpids = mpids
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpids = json.value("mpids", as: [MPID].self)
        else { return nil }
        self.init(mpids: mpids)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpids", mpids)
        json.end()
    }

    public var partitionSubject: String { mpids.first?.description ?? "nobody" }

    public func validate() throws(Rejection) {}
}

/// The verification service to itself: nobody has logged in or out on a device.
public struct ExpireSession: CommandMessage {
    public static let type = "identity.verification.expire-session.v1"
    public static let scope = Scope.internal

    public var deviceId: DeviceID
    /// When it was used last as far as was known.
    public var lastSeen: Timestamp

    public init(deviceId: DeviceID, lastSeen: Timestamp) {
        self.deviceId = deviceId
        self.lastSeen = lastSeen
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("lastSeen", lastSeen)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// The session of a device on which nobody is logged in is gone because nobody used it: it reads as one that there
/// never was.
public struct SessionExpired: EventMessage {
    public static let type = "identity.verification.session-expired.v1"

    public var deviceId: DeviceID
    public var lastSeen: Timestamp

    public init(deviceId: DeviceID, lastSeen: Timestamp) {
        self.deviceId = deviceId
        self.lastSeen = lastSeen
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("lastSeen", lastSeen)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// A login passed.
public struct VerificationVerified: EventMessage {
    public static let type = "identity.verification.verified.v1"

    public var deviceId: DeviceID
    public var method: VerificationMethod
    /// The key that the token was made with; a single `identityTokenSecret` has no id.
    public var keyId: KeyID?

    public init(deviceId: DeviceID, method: VerificationMethod, keyId: KeyID? = nil) {
        self.deviceId = deviceId
        self.method = method
        self.keyId = keyId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let method = json.value("method", as: VerificationMethod.self),
            let keyId = json.textIfPresent("keyId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), method: method, keyId: keyId.map { KeyID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("method", method)
        json.memberIfPresent("keyId", keyId)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// A login was refused (mode `enforce`).
public struct VerificationFailed: EventMessage {
    public static let type = "identity.verification.failed.v1"

    public var deviceId: DeviceID
    public var method: VerificationMethod
    public var reason: ReasonCode
    /// The key of an identity token whose signature is right and whose age, parties or identities are not.
    public var keyId: KeyID?

    public init(deviceId: DeviceID, method: VerificationMethod, reason: ReasonCode, keyId: KeyID? = nil) {
        self.deviceId = deviceId
        self.method = method
        self.reason = reason
        self.keyId = keyId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let method = json.value("method", as: VerificationMethod.self),
            let reason = json.value("reason", as: ReasonCode.self),
            let keyId = json.textIfPresent("keyId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), method: method, reason: reason, keyId: keyId.map { KeyID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("method", method)
        try json.member("reason", reason)
        json.memberIfPresent("keyId", keyId)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// A login that mode `enforce` would have refused (mode `report`). It was let through, unless it could not be read.
public struct UnverifiedObserved: EventMessage {
    public static let type = "identity.verification.unverified-observed.v1"

    public var deviceId: DeviceID
    public var method: VerificationMethod
    public var reason: ReasonCode
    /// The key of an identity token whose signature is right and whose age, parties or identities are not.
    public var keyId: KeyID?

    public init(deviceId: DeviceID, method: VerificationMethod, reason: ReasonCode, keyId: KeyID? = nil) {
        self.deviceId = deviceId
        self.method = method
        self.reason = reason
        self.keyId = keyId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let method = json.value("method", as: VerificationMethod.self),
            let reason = json.value("reason", as: ReasonCode.self),
            let keyId = json.textIfPresent("keyId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), method: method, reason: reason, keyId: keyId.map { KeyID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("method", method)
        try json.member("reason", reason)
        json.memberIfPresent("keyId", keyId)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// The device's session is another one now. Logging in as somebody else gives two: the logout of the one who was there,
/// then the login.
public struct SessionChanged: EventMessage {
    public static let type = "identity.verification.session-changed.v1"

    public enum Cause: String, WireEnum {
        case login
        case logout
        /// The login was refused; the session is `unverified`.
        case refusal
        /// Nobody did anything on the device; `reason` says why the session is another.
        case ended
    }

    /// Why a session ended by itself.
    public enum Reason: String, WireEnum {
        /// The key that its token was made with is out of the apps file, or past its `retireAt`.
        case keyGone
        /// The app enforces verification now, and nobody vouched for this session.
        case verificationRequired
        /// It is older than the app's `sessionSeconds`.
        case sessionExpired
        /// The user was erased.
        case erased
        /// The device has another user, by a command of somebody else, or its user is anonymous now.
        case userChanged
        /// Support took the identities of the device, or what made its user known, from the user (`sync.detach`).
        case detached
        /// Nobody has used the device for long (the app's `retention`): nothing is known of it any more.
        case sessionForgotten
    }

    public var deviceId: DeviceID
    public var state: VerificationState
    public var mayFileIssues: Bool
    public var cause: Cause
    /// With `ended`.
    public var reason: Reason?
    /// Whose session began or ended, when the sync service has said it.
    public var mpid: MPID?

    public init(
        deviceId: DeviceID, state: VerificationState, mayFileIssues: Bool, cause: Cause, reason: Reason? = nil,
        mpid: MPID? = nil
    ) {
        self.deviceId = deviceId
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.cause = cause
        self.reason = reason
        self.mpid = mpid
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let state = json.value("state", as: VerificationState.self),
            let mayFileIssues = json.value("mayFileIssues", as: Bool.self),
            let cause = json.value("cause", as: Cause.self),
            let reason = json.valueIfPresent("reason", as: Reason.self),
            let mpid = json.valueIfPresent("mpid", as: MPID.self)
        else { return nil }
        self.init(
            deviceId: DeviceID(deviceId), state: state, mayFileIssues: mayFileIssues, cause: cause, reason: reason,
            mpid: mpid)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("state", state)
        json.member("mayFileIssues", mayFileIssues)
        try json.member("cause", cause)
        try json.memberIfPresent("reason", reason)
        try json.memberIfPresent("mpid", mpid)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// The sessions of these users are gone, and no answer that is still on its way brings one back.
public struct SessionsErased: EventMessage {
    public static let type = "identity.verification.erased.v1"

    /// As the command named them; at least one.
    public var mpids: [MPID]

    public init(mpids: [MPID]) {
        self.mpids = mpids
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpids = json.value("mpids", as: [MPID].self)
        else { return nil }
        self.init(mpids: mpids)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpids", mpids)
        json.end()
    }

    public var subject: String { mpids.first?.description ?? "" }
}

/// `verification.login`, `.login-identity`, `.logout` and `.check`.
public struct VerificationResult: CommandResult {
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// The id of the key that the token was made with.
    public var keyId: KeyID?
    /// The user's profile, once the sync service has answered.
    public var mpid: MPID?
    public var anonymousReason: AnonymousReason?

    public init(
        state: VerificationState, mayFileIssues: Bool, keyId: KeyID? = nil, mpid: MPID? = nil,
        anonymousReason: AnonymousReason? = nil
    ) {
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.keyId = keyId
        self.mpid = mpid
        self.anonymousReason = anonymousReason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let state = json.value("state", as: VerificationState.self),
            let mayFileIssues = json.value("mayFileIssues", as: Bool.self),
            let keyId = json.textIfPresent("keyId"),
            let mpid = json.valueIfPresent("mpid", as: MPID.self),
            let anonymousReason = json.valueIfPresent("anonymousReason", as: AnonymousReason.self)
        else { return nil }
        self.init(
            state: state, mayFileIssues: mayFileIssues, keyId: keyId.map { KeyID($0) }, mpid: mpid,
            anonymousReason: anonymousReason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("state", state)
        json.member("mayFileIssues", mayFileIssues)
        json.memberIfPresent("keyId", keyId)
        try json.memberIfPresent("mpid", mpid)
        try json.memberIfPresent("anonymousReason", anonymousReason)
        json.end()
    }
}

/// `verification.get-session`.
public struct SessionResult: CommandResult {
    public var deviceId: DeviceID
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// The device has a known user at the sync service, or a login is on its way there.
    public var hasLogin: Bool
    public var mpid: MPID?
    /// The key that vouched, while the session is `verified`; a single `identityTokenSecret` has no id.
    public var keyId: KeyID?
    /// RFC 3339: when it vouched.
    public var verifiedAt: Timestamp?

    public init(
        deviceId: DeviceID, state: VerificationState, mayFileIssues: Bool, hasLogin: Bool, mpid: MPID? = nil,
        keyId: KeyID? = nil, verifiedAt: Timestamp? = nil
    ) {
        self.deviceId = deviceId
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.hasLogin = hasLogin
        self.mpid = mpid
        self.keyId = keyId
        self.verifiedAt = verifiedAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let state = json.value("state", as: VerificationState.self),
            let mayFileIssues = json.value("mayFileIssues", as: Bool.self),
            let hasLogin = json.value("hasLogin", as: Bool.self),
            let mpid = json.valueIfPresent("mpid", as: MPID.self),
            let keyId = json.textIfPresent("keyId"),
            let verifiedAt = json.valueIfPresent("verifiedAt", as: Timestamp.self)
        else { return nil }
        self.init(
            deviceId: DeviceID(deviceId), state: state, mayFileIssues: mayFileIssues, hasLogin: hasLogin, mpid: mpid,
            keyId: keyId.map { KeyID($0) }, verifiedAt: verifiedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("state", state)
        json.member("mayFileIssues", mayFileIssues)
        json.member("hasLogin", hasLogin)
        try json.memberIfPresent("mpid", mpid)
        json.memberIfPresent("keyId", keyId)
        try json.memberIfPresent("verifiedAt", verifiedAt)
        json.end()
    }
}

/// `verification.usage`: logins by what their verification came to.
public struct VerificationUsageResult: CommandResult {
    public struct Count: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var method: VerificationMethod
        /// The key that verified; a single `identityTokenSecret` has no id.
        public var keyId: KeyID?
        /// Why it was refused, or would have been in mode `report`.
        public var reason: ReasonCode?
        public var count: Int64
        /// RFC 3339.
        public var lastUsed: Timestamp

        public init(
            method: VerificationMethod, keyId: KeyID? = nil, reason: ReasonCode? = nil, count: Int64,
            lastUsed: Timestamp
        ) {
            self.method = method
            self.keyId = keyId
            self.reason = reason
            self.count = count
            self.lastUsed = lastUsed
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let method = json.value("method", as: VerificationMethod.self),
                let keyId = json.textIfPresent("keyId"),
                let reason = json.valueIfPresent("reason", as: ReasonCode.self),
                let count = json.value("count", as: Int64.self),
                let lastUsed = json.value("lastUsed", as: Timestamp.self)
            else { return nil }
            self.init(method: method, keyId: keyId.map { KeyID($0) }, reason: reason, count: count, lastUsed: lastUsed)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("method", method)
            json.memberIfPresent("keyId", keyId)
            try json.memberIfPresent("reason", reason)
            json.member("count", count)
            try json.member("lastUsed", lastUsed)
            json.end()
        }
    }

    /// Sorted by method, reason and key; those that passed come first. What was never met is not listed.
    public var counts: [Count]

    public init(counts: [Count]) {
        self.counts = counts
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let counts = json.value("counts", as: [Count].self)
        else { return nil }
        self.init(counts: counts)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("counts", counts)
        json.end()
    }
}

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
    case userIdOuterWhiteSpace
    case userIdTooLong
    case userIdControlCharacter
    /// Such as `null`: many people have it.
    case userIdNamesNobody
    case userEmailOuterWhiteSpace
    case userEmailInvalid
    /// With full privacy only a user id counts.
    case fullPrivacyWithoutUserId
}

/// What vouches for a login.
public enum VerificationMethod: String, WireEnum {
    /// `userAuthToken`: an HMAC over the identifiers.
    case authToken
    /// `identityToken`: a JWT.
    case identityToken
}
