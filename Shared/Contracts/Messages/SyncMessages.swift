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
public struct GetDeviceUsers: PersonQuery {
    public static let type = "identity.sync.get-users.v1"
    public static let scope = Scope.identitySync
    public var deviceId: DeviceID

    public init(deviceId: DeviceID) { self.deviceId = deviceId }

    public var partitionSubject: String { deviceId.text }

    public var subject: (kind: String, name: String) { ("deviceId", deviceId.text) }

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

// MARK: Events

/// What made a sync event happen.
public enum SyncCause: String, WireEnum {
    case identify, login, logout, modify
    /// `sync.detach`.
    case detach
    /// A link of the link service (`sync.fromLinks`).
    case link
    /// `sync.erase-profile`.
    case erase
    /// The link service erased the person (`sync.forget`).
    case forget
    /// `sync.import-profiles`.
    case importing = "import"
    /// Nobody came back (the app's `retention`).
    case expire
}

public struct ProfileCreated: EventMessage {
    public static let type = "identity.sync.profile-created.v1"
    public var mpid: MPID
    public var cause: SyncCause
    public var rule: SyncRule
    /// S15.
    public var isLoggedIn: Bool
    public var identities: [Identity]

    public init(mpid: MPID, cause: SyncCause, rule: SyncRule, isLoggedIn: Bool, identities: [Identity]) {
        self.mpid = mpid
        self.cause = cause
        self.rule = rule
        self.isLoggedIn = isLoggedIn
        self.identities = identities
    }

    public var subject: String { mpid.description }
}

/// The device has another user, or its user became known or anonymous (`previousMPID` is `mpid` then).
public struct CurrentUserChanged: EventMessage {
    public static let type = "identity.sync.current-user-changed.v1"
    public var deviceId: DeviceID
    public var previousMPID: MPID?
    public var mpid: MPID
    public var cause: SyncCause
    public var rule: SyncRule
    public var isLoggedIn: Bool
    public var isEphemeral: Bool
    /// See ``SyncResult/move``.
    public var move: Int64

    public init(
        deviceId: DeviceID, previousMPID: MPID?, mpid: MPID, cause: SyncCause, rule: SyncRule, isLoggedIn: Bool,
        isEphemeral: Bool, move: Int64
    ) {
        self.deviceId = deviceId
        self.previousMPID = previousMPID
        self.mpid = mpid
        self.cause = cause
        self.rule = rule
        self.isLoggedIn = isLoggedIn
        self.isEphemeral = isEphemeral
        self.move = move
    }

    public var subject: String { deviceId.text }
}

/// Identities of an existing profile came or went.
public struct IdentitiesChanged: EventMessage {
    public static let type = "identity.sync.identities-changed.v1"

    public enum Reason: String, WireEnum {
        /// An identify, login or link brought them.
        case attached
        /// A login or identify brought another value of a unique type, or the user was given another external id.
        case replaced
        /// `sync.modify` of this profile.
        case modified
        /// Another profile has the unique value now, by `sync.modify` or because its user was given the external id.
        case taken
        /// A limit of the app's settings: the oldest went.
        case limit
        /// Support took them from one profile and gave them to another (`sync.detach`).
        case detached
        /// A login dropped the device's anonymous user, or a profile lost its customer id to another one.
        case cleared
    }

    public var mpid: MPID
    public var cause: SyncCause
    public var reason: Reason
    public var added: [Identity]
    public var removed: [Identity]
    public var isLoggedIn: Bool

    public init(
        mpid: MPID, cause: SyncCause, reason: Reason, added: [Identity], removed: [Identity], isLoggedIn: Bool
    ) {
        self.mpid = mpid
        self.cause = cause
        self.reason = reason
        self.added = added
        self.removed = removed
        self.isLoggedIn = isLoggedIn
    }

    public var subject: String { mpid.description }
}

/// A profile lost its last identity. It is kept, but is never returned again.
public struct ProfileOrphaned: EventMessage {
    public static let type = "identity.sync.profile-orphaned.v1"
    public var mpid: MPID
    public var cause: SyncCause
    /// The profile that took the identity, if one did.
    public var takenBy: MPID?

    public init(mpid: MPID, cause: SyncCause, takenBy: MPID?) {
        self.mpid = mpid
        self.cause = cause
        self.takenBy = takenBy
    }

    public var subject: String { mpid.description }
}

/// The profile is a user's of the link service from now on, or another user's, or nobody's (S142). An erasure tells it by
/// `sync.profile-erased` instead.
public struct LinkedUserChanged: EventMessage {
    public static let type = "identity.sync.linked-user-changed.v1"
    public var mpid: MPID
    public var cause: SyncCause
    public var previousUserId: UserID?
    public var userId: UserID?
    /// All that the profile has: these come along with it.
    public var identities: [Identity]

    public init(
        mpid: MPID, cause: SyncCause, previousUserId: UserID?, userId: UserID?, identities: [Identity]
    ) {
        self.mpid = mpid
        self.cause = cause
        self.previousUserId = previousUserId
        self.userId = userId
        self.identities = identities
    }

