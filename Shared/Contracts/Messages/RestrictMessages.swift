// SPDX-License-Identifier: Apache-2.0

/// A person asked that what is known of them be kept and not used (GDPR, Article 18), or asks for that no longer. The profile
/// is found as by ``GetProfile``. Result: ``RestrictResult``.
public struct RestrictProfile: RepairCommand {
    public static let type = "identity.sync.restrict.v1"
    public var mpid: MPID?
    public var identity: GetProfile.Named?
    public var isRestricted: Bool
    public var author: String
    public var reason: String

    public init(
        mpid: MPID? = nil, identity: GetProfile.Named? = nil, isRestricted: Bool, author: String, reason: String
    ) {
        self.mpid = mpid
        self.identity = identity
        self.isRestricted = isRestricted
        self.author = author
        self.reason = reason
    }

    public var partitionSubject: String { subject.name }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return (identity?.type ?? "", identity?.value ?? "")
    }

    public func validate() throws(Rejection) {
        guard (mpid == nil) != (identity == nil) else {
            throw Rejection(.invalidRequest, "data needs mpid or identity, and not both.")
        }
        if let identity {
            try Validation.identityType(identity.type, "identity.type")
            try Validation.identityValue(identity.value, "identity.value")
        }
        try validateReason()
    }
}

/// `sync.restrict`: the profile as it is now.
public struct RestrictResult: CommandResult {
    public var mpid: MPID
    public var isRestricted: Bool
    /// Of the link service, where a link says who this is: the user's installs are disabled as long as it is restricted.
    public var userId: UserID?

    public init(mpid: MPID, isRestricted: Bool, userId: UserID?) {
        self.mpid = mpid
        self.isRestricted = isRestricted
        self.userId = userId
    }
}

// MARK: Events

/// Support restricted a profile, or ended that (``RestrictProfile``).
public struct RestrictionChanged: EventMessage {
    public static let type = "identity.sync.restriction-changed.v1"
    public var mpid: MPID
    public var isRestricted: Bool
    public var author: String
    public var reason: String

    public init(mpid: MPID, isRestricted: Bool, author: String, reason: String) {
        self.mpid = mpid
        self.isRestricted = isRestricted
        self.author = author
        self.reason = reason
    }

    public var subject: String { mpid.description }
}

/// A profile restricts a user of the link service from now on, or no longer: the profile was restricted or is not any more, or a
/// restricted one was marked with the user or is not any more.
public struct UserRestrictionChanged: EventMessage {
    public static let type = "identity.sync.user-restriction-changed.v1"
    public var userId: UserID
    public var mpid: MPID
    /// Another profile may restrict the user still.
    public var isRestricted: Bool
    /// RFC 3339. Of two about one user and profile, the greater is true.
    public var changedAt: Timestamp

    public init(userId: UserID, mpid: MPID, isRestricted: Bool, changedAt: Timestamp) {
        self.userId = userId
        self.mpid = mpid
        self.isRestricted = isRestricted
        self.changedAt = changedAt
    }

    public var subject: String { userId.text }
}
