// SPDX-License-Identifier: Apache-2.0

public struct InstallRegistered: EventMessage {
    public static let type = "identity.link.install-registered.v1"
    public var installId: InstallID
    public var device: Device
    /// The unlinked person it was registered with, if any.
    public var userId: UserID?

    public init(installId: InstallID, device: Device, userId: UserID?) {
        self.installId = installId
        self.device = device
        self.userId = userId
    }

    public var subject: String { installId.text }
}

public struct Linked: EventMessage {
    public static let type = "identity.link.linked.v1"
    public var installId: InstallID
    public var externalId: ExternalID
    public var userId: UserID
    public var personCreated: Bool
    /// The install that is active from now on; another than `installId` when a phone kept the person.
    public var activeInstallId: InstallID
    public var deactivatedInstallIds: [InstallID]
    /// Counts the changes of the install, see ``LinkResult/version`` (L34).
    public var version: Int64

    public init(
        installId: InstallID, externalId: ExternalID, userId: UserID, personCreated: Bool, activeInstallId: InstallID,
        deactivatedInstallIds: [InstallID], version: Int64
    ) {
        self.installId = installId
        self.externalId = externalId
        self.userId = userId
        self.personCreated = personCreated
        self.activeInstallId = activeInstallId
        self.deactivatedInstallIds = deactivatedInstallIds
        self.version = version
    }

    public var subject: String { installId.text }
}

/// A `link.request` or `link.establish` that was rejected.
public struct LinkRefused: EventMessage {
    public static let type = "identity.link.refused.v1"
    public var installId: InstallID
    public var reason: ReasonCode

    public init(installId: InstallID, reason: ReasonCode) {
        self.installId = installId
        self.reason = reason
    }

    public var subject: String { installId.text }
}

public struct InstallDetached: EventMessage {
    public static let type = "identity.link.install-detached.v1"
    public var installId: InstallID
    public var userId: UserID
    /// Counts the changes of the install, see ``LinkResult/version``.
    public var version: Int64

    public init(installId: InstallID, userId: UserID, version: Int64) {
        self.installId = installId
        self.userId = userId
        self.version = version
    }

    public var subject: String { installId.text }
}

/// The install's status or its being active changed. `cause` says by what.
public struct InstallStatusChanged: EventMessage {
    public static let type = "identity.link.install-status-changed.v1"

    public enum Cause: String, WireEnum {
        /// The person moved to another install.
        case superseded
        /// `link.set-install-status`.
        case command
    }

    public var installId: InstallID
    public var status: InstallStatus
    public var isActive: Bool
    public var userId: UserID?
    /// Whether the user has an external id.
    public var isLinked: Bool
    public var cause: Cause
    /// Counts the changes of the install, see ``LinkResult/version``.
    public var version: Int64

    public init(
        installId: InstallID, status: InstallStatus, isActive: Bool, userId: UserID?, isLinked: Bool, cause: Cause,
        version: Int64
    ) {
        self.installId = installId
        self.status = status
        self.isActive = isActive
        self.userId = userId
        self.isLinked = isLinked
        self.cause = cause
        self.version = version
    }

    public var subject: String { installId.text }
}

/// Carries no external id and no install: it must be safe to keep.
public struct UserErased: EventMessage {
    public static let type = "identity.link.user-erased.v1"
    public var userId: UserID

    public init(userId: UserID) { self.userId = userId }

    public var subject: String { userId.text }
}
