// SPDX-License-Identifier: Apache-2.0

/// A command that is done as it is written or not at all: a member that nobody reads is a mistake of whoever wrote it by
/// hand, and refuses it.
public protocol CommandByHand: CommandMessage {}

/// A change that a person asks for and answers for. Both stand in what is told of it.
public protocol RepairCommand: CommandByHand {
    /// Who asks, in the words of whoever sends it: 1 to 255 bytes. Nobody has proved it; `authid` in the envelope is the key
    /// that was used.
    var author: String { get }
    /// Why, for whoever asks later: 1 to 1,000 bytes.
    var reason: String { get }
}

extension RepairCommand {
    public static var scope: Scope { .support }

    /// - Throws: `INVALID_REQUEST`.
    func validateReason() throws(Rejection) {
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// Reads a user of the link service, found by one of three ids. Result: ``LinkedUserResult``.
public struct GetLinkedUser: PersonQuery {
    public static let type = "identity.link.get-user.v1"
    public static let scope = Scope.support
    public var userId: UserID?
    public var externalId: ExternalID?
    /// Of an install that the user is on.
    public var installId: InstallID?
    /// Where the page before ended (``LinkedUserResult/next``).
    public var after: String?

    public init(
        userId: UserID? = nil, externalId: ExternalID? = nil, installId: InstallID? = nil, after: String? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.installId = installId
        self.after = after
    }

    public var partitionSubject: String { subject.name }

    public var subject: (kind: String, name: String) {
        if let externalId { return ("externalId", externalId.text) }
        if let userId { return ("userId", userId.text) }
        return ("installId", installId?.text ?? "")
    }

    public func validate() throws(Rejection) {
        guard [userId?.text, externalId?.text, installId?.text].count(where: { $0 != nil }) == 1 else {
            throw Rejection(.invalidRequest, "data needs one of userId, externalId and installId.")
        }
        if let userId { try Validation.id(userId, "userId") }
        if let externalId { try Validation.identityValue(externalId, "externalId") }
        if let installId { try Validation.id(installId, "installId") }
        try Validation.page(after)
    }
}

/// Reads a profile, found by its MPID or by one identity, as an erasure finds it (S90): nobody is found for certain by what
/// several people have. Result: ``ProfileResult``.
public struct GetProfile: PersonQuery {
    public static let type = "identity.sync.get-profile.v1"
    public static let scope = Scope.support

    public struct Named: Codable, Sendable, Hashable {
        /// A wire name.
        public var type: IdentityType.RawValue
        public var value: String

        public init(type: IdentityType.RawValue, value: String) {
            self.type = type
            self.value = value
        }

        /// `nil` for a type that there is not.
        public var identity: Identity? {
            IdentityType(rawValue: type).map { Identity($0, IdentityValue(value)) }
        }
    }

    public var mpid: MPID?
    public var identity: Named?
    /// Where the page before ended (``ProfileResult/next``).
    public var after: String?

    public init(mpid: MPID, after: String? = nil) {
        self.mpid = mpid
        self.after = after
    }

    public init(identity: Named, after: String? = nil) {
        self.identity = identity
        self.after = after
    }

    /// The identity, if it is of a type that there is.
    public var named: Identity? { identity?.identity }

    public var partitionSubject: String { subject.name }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return (identity?.type ?? "", identity?.value ?? "")
    }

    public func validate() throws(Rejection) {
        guard (mpid == nil) != (identity == nil) else {
            throw Rejection(.invalidRequest, "data needs mpid or identity, and not both.")
        }
        try Validation.page(after)
        guard let identity else { return }
        try Validation.identityType(identity.type, "identity.type")
        try Validation.identityValue(identity.value, "identity.value")
    }
}

/// Makes an install its person's active one, whatever elections said. Result: ``InstallResult``.
public struct MakeInstallActive: RepairCommand {
    public static let type = "identity.link.make-active.v1"
    public var installId: InstallID
    public var author: String
    public var reason: String

    public init(installId: InstallID, author: String, reason: String) {
        self.installId = installId
        self.author = author
        self.reason = reason
    }