    public var subject: String { mpid.description }
}

/// Support gave a user the customer id of another profile, which counts as aliased into the user's from now on: it is in
/// the user's export, and goes with the user's erasure (S122).
public struct ProfileJoined: EventMessage {
    public static let type = "identity.sync.profile-joined.v1"
    public var sourceMPID: MPID
    public var destinationMPID: MPID
    public var cause: SyncCause
    /// All that the source still has.
    public var identities: [Identity]

    public init(sourceMPID: MPID, destinationMPID: MPID, cause: SyncCause, identities: [Identity]) {
        self.sourceMPID = sourceMPID
        self.destinationMPID = destinationMPID
        self.cause = cause
        self.identities = identities
    }

    public var subject: String { destinationMPID.description }
}

/// An alias was applied.
public struct Aliased: EventMessage {
    public static let type = "identity.sync.aliased.v1"
    public var aliasId: AliasID
    public var sourceMPID: MPID
    public var destinationMPID: MPID
    public var startUnixtimeMs: Int64
    public var endUnixtimeMs: Int64
    public var scope: AliasUsers.Reach
    public var deviceApplicationStamp: String?
    /// RFC 3339: since when the destination counts as seen, now that the source belongs to it.
    public var firstSeen: Timestamp

    public init(
        aliasId: AliasID, sourceMPID: MPID, destinationMPID: MPID, startUnixtimeMs: Int64, endUnixtimeMs: Int64,
        scope: AliasUsers.Reach, deviceApplicationStamp: String?, firstSeen: Timestamp
    ) {
        self.aliasId = aliasId
        self.sourceMPID = sourceMPID
        self.destinationMPID = destinationMPID
        self.startUnixtimeMs = startUnixtimeMs
        self.endUnixtimeMs = endUnixtimeMs
        self.scope = scope
        self.deviceApplicationStamp = deviceApplicationStamp
        self.firstSeen = firstSeen
    }

    public var subject: String { destinationMPID.description }
}

/// An alias was accepted and will not be applied (S44).
public struct AliasDropped: EventMessage {
    public static let type = "identity.sync.alias-dropped.v1"

    public enum Rule: String, WireEnum {
        case sourceWasSourceBefore = "source-was-source-before"
        case sourceWasDestinationBefore = "source-was-destination-before"
        case destinationWasSourceBefore = "destination-was-source-before"
        /// It waited for its time, and one of the two was erased.
        case erased
        /// It waited for its time, and support took one of the two from the other (`sync.detach`).
        case detached
        /// Nobody vouched for it, and one of the two, both anonymous then, was known when its time had come (S114).
        case becameKnown = "became-known"
        /// One of the two is restricted now that its time has come (`sync.restrict`).
        case restricted
    }

    public var aliasId: AliasID
    public var sourceMPID: MPID
    public var destinationMPID: MPID
    public var rule: Rule

    public init(aliasId: AliasID, sourceMPID: MPID, destinationMPID: MPID, rule: Rule) {
        self.aliasId = aliasId
        self.sourceMPID = sourceMPID
        self.destinationMPID = destinationMPID
        self.rule = rule
    }

    public var subject: String { destinationMPID.description }
}

/// A profile is gone with all it held. Its MPID is never used again.
public struct ProfileErased: EventMessage {
    public static let type = "identity.sync.profile-erased.v1"
    public var mpid: MPID
    public var cause: SyncCause

    public init(mpid: MPID, cause: SyncCause) {
        self.mpid = mpid
        self.cause = cause
    }

    public var subject: String { mpid.description }
}

/// The device's current user was erased: it has none until its next identify, login or logout.
public struct CurrentUserErased: EventMessage {
    public static let type = "identity.sync.current-user-erased.v1"
    public var deviceId: DeviceID
    /// Who is gone.
    public var mpid: MPID
    public var cause: SyncCause
    /// See ``SyncResult/move``.
    public var move: Int64

    public init(deviceId: DeviceID, mpid: MPID, cause: SyncCause, move: Int64) {
        self.deviceId = deviceId
        self.mpid = mpid
        self.cause = cause
        self.move = move
    }

    public var subject: String { deviceId.text }
}

/// One value is shared by half as many profiles as the app's limit allows: most likely it names nobody. Said before
/// the limit takes it from anybody.
public struct ValueTooCommon: EventMessage {
    public static let type = "identity.sync.value-too-common.v1"
    public var type: IdentityType
    /// SHA-256 of the value as it is compared, in hex. The value itself is not for everybody who reads events.
    public var digest: String
    public var holders: Int
    /// `limits.profilesPerValue`.
    public var limit: Int

    public init(type: IdentityType, digest: String, holders: Int, limit: Int) {
        self.type = type
        self.digest = digest
        self.holders = holders
        self.limit = limit
    }

    public var subject: String { digest }
}
