// SPDX-License-Identifier: Apache-2.0

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

    public var subject: String { installId.text }
}

/// A creation ended without a user on the install.
public struct UserCreationFailed: EventMessage {
    public static let type = "identity.user.creation-failed.v1"
    public var installId: InstallID
    /// None when it expired.
    public var reason: ReasonCode?

    public init(installId: InstallID, reason: ReasonCode?) {
        self.installId = installId
        self.reason = reason
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
    }

    public var installId: InstallID
    /// None when the user was erased.
    public var userId: UserID?
    public var cause: Cause

    public init(installId: InstallID, userId: UserID?, cause: Cause) {
        self.installId = installId
        self.userId = userId
        self.cause = cause
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

    public var subject: String { installId.text }
}

/// The user service has forgotten an erased user. Carries no install: it must be safe to keep.
public struct UserForgotten: EventMessage {
    public static let type = "identity.user.erased.v1"
    public var userId: UserID

    public init(userId: UserID) { self.userId = userId }

    public var subject: String { userId.text }
}

/// The user was taken off the install.
public struct UserReset: EventMessage {
    public static let type = "identity.user.reset.v1"
    public var installId: InstallID
    /// None when there was no user on it.
    public var userId: UserID?

    public init(installId: InstallID, userId: UserID?) {
        self.installId = installId
        self.userId = userId
    }

    public var subject: String { installId.text }
}