    public var partitionSubject: String { installId.text }
    public var subject: (kind: String, name: String) { ("installId", installId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try validateReason()
    }
}

/// Takes the external id off a person, who stays on its installs, unlinked; nothing links the two again but
/// ``ChangeExternalID``. Result: ``LinkedUserResult``.
public struct UnlinkUser: RepairCommand {
    public static let type = "identity.link.unlink-user.v1"
    public var userId: UserID
    public var author: String
    public var reason: String

    public init(userId: UserID, author: String, reason: String) {
        self.userId = userId
        self.author = author
        self.reason = reason
    }

    public var partitionSubject: String { userId.text }
    public var subject: (kind: String, name: String) { ("userId", userId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(userId, "userId")
        try validateReason()
    }
}

/// Gives a person another external id, or its first one. The one before names nobody for a while. The person is found by
/// `userId` or by `externalId`, the present one. Result: ``LinkedUserResult``.
public struct ChangeExternalID: RepairCommand {
    public static let type = "identity.link.change-external-id.v1"
    public var userId: UserID?
    public var externalId: ExternalID?
    public var newExternalId: ExternalID
    /// Where the new one is held for somebody who had it before, the hold ends.
    public var endHold: Bool?
    public var author: String
    public var reason: String

    public init(
        userId: UserID? = nil, externalId: ExternalID? = nil, newExternalId: ExternalID, endHold: Bool? = nil,
        author: String, reason: String
    ) {
        self.userId = userId
        self.externalId = externalId
        self.newExternalId = newExternalId
        self.endHold = endHold
        self.author = author
        self.reason = reason
    }

    public var partitionSubject: String { newExternalId.text }

    public var subject: (kind: String, name: String) {
        userId.map { ("userId", $0.text) } ?? ("externalId", externalId?.text ?? "")
    }

    public func validate() throws(Rejection) {
        guard (userId == nil) != (externalId == nil) else {
            throw Rejection(.invalidRequest, "data needs userId or externalId, and not both.")
        }
        if let userId { try Validation.id(userId, "userId") }
        if let externalId { try Validation.identityValue(externalId, "externalId") }
        try Validation.identityValue(newExternalId, "newExternalId")
        try validateReason()
    }
}

/// A user of the link service, and the installs that it is on.
public struct LinkedUserResult: CommandResult {
    public struct Install: Codable, Sendable, Hashable {
        public var installId: InstallID
        public var device: Device
        public var status: InstallStatus
        public var isActive: Bool
        /// `nil` where it is active.
        public var inactiveBecause: InactiveBecause?
        public var isUsersFirst: Bool
        /// Counts the changes of the install, see ``LinkResult/version``.
        public var version: Int64

        public init(
            installId: InstallID, device: Device, status: InstallStatus, isActive: Bool,
            inactiveBecause: InactiveBecause?, isUsersFirst: Bool, version: Int64
        ) {
            self.installId = installId
            self.device = device
            self.status = status
            self.isActive = isActive
            self.inactiveBecause = inactiveBecause
            self.isUsersFirst = isUsersFirst
            self.version = version
        }
    }

    public var userId: UserID
    /// `nil` for one that is not linked.
    public var externalId: ExternalID?
    /// Since when the user has the external id.
    public var linkedAt: Timestamp?
    /// When the command was given that made the user; `nil` for an erased one.
    public var createdAt: Timestamp?
    public var isErased: Bool
    /// The latest to get this user first, 100 at most.
    public var installs: [Install]
    /// The next page's ``GetLinkedUser/after``, for the same question; `nil` on the last page.
    public var next: String?

    public init(
        userId: UserID, externalId: ExternalID?, linkedAt: Timestamp?, createdAt: Timestamp?, isErased: Bool,
        installs: [Install], next: String? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.linkedAt = linkedAt
        self.createdAt = createdAt
        self.isErased = isErased
        self.installs = installs
        self.next = next
    }
}

/// A profile of the sync service.
public struct ProfileResult: CommandResult {
    public struct Device: Codable, Sendable, Hashable {
        public var deviceId: DeviceID
        /// Whether the profile is the device's user now, or only the anonymous one that a logout returns to.
        public var isCurrent: Bool
        public var firstSeen: Timestamp
        public var lastSeen: Timestamp

        public init(deviceId: DeviceID, isCurrent: Bool, firstSeen: Timestamp, lastSeen: Timestamp) {
            self.deviceId = deviceId
            self.isCurrent = isCurrent
            self.firstSeen = firstSeen
            self.lastSeen = lastSeen
        }
    }

