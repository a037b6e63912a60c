// SPDX-License-Identifier: Apache-2.0

/// What vouches for a login.
public enum VerificationMethod: String, WireEnum {
    /// `userAuthToken`: an HMAC over the identifiers.
    case authToken
    /// `identityToken`: a JWT.
    case identityToken
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

    public var subject: String { deviceId.text }
}

/// A login was refused (mode `enforce`).
public struct VerificationFailed: EventMessage {
    public static let type = "identity.verification.failed.v1"
    public var deviceId: DeviceID
    public var method: VerificationMethod
    public var reason: ReasonCode

    public init(deviceId: DeviceID, method: VerificationMethod, reason: ReasonCode) {
        self.deviceId = deviceId
        self.method = method
        self.reason = reason
    }

    public var subject: String { deviceId.text }
}

/// A login that mode `enforce` would have refused (mode `report`). It was let through, unless it could not be read.
public struct UnverifiedObserved: EventMessage {
    public static let type = "identity.verification.unverified-observed.v1"
    public var deviceId: DeviceID
    public var method: VerificationMethod
    public var reason: ReasonCode

    public init(deviceId: DeviceID, method: VerificationMethod, reason: ReasonCode) {
        self.deviceId = deviceId
        self.method = method
        self.reason = reason
    }

    public var subject: String { deviceId.text }
}

/// The device's session is another one now. Logging in as somebody else gives two: the logout of the one who was
/// there, then the login.
public struct SessionChanged: EventMessage {
    public static let type = "identity.verification.session-changed.v1"

    public enum Cause: String, WireEnum {
        case login
        case logout
        /// The login was refused; the session is `unverified`.
        case refusal
        /// Nobody did anything on the device; ``reason`` says why the session is another.
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

    public var subject: String { deviceId.text }
}

/// The sessions of these users are gone, and no answer that is still on its way brings one back.
public struct SessionsErased: EventMessage {
    public static let type = "identity.verification.erased.v1"
    /// As the command named them; at least one.
    public var mpids: [MPID]

    public init(mpids: [MPID]) { self.mpids = mpids }

    public var subject: String { mpids.first?.description ?? "" }
}
