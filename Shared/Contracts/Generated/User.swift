// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import WireJSON

/// The app's backend asks for a code that lets a device create, or restore, the user behind an external id (U1, F4).
/// Result: ``AuthCodeResult``.
public struct RequestAuthCode: CommandMessage {
    public static let type = "identity.user.request-auth-code.v1"
    public static let scope = Scope.userLink

    /// Exact bytes: nothing is trimmed or folded (L17).
    public var externalId: ExternalID

    public init(externalId: ExternalID) {
        self.externalId = externalId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let externalId = json.text("externalId")
        else { return nil }
        self.init(externalId: ExternalID(externalId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("externalId", externalId)
        json.end()
    }

    public var partitionSubject: String { externalId.text }

    public func validate() throws(Rejection) {
        try Validation.identityValue(externalId, "externalId")
    }
}

/// The SDK creates the device's user (docs/user.md), in one of three ways: with `authCode`; with `appSecret` and
/// `linking: linker`; with `appSecret` and `linking: none`. Answered `pending` first, with a `PendingUser`. Result:
/// ``UserResult``. While it is `pending`: ``PendingUser``.
public struct CreateUser: CommandMessage {
    public static let type = "identity.user.create.v1"
    public static let scope = Scope.sdk

    public var installId: InstallID
    public var device: Device
    public var sdkVersion: String?
    public var appVersion: String?
    public var authCode: String?
    public var appSecret: String?
    public var linking: Linking?

    public init(
        installId: InstallID, device: Device, sdkVersion: String? = nil, appVersion: String? = nil,
        authCode: String? = nil, appSecret: String? = nil, linking: Linking? = nil
    ) {
        self.installId = installId
        self.device = device
        self.sdkVersion = sdkVersion
        self.appVersion = appVersion
        self.authCode = authCode
        self.appSecret = appSecret
        self.linking = linking
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let device = json.value("device", as: Device.self),
            let sdkVersion = json.textIfPresent("sdkVersion"),
            let appVersion = json.textIfPresent("appVersion"),
            let authCode = json.textIfPresent("authCode"),
            let appSecret = json.textIfPresent("appSecret"),
            let linking = json.valueIfPresent("linking", as: Linking.self)
        else { return nil }
        self.init(
            installId: InstallID(installId), device: device, sdkVersion: sdkVersion, appVersion: appVersion,
            authCode: authCode, appSecret: appSecret, linking: linking)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("device", device)
        json.memberIfPresent("sdkVersion", sdkVersion)
        json.memberIfPresent("appVersion", appVersion)
        json.memberIfPresent("authCode", authCode)
        json.memberIfPresent("appSecret", appSecret)
        try json.memberIfPresent("linking", linking)
        json.end()
    }

    public var partitionSubject: String { installId.text }
}

/// The SDK links the device's unlinked user: with `authCode`, or with `linking: linker`. Only to an external id that is
/// new to the platform (U26). Answered `pending` first, with a `PendingUser`. Result: ``UserResult``. While it is
/// `pending`: ``PendingUser``.
public struct LinkUser: CommandMessage {
    public static let type = "identity.user.link.v1"
    public static let scope = Scope.sdk

    public var installId: InstallID
    public var authCode: String?
    public var linking: Linking?

    public init(installId: InstallID, authCode: String? = nil, linking: Linking? = nil) {
        self.installId = installId
        self.authCode = authCode
        self.linking = linking
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let authCode = json.textIfPresent("authCode"),
            let linking = json.valueIfPresent("linking", as: Linking.self)
        else { return nil }
        self.init(installId: InstallID(installId), authCode: authCode, linking: linking)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.memberIfPresent("authCode", authCode)
        try json.memberIfPresent("linking", linking)
        json.end()
    }

    public var partitionSubject: String { installId.text }
}

/// What the app's linker came to (U18, F10). Success is believed only when the platform's own record says the same.
/// Answered `pending` first. Result: ``UserResult``. While it is `pending`: ``PendingUser``.
public struct ConfirmLink: CommandMessage {
    public static let type = "identity.user.confirm-link.v1"
    public static let scope = Scope.sdk

    public var installId: InstallID
    public var success: Bool
    /// Whom the app's backend linked, if the app knows it: a link to anybody else is none (U72).
    public var externalId: ExternalID?

    public init(installId: InstallID, success: Bool, externalId: ExternalID? = nil) {
        self.installId = installId
        self.success = success
        self.externalId = externalId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let success = json.value("success", as: Bool.self),
            let externalId = json.textIfPresent("externalId")
        else { return nil }
        self.init(installId: InstallID(installId), success: success, externalId: externalId.map { ExternalID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("success", success)
        json.memberIfPresent("externalId", externalId)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        if let externalId { try Validation.identityValue(externalId, "externalId") }
    }
}

/// Takes the user off the device (U29); the platform keeps it. Answered `pending` first. Result: ``ResetResult``. While
/// it is `pending`: ``PendingUser``.
public struct ResetUser: CommandMessage {
    public static let type = "identity.user.reset.v1"
    public static let scope = Scope.sdk

    public var installId: InstallID

    public init(installId: InstallID) {
        self.installId = installId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId")
        else { return nil }
        self.init(installId: InstallID(installId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
    }
}

/// Reads the device's user, with a fresh token. Result: ``UserResult``. While it is `pending`: ``PendingUser``.
public struct GetUser: CommandMessage {
    public static let type = "identity.user.get.v1"
    public static let scope = Scope.sdk

    public var installId: InstallID

    public init(installId: InstallID) {
        self.installId = installId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId")
        else { return nil }
        self.init(installId: InstallID(installId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
    }
}

/// The user service tells itself that an app's linker took too long. Names the command that waits, so that a late one
/// does not end another.
public struct ExpireLinker: CommandMessage {
    public static let type = "identity.user.expire-linker.v1"
    public static let scope = Scope.internal

    public var installId: InstallID
    public var commandSource: SourceID
    public var commandId: CommandID

    public init(installId: InstallID, commandSource: SourceID, commandId: CommandID) {
        self.installId = installId
        self.commandSource = commandSource
        self.commandId = commandId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let commandSource = json.text("commandSource"),
            let commandId = json.text("commandId")
        else { return nil }
        self.init(
            installId: InstallID(installId), commandSource: SourceID(commandSource), commandId: CommandID(commandId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("commandSource", commandSource)
        json.member("commandId", commandId)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
    }
}

/// The link service erased a person: its records, codes and half-done creations go from the user service. Result:
/// ``ErasureCertificate``.
public struct ForgetUser: CommandMessage {
    public static let type = "identity.user.forget.v1"
    public static let scope = Scope.internal

    public var userId: UserID
    /// The authentication codes of this external id go.
    public var externalId: ExternalID?
    /// The installs that the person was on.
    public var installIds: [InstallID]
    /// The moment (L45) of the command that erased the person: what began later on these installs is somebody else's.
    /// Absent: now.
    public var erasedAt: Timestamp?

    public init(
        userId: UserID, externalId: ExternalID? = nil, installIds: [InstallID] = [], erasedAt: Timestamp? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.installIds = installIds
        self.erasedAt = erasedAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let externalId = json.textIfPresent("externalId"),
            let installIds = json.value("installIds", as: [InstallID].self),
            let erasedAt = json.valueIfPresent("erasedAt", as: Timestamp.self)
        else { return nil }
        self.init(
            userId: UserID(userId), externalId: externalId.map { ExternalID($0) }, installIds: installIds,
            erasedAt: erasedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.member("installIds", installIds)
        try json.memberIfPresent("erasedAt", erasedAt)
        json.end()
    }

    public var partitionSubject: String { userId.text }

    public func validate() throws(Rejection) {
        try Validation.id(userId, "userId")
        if let externalId { try Validation.identityValue(externalId, "externalId") }
        for (index, one) in installIds.enumerated() {
            try Validation.id(one, "installIds[\(index)]")
        }
    }
}

/// The user service to itself: a user who was never linked has not come back.
public struct ExpireUser: CommandMessage {
    public static let type = "identity.user.expire-user.v1"
    public static let scope = Scope.internal

    public var installId: InstallID
    public var userId: UserID
    /// When the user came last as far as was known. Absent: that was not noted, and is from then on.
    public var lastSeen: Timestamp?

    public init(installId: InstallID, userId: UserID, lastSeen: Timestamp? = nil) {
        self.installId = installId
        self.userId = userId
        self.lastSeen = lastSeen
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId"),
            let lastSeen = json.valueIfPresent("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId), lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        try json.memberIfPresent("lastSeen", lastSeen)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.id(userId, "userId")
    }
}

/// A code was given out. The code itself is not in the event.
public struct AuthCodeIssued: EventMessage {
    public static let type = "identity.user.auth-code-issued.v1"

    public var externalId: ExternalID
    /// RFC 3339 with milliseconds.
    public var expiresAt: Timestamp

    public init(externalId: ExternalID, expiresAt: Timestamp) {
        self.externalId = externalId
        self.expiresAt = expiresAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let externalId = json.text("externalId"),
            let expiresAt = json.value("expiresAt", as: Timestamp.self)
        else { return nil }
        self.init(externalId: ExternalID(externalId), expiresAt: expiresAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("externalId", externalId)
        try json.member("expiresAt", expiresAt)
        json.end()
    }

    public var subject: String { externalId.text }
}

/// A new user came to life on the install.
public struct UserCreated: EventMessage {
    public static let type = "identity.user.created.v1"

    public var installId: InstallID
    public var userId: UserID
    public var isLinked: Bool
    public var isRemoteEnabled: Bool

    public init(installId: InstallID, userId: UserID, isLinked: Bool, isRemoteEnabled: Bool) {
        self.installId = installId
        self.userId = userId
        self.isLinked = isLinked
        self.isRemoteEnabled = isRemoteEnabled
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId"),
            let isLinked = json.value("isLinked", as: Bool.self),
            let isRemoteEnabled = json.value("isRemoteEnabled", as: Bool.self)
        else { return nil }
        self.init(
            installId: InstallID(installId), userId: UserID(userId), isLinked: isLinked,
            isRemoteEnabled: isRemoteEnabled)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.member("isLinked", isLinked)
        json.member("isRemoteEnabled", isRemoteEnabled)
        json.end()
    }

    public var subject: String { installId.text }
}

/// A user that was on another install before is on this one now.
public struct UserRestored: EventMessage {
    public static let type = "identity.user.restored.v1"

    public var installId: InstallID
    public var userId: UserID
    public var isRemoteEnabled: Bool

    public init(installId: InstallID, userId: UserID, isRemoteEnabled: Bool) {
        self.installId = installId
        self.userId = userId
        self.isRemoteEnabled = isRemoteEnabled
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId"),
            let isRemoteEnabled = json.value("isRemoteEnabled", as: Bool.self)
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId), isRemoteEnabled: isRemoteEnabled)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.member("isRemoteEnabled", isRemoteEnabled)
        json.end()
    }

    public var subject: String { installId.text }
}

/// The unlinked user of the install was linked.
public struct UserLinked: EventMessage {
    public static let type = "identity.user.linked.v1"

    public var installId: InstallID
    public var userId: UserID

    public init(installId: InstallID, userId: UserID) {
        self.installId = installId
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId")
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.end()
    }

    public var subject: String { installId.text }
}

/// The user of the install is not linked any more: support took its external id.
public struct UserUnlinked: EventMessage {
    public static let type = "identity.user.unlinked.v1"

    public var installId: InstallID
    public var userId: UserID

    public init(installId: InstallID, userId: UserID) {
        self.installId = installId
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId")
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.end()
    }

    public var subject: String { installId.text }
}

/// A creation ended without a user on the install.
public struct UserCreationFailed: EventMessage {
    public static let type = "identity.user.creation-failed.v1"

    public var installId: InstallID
    /// None when it expired.
    public var reason: ReasonCode?

    public init(installId: InstallID, reason: ReasonCode? = nil) {
        self.installId = installId
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let reason = json.valueIfPresent("reason", as: ReasonCode.self)
        else { return nil }
        self.init(installId: InstallID(installId), reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.memberIfPresent("reason", reason)
        json.end()
    }

    public var subject: String { installId.text }
}

/// The user is no longer active on the install.
public struct UserDeactivated: EventMessage {
    public static let type = "identity.user.deactivated.v1"

    public enum Cause: String, WireEnum {
        /// The user moved to another install.
        case superseded
        /// The platform disabled the install.
        case disabled
        /// The platform deleted the install.
        case deleted
        /// The user was erased.
        case erased
        /// What is known of the user is kept and not used (`sync.restrict`).
        case restricted
    }

    public var installId: InstallID
    /// None when the user was erased.
    public var userId: UserID?
    public var cause: Cause

    public init(installId: InstallID, userId: UserID? = nil, cause: Cause) {
        self.installId = installId
        self.userId = userId
        self.cause = cause
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.textIfPresent("userId"),
            let cause = json.value("cause", as: Cause.self)
        else { return nil }
        self.init(installId: InstallID(installId), userId: userId.map { UserID($0) }, cause: cause)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.memberIfPresent("userId", userId)
        try json.member("cause", cause)
        json.end()
    }

    public var subject: String { installId.text }
}

/// The user is active on the install again: the platform enabled the install, or the user's other one went.
public struct UserActivated: EventMessage {
    public static let type = "identity.user.activated.v1"

    public var installId: InstallID
    public var userId: UserID

    public init(installId: InstallID, userId: UserID) {
        self.installId = installId
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId")
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.end()
    }

    public var subject: String { installId.text }
}

/// The user service has forgotten an erased user. Carries no install: it must be safe to keep.
public struct UserForgotten: EventMessage {
    public static let type = "identity.user.erased.v1"

    public var userId: UserID

    public init(userId: UserID) {
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId")
        else { return nil }
        self.init(userId: UserID(userId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.end()
    }

    public var subject: String { userId.text }
}

/// The user was taken off the install.
public struct UserReset: EventMessage {
    public static let type = "identity.user.reset.v1"

    public var installId: InstallID
    /// None when there was no user on it.
    public var userId: UserID?

    public init(installId: InstallID, userId: UserID? = nil) {
        self.installId = installId
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.textIfPresent("userId")
        else { return nil }
        self.init(installId: InstallID(installId), userId: userId.map { UserID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.memberIfPresent("userId", userId)
        json.end()
    }

    public var subject: String { installId.text }
}

/// `user.request-auth-code`.
public struct AuthCodeResult: CommandResult {
    public static var isConfidential: Bool { true }

    /// 128 lower-case hex characters; works once.
    public var authenticationCode: String
    /// RFC 3339 with milliseconds.
    public var expiresAt: Timestamp

    public init(authenticationCode: String, expiresAt: Timestamp) {
        self.authenticationCode = authenticationCode
        self.expiresAt = expiresAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let authenticationCode = json.text("authenticationCode"),
            let expiresAt = json.value("expiresAt", as: Timestamp.self)
        else { return nil }
        self.init(authenticationCode: authenticationCode, expiresAt: expiresAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("authenticationCode", authenticationCode)
        try json.member("expiresAt", expiresAt)
        json.end()
    }
}

/// `user.create`, `user.link`, `user.confirm-link`, `user.get`.
public struct UserResult: CommandResult {
    public static var isConfidential: Bool { true }

    /// 24 lower-case hex characters.
    public var userId: UserID
    public var installId: InstallID
    public var isLinked: Bool
    /// Whether the user is active on this install. False on a tablet while a phone has the user, on an install that
    /// another one took over from, and on one that the platform disabled.
    public var isRemoteEnabled: Bool
    /// Why it is not (U76).
    public var inactiveBecause: InactiveBecause?
    public var token: UserTokenResult
    /// The app's `sdk.configuration`, as it stands in the apps file.
    public var configuration: JSONValue
    /// Opens this install, and no other, until it is reset.
    public var installToken: UserTokenResult

    public init(
        userId: UserID, installId: InstallID, isLinked: Bool, isRemoteEnabled: Bool,
        inactiveBecause: InactiveBecause? = nil, token: UserTokenResult, configuration: JSONValue,
        installToken: UserTokenResult
    ) {
        self.userId = userId
        self.installId = installId
        self.isLinked = isLinked
        self.isRemoteEnabled = isRemoteEnabled
        self.inactiveBecause = inactiveBecause
        self.token = token
        self.configuration = configuration
        self.installToken = installToken
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let installId = json.text("installId"),
            let isLinked = json.value("isLinked", as: Bool.self),
            let isRemoteEnabled = json.value("isRemoteEnabled", as: Bool.self),
            let inactiveBecause = json.valueIfPresent("inactiveBecause", as: InactiveBecause.self),
            let token = json.value("token", as: UserTokenResult.self),
            let configuration = json.value("configuration", as: JSONValue.self),
            let installToken = json.value("installToken", as: UserTokenResult.self)
        else { return nil }
        self.init(
            userId: UserID(userId), installId: InstallID(installId), isLinked: isLinked,
            isRemoteEnabled: isRemoteEnabled, inactiveBecause: inactiveBecause, token: token,
            configuration: configuration, installToken: installToken)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("installId", installId)
        json.member("isLinked", isLinked)
        json.member("isRemoteEnabled", isRemoteEnabled)
        try json.memberIfPresent("inactiveBecause", inactiveBecause)
        try json.member("token", token)
        try json.member("configuration", configuration)
        try json.member("installToken", installToken)
        json.end()
    }
}

/// `user.reset`.
public struct ResetResult: CommandResult {
    public var installId: InstallID

    public init(installId: InstallID) {
        self.installId = installId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId")
        else { return nil }
        self.init(installId: InstallID(installId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.end()
    }
}

/// Goes with the status `pending` of a user command.
public struct PendingUser: CommandResult {
    public static var isConfidential: Bool { true }

    public enum Awaiting: String, WireEnum {
        /// The services settle it among themselves.
        case platform
        /// The app's linker has its turn: `link.request` by the backend, then `user.confirm-link`.
        case linker
    }

    /// What the app's linker hands to its backend.
    public var installId: InstallID
    public var awaiting: Awaiting
    /// With which the device confirms, while its linker has its turn: there is no user yet whose token it could show.
    public var installToken: UserTokenResult?

    public init(installId: InstallID, awaiting: Awaiting, installToken: UserTokenResult? = nil) {
        self.installId = installId
        self.awaiting = awaiting
        self.installToken = installToken
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let awaiting = json.value("awaiting", as: Awaiting.self),
            let installToken = json.valueIfPresent("installToken", as: UserTokenResult.self)
        else { return nil }
        self.init(installId: InstallID(installId), awaiting: awaiting, installToken: installToken)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("awaiting", awaiting)
        try json.memberIfPresent("installToken", installToken)
        json.end()
    }
}

/// What an app does about linking when it has no authentication code (U17, U22).
public enum Linking: String, WireEnum {
    /// The app's linker asks its backend to link the install.
    case linker
    /// Nothing: the user stays unlinked.
    case none
}

/// What the SDK shows to speak for its user, or for its install.
public struct UserTokenResult: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// The bearer token itself, a JWT.
    public var tokenId: String
    /// RFC 3339 with milliseconds.
    public var expiryDate: Timestamp

    public init(tokenId: String, expiryDate: Timestamp) {
        self.tokenId = tokenId
        self.expiryDate = expiryDate
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let tokenId = json.text("tokenId"),
            let expiryDate = json.value("expiryDate", as: Timestamp.self)
        else { return nil }
        self.init(tokenId: tokenId, expiryDate: expiryDate)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("tokenId", tokenId)
        try json.member("expiryDate", expiryDate)
        json.end()
    }
}