    public var mpid: MPID
    /// The values of each type, the oldest first; of more than 48,000 bytes the latest. `identityCount` says how many there
    /// are.
    @SortedKeys public var identities: [IdentityType.RawValue: [String]]
    public var identityCount: Int
    public var isLoggedIn: Bool
    public var firstSeen: Timestamp
    public var lastSeen: Timestamp
    /// The first-seen of a source that was aliased into the profile, when it was earlier.
    public var aliasedSince: Timestamp?
    /// Whoever was aliased into the profile, 1,000 at most; `aliasedFromCount` says how many there are.
    public var aliasedFrom: [MPID]
    public var aliasedFromCount: Int
    public var name: String?
    /// Of the link service, where a link says who this is.
    public var userId: UserID?
    /// The one on which the profile was seen last first, 100 at most; `deviceCount` says how many there are.
    public var devices: [Device]
    public var deviceCount: Int
    /// The next page's ``GetProfile/after``, for the same question; `nil` on the last page.
    public var next: String?
    /// What keeps the profile and others apart (`sync.detach`): the latest, 100 at most, and of at most 12,000 bytes of
    /// values. `barrierCount` says how many there are.
    public var barriers: [MergeBarrier]
    public var barrierCount: Int
    /// What is known of it is kept and not used (`sync.restrict`).
    public var isRestricted: Bool
    /// Lost its last identity: nobody finds it again.
    public var isOrphaned: Bool
    /// Nothing is left but the MPID (`sync.get-erasure`).
    public var isErased: Bool

    public init(
        mpid: MPID, identities: [IdentityType.RawValue: [String]], identityCount: Int, isLoggedIn: Bool,
        firstSeen: Timestamp, lastSeen: Timestamp, aliasedSince: Timestamp?, aliasedFrom: [MPID], aliasedFromCount: Int,
        name: String?, userId: UserID?, devices: [Device], deviceCount: Int, next: String? = nil,
        barriers: [MergeBarrier] = [], barrierCount: Int = 0, isRestricted: Bool = false, isOrphaned: Bool,
        isErased: Bool
    ) {
        self.mpid = mpid
        self.identities = identities
        self.identityCount = identityCount
        self.isLoggedIn = isLoggedIn
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.aliasedSince = aliasedSince
        self.aliasedFrom = aliasedFrom
        self.aliasedFromCount = aliasedFromCount
        self.name = name
        self.userId = userId
        self.devices = devices
        self.deviceCount = deviceCount
        self.next = next
        self.barriers = barriers
        self.barrierCount = barrierCount
        self.isRestricted = isRestricted
        self.isOrphaned = isOrphaned
        self.isErased = isErased
    }
}

// MARK: Events

/// A person lost its external id (``UnlinkUser``).
public struct ExternalIDRemoved: EventMessage {
    public static let type = "identity.link.external-id-removed.v1"
    public var userId: UserID
    public var externalId: ExternalID
    /// Links of before that the person had are over.
    public var unlinkedAt: Timestamp
    public var author: String
    public var reason: String

    public init(
        userId: UserID, externalId: ExternalID, unlinkedAt: Timestamp, author: String, reason: String
    ) {
        self.userId = userId
        self.externalId = externalId
        self.unlinkedAt = unlinkedAt
        self.author = author
        self.reason = reason
    }

    public var subject: String { userId.text }
}

/// A person has another external id (``ChangeExternalID``).
public struct ExternalIDChanged: EventMessage {
    public static let type = "identity.link.external-id-changed.v1"
    public var userId: UserID
    public var externalId: ExternalID
    /// `nil` for a person that had none.
    public var previousExternalId: ExternalID?
    /// Since when the person has the external id, see ``Linked/linkedAt``.
    public var linkedAt: Timestamp
    public var author: String
    public var reason: String

    public init(
        userId: UserID, externalId: ExternalID, previousExternalId: ExternalID?, linkedAt: Timestamp, author: String,
        reason: String
    ) {
        self.userId = userId
        self.externalId = externalId
        self.previousExternalId = previousExternalId
        self.linkedAt = linkedAt
        self.author = author
        self.reason = reason
    }

    public var subject: String { userId.text }
}
