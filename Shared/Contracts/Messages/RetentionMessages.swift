// SPDX-License-Identifier: Apache-2.0

// What nobody has used for as long as the app's `retention` says goes. Each service looks for that itself, and sends itself
// the command that decides it: whoever was seen meanwhile stays.

/// The sync service to itself: nobody has come back to an anonymous profile.
public struct ExpireProfile: CommandMessage {
    public static let type = "identity.sync.expire-profile.v1"
    public static let scope = Scope.internal
    public var mpid: MPID
    /// When it was seen last as far as was known: one that was seen since stays.
    public var lastSeen: Timestamp

    public init(mpid: MPID, lastSeen: Timestamp) {
        self.mpid = mpid
        self.lastSeen = lastSeen
    }

    public var partitionSubject: String { mpid.description }

    public func validate() throws(Rejection) {}
}

/// The sync service to itself: nobody has used a device.
public struct ExpireDevice: CommandMessage {
    public static let type = "identity.sync.expire-device.v1"
    public static let scope = Scope.internal
    public var deviceId: DeviceID
    /// When it was used last as far as was known.
    public var lastSeen: Timestamp

    public init(deviceId: DeviceID, lastSeen: Timestamp) {
        self.deviceId = deviceId
        self.lastSeen = lastSeen
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) { try Validation.id(deviceId, "deviceId") }
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

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) { try Validation.id(deviceId, "deviceId") }
}

/// The user service to itself: a user who was never linked has not come back.
public struct ExpireUser: CommandMessage {
    public static let type = "identity.user.expire-user.v1"
    public static let scope = Scope.internal
    public var installId: InstallID
    public var userId: UserID
    /// When the user came last as far as was known. Absent: that was not noted, and is from then on.
    public var lastSeen: Timestamp?

    public init(installId: InstallID, userId: UserID, lastSeen: Timestamp?) {
        self.installId = installId
        self.userId = userId
        self.lastSeen = lastSeen
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.id(userId, "userId")
    }
}

/// The user service: a user who was never linked has not come back to this install. Nobody is on it from then on, and the
/// user is gone if it was on no other. Who is linked by then stays. Result: ``InstallResult``.
public struct ExpirePerson: CommandMessage {
    public static let type = "identity.link.expire-user.v1"
    public static let scope = Scope.internal
    public var installId: InstallID
    public var userId: UserID

    public init(installId: InstallID, userId: UserID) {
        self.installId = installId
        self.userId = userId
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.id(userId, "userId")
    }
}

// MARK: Events

/// A profile is gone because nobody came back to it. Its MPID stays unused.
public struct ProfileExpired: EventMessage {
    public static let type = "identity.sync.profile-expired.v1"
    public var mpid: MPID
    public var lastSeen: Timestamp

    public init(mpid: MPID, lastSeen: Timestamp) {
        self.mpid = mpid
        self.lastSeen = lastSeen
    }

    public var subject: String { mpid.description }
}

/// What was known of a device is gone because nobody used it.
public struct DeviceExpired: EventMessage {
    public static let type = "identity.sync.device-expired.v1"
    public var deviceId: DeviceID
    public var lastSeen: Timestamp

    public init(deviceId: DeviceID, lastSeen: Timestamp) {
        self.deviceId = deviceId
        self.lastSeen = lastSeen
    }

    public var subject: String { deviceId.text }
}

/// The session of a device on which nobody is logged in is gone because nobody used it: it reads as one that there never was.
public struct SessionExpired: EventMessage {
    public static let type = "identity.verification.session-expired.v1"
    public var deviceId: DeviceID
    public var lastSeen: Timestamp

    public init(deviceId: DeviceID, lastSeen: Timestamp) {
        self.deviceId = deviceId
        self.lastSeen = lastSeen
    }

    public var subject: String { deviceId.text }
}

/// A user who was never linked is gone because nobody came back.
public struct UserExpired: EventMessage {
    public static let type = "identity.link.user-expired.v1"
    public var userId: UserID
    /// The install that it was on last.
    public var installId: InstallID

    public init(userId: UserID, installId: InstallID) {
        self.userId = userId
        self.installId = installId
    }

    public var subject: String { userId.text }
}
