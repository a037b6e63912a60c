// SPDX-License-Identifier: Apache-2.0

// How a person goes from every service (docs/guarantees.md): whoever is asked first erases and sends the others the
// internal commands below. All of them succeed also when there is nothing to forget.

/// Erases a profile for good: identities, name, devices' pointers, aliases. What remains is its MPID, which is never
/// used again. `pending` until all services have erased. Result: ``ErasedProfilesResult``.
public struct EraseProfile: CommandMessage {
    public static let type = "identity.sync.erase-profile.v1"
    public static let scope = Scope.userDelete

    /// Either this or ``identity``.
    public var mpid: MPID?
    /// Every profile that holds it goes.
    public var identity: Identity?

    public init(mpid: MPID) { self.mpid = mpid }
    public init(identity: Identity) { self.identity = identity }

    public var partitionSubject: String { mpid?.description ?? identity?.value.text ?? "" }

    public func validate() throws(Rejection) {
        guard (mpid == nil) != (identity == nil) else {
            throw Rejection(.invalidRequest, "data needs either mpid or identity.")
        }
        if let identity { try Validation.identityValue(identity.value, "identity.value") }
    }
}

/// The link service erased a person: the profiles linked to its user id, or with its external id as customer id, go as
/// with ``EraseProfile``. Result: ``ErasedProfilesResult``.
public struct ForgetProfiles: CommandMessage {
    public static let type = "identity.sync.forget.v1"
    public static let scope = Scope.internal
    public var userId: UserID?
    public var externalId: ExternalID?

    public init(userId: UserID? = nil, externalId: ExternalID? = nil) {
        self.userId = userId
        self.externalId = externalId
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? "" }

    public func validate() throws(Rejection) { try Validation.person(userId, externalId) }
}

/// The sync service erased a profile: the person linked with it goes as with ``EraseUser``. Result:
/// ``ForgottenPersonResult``.
public struct ForgetPerson: CommandMessage {
    public static let type = "identity.link.forget.v1"
    public static let scope = Scope.internal
    public var userId: UserID?
    public var externalId: ExternalID?

    public init(userId: UserID? = nil, externalId: ExternalID? = nil) {
        self.userId = userId
        self.externalId = externalId
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? "" }

    public func validate() throws(Rejection) { try Validation.person(userId, externalId) }
}

/// The link service erased a person: its records, codes and half-done creations go from the user service. Result:
/// ``ForgottenUserResult``.
public struct ForgetUser: CommandMessage {
    public static let type = "identity.user.forget.v1"
    public static let scope = Scope.internal
    public var userId: UserID
    /// The authentication codes of this external id go.
    public var externalId: ExternalID?
    /// The installs that the person was on.
    public var installIds: [InstallID]

    public init(userId: UserID, externalId: ExternalID? = nil, installIds: [InstallID] = []) {
        self.userId = userId
        self.externalId = externalId
        self.installIds = installIds
    }

    public var partitionSubject: String { userId.text }

    public func validate() throws(Rejection) {
        try Validation.person(userId, externalId)
        for (index, id) in installIds.enumerated() { try Validation.id(id, "installIds[\(index)]") }
    }
}

/// The sync service erased profiles: sessions and half-done logins with any of these go. Result:
/// ``ForgottenSessionsResult``.
public struct ForgetSessions: CommandMessage {
    public static let type = "identity.verification.forget.v1"
    public static let scope = Scope.internal
    public var mpids: [MPID]
    /// The profiles' customer ids.
    public var userIds: [IdentityValue]
    public var emails: [IdentityValue]

    public init(mpids: [MPID], userIds: [IdentityValue], emails: [IdentityValue]) {
        self.mpids = mpids
        self.userIds = userIds
        self.emails = emails
    }

    public var partitionSubject: String {
        mpids.first?.description ?? userIds.first?.text ?? emails.first?.text ?? "nobody"
    }

    public func validate() throws(Rejection) {
        for (index, value) in userIds.enumerated() { try Validation.identityValue(value, "userIds[\(index)]") }
        for (index, value) in emails.enumerated() { try Validation.identityValue(value, "emails[\(index)]") }
    }
}

/// `sync.erase-profile` and `sync.forget`.
public struct ErasedProfilesResult: CommandResult {
    /// Those that are gone, smallest first. With `sync.forget` it may be empty.
    public var mpids: [MPID]

    public init(mpids: [MPID]) { self.mpids = mpids }
}

/// `link.forget`.
public struct ForgottenPersonResult: CommandResult {
    /// Absent when nobody was linked.
    public var userId: UserID?

    public init(userId: UserID?) { self.userId = userId }
}

/// `user.forget`.
public struct ForgottenUserResult: CommandResult {
    public var installsRemoved: Int

    public init(installsRemoved: Int) { self.installsRemoved = installsRemoved }
}

/// `verification.forget`.
public struct ForgottenSessionsResult: CommandResult {
    public var sessionsRemoved: Int

    public init(sessionsRemoved: Int) { self.sessionsRemoved = sessionsRemoved }
}
