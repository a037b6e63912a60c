// SPDX-License-Identifier: Apache-2.0

// How a person goes from every service (docs/guarantees.md): whoever is asked first erases and sends the others the
// internal commands below. All of them succeed also when there is nothing to forget.

/// Erases a person's profile for good: identities, name, devices' pointers, aliases. What remains is its MPID, which is
/// never used again. `pending` until all services have erased. Result: ``ErasureCertificate``; whom the identities do
/// not name for certain is refused with ``IdentityHolders``.
public struct EraseProfile: CommandMessage {
    public static let type = "identity.sync.erase-profile.v1"
    public static let scope = Scope.userDelete

    /// Which persons of the link service go with the profiles.
    public enum Persons: String, WireEnum {
        /// Whom a link marked a profile with.
        case marked
        /// Also whoever has a profile's customer id as external id.
        case byCustomerId
        case none
    }

    /// Either this or ``identities``.
    public var mpid: MPID?
    /// By wire name of the type. They find one profile, as a search does (S90).
    @SortedKeys public var identities: [IdentityType.RawValue: String]
    /// All profiles that the identities find go, when they are several (S91).
    public var everyHolder: Bool?
    /// Absent: the app's default (S93).
    public var persons: Persons?

    public init(mpid: MPID, persons: Persons? = nil) {
        self.mpid = mpid
        self.identities = [:]
        self.persons = persons
    }

    public init(
        identities: [IdentityType.RawValue: String], everyHolder: Bool? = nil, persons: Persons? = nil
    ) {
        self.identities = identities
        self.everyHolder = everyHolder
        self.persons = persons
    }

    private enum CodingKeys: String, CodingKey { case mpid, identities, everyHolder, persons }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mpid = try container.decodeIfPresent(MPID.self, forKey: .mpid)
        identities = try container.decodeIfPresent([String: String].self, forKey: .identities) ?? [:]
        everyHolder = try container.decodeIfPresent(Bool.self, forKey: .everyHolder)
        persons = try container.decodeIfPresent(Persons.self, forKey: .persons)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(mpid, forKey: .mpid)
        if !identities.isEmpty { try container.encode(_identities, forKey: .identities) }
        try container.encodeIfPresent(everyHolder, forKey: .everyHolder)
        try container.encodeIfPresent(persons, forKey: .persons)
    }

    public var partitionSubject: String { subject.name }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return identities.min { $0.key < $1.key }.map { ($0.key, $0.value) } ?? ("", "")
    }

    public func validate() throws(Rejection) {
        guard (mpid == nil) != identities.isEmpty else {
            throw Rejection(.invalidRequest, "data needs either mpid or identities.")
        }
        for (type, value) in identities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "identities")
            try Validation.identityValue(value, "identities.\(type)")
        }
    }
}

/// The link service erased a person: the profiles that were the person's go as with ``EraseProfile``. Result:
/// ``ErasureCertificate``.
public struct ForgetProfiles: CommandMessage {
    public static let type = "identity.sync.forget.v1"
    public static let scope = Scope.internal
    /// Profiles go that are marked with this user and one of these external ids.
    public var userId: UserID?
    /// Profiles with this customer id go, unless they got it after ``erasedAt``.
    public var externalId: ExternalID?
    /// What the person was called before support changed that. Absent: nothing else.
    public var former: [FormerExternalID]?
    /// The moment (``Moment``) of the command that erased the person. Absent: now.
    public var erasedAt: Timestamp?

    public init(
        userId: UserID? = nil, externalId: ExternalID? = nil, former: [FormerExternalID]? = nil,
        erasedAt: Timestamp? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.former = former
        self.erasedAt = erasedAt
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? "" }

    public func validate() throws(Rejection) {
        try Validation.person(userId, externalId)
        for former in former ?? [] { try Validation.person(nil, former.externalId) }
    }
}

/// An external id that a person had until support gave it another one.
public struct FormerExternalID: Codable, Sendable, Hashable {
    public var externalId: ExternalID
    /// The moment (``Moment``) of the command that changed it.
    public var until: Timestamp

    public init(externalId: ExternalID, until: Timestamp) {
        self.externalId = externalId
        self.until = until
    }
}

/// The sync service to itself: whom it erased goes in a replay too, where the profile has another MPID by then (S125).
public struct KeepErased: CommandMessage {
    public static let type = "identity.sync.keep-erased.v1"
    public static let scope = Scope.internal
    /// The smallest MPID that was erased.
    public var mpid: MPID
    /// The moment (``Moment``) of the erasure: who came later is somebody else.
    public var erasedAt: Timestamp
    /// By what those who were erased are found again, in hex: closed with the salt of the service's store. Absent: they are
    /// not looked for.
    public var whom: String?
    /// Of whom the link service has said that they are gone. Absent: nothing.
    public var userIds: [UserID]?

    public init(mpid: MPID, erasedAt: Timestamp, whom: String? = nil, userIds: [UserID]? = nil) {
        self.mpid = mpid
        self.erasedAt = erasedAt
        self.whom = whom
        self.userIds = userIds
    }

    public var partitionSubject: String { mpid.description }

    public func validate() throws(Rejection) {
        for (index, id) in (userIds ?? []).enumerated() { try Validation.id(id, "userIds[\(index)]") }
    }
}

/// The sync service erased a profile: the person linked with it goes as with ``EraseUser``. Result:
/// ``ErasureCertificate``.
public struct ForgetPerson: CommandMessage {
    public static let type = "identity.link.forget.v1"
    public static let scope = Scope.internal
    public var userId: UserID?
    /// The person with this external id goes, unless it was linked with it after ``erasedAt``.
    public var externalId: ExternalID?
    /// The moment (``Moment``) of the command that erased the profile. Absent: now.
    public var erasedAt: Timestamp?

    public init(userId: UserID? = nil, externalId: ExternalID? = nil, erasedAt: Timestamp? = nil) {
        self.userId = userId
        self.externalId = externalId
        self.erasedAt = erasedAt
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? "" }

    public func validate() throws(Rejection) { try Validation.person(userId, externalId) }
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
    /// The moment (``Moment``) of the command that erased the person: what began later on these installs is somebody
    /// else's. Absent: now.
    public var erasedAt: Timestamp?

    public init(
        userId: UserID, externalId: ExternalID? = nil, installIds: [InstallID] = [], erasedAt: Timestamp? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.installIds = installIds
        self.erasedAt = erasedAt
    }

    public var partitionSubject: String { userId.text }

    public func validate() throws(Rejection) {
        try Validation.person(userId, externalId)
        for (index, id) in installIds.enumerated() { try Validation.id(id, "installIds[\(index)]") }
    }
}

/// The sync service erased profiles: their sessions go. Result: ``ErasureCertificate``.
public struct ForgetSessions: CommandMessage {
    public static let type = "identity.verification.forget.v1"
    public static let scope = Scope.internal
    public var mpids: [MPID]

    public init(mpids: [MPID]) { self.mpids = mpids }

    public var partitionSubject: String { mpids.first?.description ?? "nobody" }

    public func validate() throws(Rejection) {}
}

/// Why `sync.erase-profile` erased nobody: what comes with `AMBIGUOUS_IDENTITY` and `NOT_FOUND_ERROR`.
public struct IdentityHolders: CommandResult {
    /// How many profiles the identities find.
    public var count: Int
    /// How many others hold a value that the command named.
    public var heldByOthers: Int

    public init(count: Int, heldByOthers: Int) {
        self.count = count
        self.heldByOthers = heldByOthers
    }
}
