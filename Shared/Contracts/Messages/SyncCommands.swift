// SPDX-License-Identifier: Apache-2.0

/// Adds, changes and removes identities of one profile. Never makes or switches profiles. Result: ``SyncResult``.
public struct ModifyIdentities: CommandMessage {
    public static let type = "identity.sync.modify.v1"
    public static let scope = Scope.identitySync

    public struct Change: Codable, Sendable, Hashable {
        /// A wire name of ``IdentityType``.
        public var identityType: String
        /// What the device thinks the value is; may be stale. Says which value is replaced where a type has several.
        public var oldValue: String?
        /// Absent or `null` removes.
        public var newValue: String?

        public init(identityType: String, oldValue: String? = nil, newValue: String? = nil) {
            self.identityType = identityType
            self.oldValue = oldValue
            self.newValue = newValue
        }
    }

    public var mpid: MPID
    public var changes: [Change]
    /// The device that asks, if it is known: orders the command with the device's others.
    public var deviceId: DeviceID?

    public init(mpid: MPID, changes: [Change], deviceId: DeviceID? = nil) {
        self.mpid = mpid
        self.changes = changes
        self.deviceId = deviceId
    }

    public var partitionSubject: String { deviceId?.text ?? mpid.description }

    public func validate() throws(Rejection) {
        guard changes.count <= 100 else {
            throw Rejection(.invalidRequest, "data.changes has \(changes.count) entries; 100 are allowed.")
        }
        for (index, change) in changes.enumerated() {
            try Validation.identityType(change.identityType, "changes[\(index)].identityType")
            if let value = change.newValue { try Validation.identityValue(value, "changes[\(index)].newValue") }
        }
        if let deviceId { try Validation.id(deviceId, "deviceId") }
    }
}

/// Carries what a source profile did over to a destination, after a delay (S39, F39). Result: ``AliasResult``.
public struct AliasUsers: CommandMessage {
    public static let type = "identity.sync.alias.v1"
    public static let scope = Scope.identitySync

    public enum Reach: String, WireEnum { case device, mpid }

    public var sourceMPID: MPID
    public var destinationMPID: MPID
    /// Milliseconds since 1970. Absent: as far back as the alias window reaches.
    public var startUnixtimeMs: Int64?
    /// Absent: now.
    public var endUnixtimeMs: Int64?
    /// Absent: `device`.
    public var scope: Reach?
    public var deviceApplicationStamp: String?

    public init(
        sourceMPID: MPID, destinationMPID: MPID, startUnixtimeMs: Int64? = nil, endUnixtimeMs: Int64? = nil,
        scope: Reach? = nil, deviceApplicationStamp: String? = nil
    ) {
        self.sourceMPID = sourceMPID
        self.destinationMPID = destinationMPID
        self.startUnixtimeMs = startUnixtimeMs
        self.endUnixtimeMs = endUnixtimeMs
        self.scope = scope
        self.deviceApplicationStamp = deviceApplicationStamp
    }

    public var partitionSubject: String { destinationMPID.description }

    public func validate() throws(Rejection) {
        if let stamp = deviceApplicationStamp { try Validation.identityValue(stamp, "deviceApplicationStamp") }
    }
}

/// The sync service to itself: the time of an accepted alias has come.
public struct ApplyAlias: CommandMessage {
    public static let type = "identity.sync.apply-alias.v1"
    public static let scope = Scope.internal
    public var aliasId: AliasID
    public var destinationMPID: MPID

    public init(aliasId: AliasID, destinationMPID: MPID) {
        self.aliasId = aliasId
        self.destinationMPID = destinationMPID
    }

    public var partitionSubject: String { destinationMPID.description }

    public func validate() throws(Rejection) { try Validation.id(aliasId, "aliasId") }
}

/// The users seen on a device. Result: ``DeviceUsersResult``.
public struct GetDeviceUsers: CommandMessage {
    public static let type = "identity.sync.get-users.v1"
    public static let scope = Scope.identitySync
    public var deviceId: DeviceID

    public init(deviceId: DeviceID) { self.deviceId = deviceId }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) { try Validation.id(deviceId, "deviceId") }
}

/// `sync.alias`: accepted, to be applied when the delay is over.
public struct AliasResult: CommandResult {
    public var aliasId: AliasID
    /// Whether it will be applied. False when one of the silent rules drops it; an `alias-dropped` event says which.
    public var isScheduled: Bool
    /// RFC 3339; absent when it is dropped.
    public var appliesAt: Timestamp?

    public init(aliasId: AliasID, isScheduled: Bool, appliesAt: Timestamp?) {
        self.aliasId = aliasId
        self.isScheduled = isScheduled
        self.appliesAt = appliesAt
    }
}

/// `sync.get-users`: newest last-seen first; the first one is the device's current user.
public struct DeviceUsersResult: CommandResult {
    public struct User: Codable, Sendable, Hashable {
        public var mpid: MPID
        /// RFC 3339: when the device had this user first, or a user that was aliased into it if that was earlier.
        public var firstSeen: Timestamp
        /// RFC 3339.
        public var lastSeen: Timestamp
        public var isLoggedIn: Bool
        public var isCurrent: Bool
        public var name: String?
        /// All values of each type, the oldest first.
        @SortedKeys public var identities: [IdentityType.RawValue: [String]]

        public init(
            mpid: MPID, firstSeen: Timestamp, lastSeen: Timestamp, isLoggedIn: Bool, isCurrent: Bool, name: String?,
            identities: [String: [String]]
        ) {
            self.mpid = mpid
            self.firstSeen = firstSeen
            self.lastSeen = lastSeen
            self.isLoggedIn = isLoggedIn
            self.isCurrent = isCurrent
            self.name = name
            self.identities = identities
        }
    }

    public var deviceId: DeviceID
    public var users: [User]

    public init(deviceId: DeviceID, users: [User]) {
        self.deviceId = deviceId
        self.users = users
    }
}
