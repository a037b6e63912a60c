// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import WireJSON

/// The app's backend asks to link an install to one of its users (docs/link.md, F1). Result: ``LinkResult``.
public struct LinkRequest: CommandMessage {
    public static let type = "identity.link.request.v1"
    public static let scope = Scope.userLink

    public var installId: InstallID
    /// Exact bytes: nothing is trimmed or folded (L17).
    public var externalId: ExternalID

    public init(installId: InstallID, externalId: ExternalID) {
        self.installId = installId
        self.externalId = externalId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let externalId = json.text("externalId")
        else { return nil }
        self.init(installId: InstallID(installId), externalId: ExternalID(externalId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("externalId", externalId)
        json.end()
    }

    public var partitionSubject: String { externalId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.identityValue(externalId, "externalId")
    }
}

/// A new install came to life. `user: new` makes it an unlinked person's install at once; with `none` the install waits
/// for a link request, until one is decided or the install is detached. Result: ``InstallResult``.
public struct RegisterInstall: CommandMessage {
    public static let type = "identity.link.register-install.v1"
    public static let scope = Scope.internal

    public enum User: String, WireEnum {
        case new, none
    }

    public var installId: InstallID
    public var device: Device
    public var user: User

    public init(installId: InstallID, device: Device, user: User) {
        self.installId = installId
        self.device = device
        self.user = user
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let device = json.value("device", as: Device.self),
            let user = json.value("user", as: User.self)
        else { return nil }
        self.init(installId: InstallID(installId), device: device, user: user)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("device", device)
        try json.member("user", user)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try device.validate("device")
    }
}

/// Registers the install if needed and links it, on the word of the user service that redeemed an authentication code.
/// Result: ``LinkResult``.
public struct EstablishLink: CommandMessage {
    public static let type = "identity.link.establish.v1"
    public static let scope = Scope.internal

    public enum Mode: String, WireEnum {
        /// A creation: an external id that is known is restored on this install.
        case create
        /// `linkUser`: only to an external id that is new to the platform (L31).
        case linkExistingUser = "link-existing-user"
    }

    public var installId: InstallID
    public var device: Device
    public var externalId: ExternalID
    public var mode: Mode
    /// When the code was asked for that says whose external id it is. Absent: when the command was given.
    public var askedAt: Timestamp?

    public init(installId: InstallID, device: Device, externalId: ExternalID, mode: Mode, askedAt: Timestamp? = nil) {
        self.installId = installId
        self.device = device
        self.externalId = externalId
        self.mode = mode
        self.askedAt = askedAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let device = json.value("device", as: Device.self),
            let externalId = json.text("externalId"),
            let mode = json.value("mode", as: Mode.self),
            let askedAt = json.valueIfPresent("askedAt", as: Timestamp.self)
        else { return nil }
        self.init(
            installId: InstallID(installId), device: device, externalId: ExternalID(externalId), mode: mode,
            askedAt: askedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("device", device)
        json.member("externalId", externalId)
        try json.member("mode", mode)
        try json.memberIfPresent("askedAt", askedAt)
        json.end()
    }

    public var partitionSubject: String { externalId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try device.validate("device")
        try Validation.identityValue(externalId, "externalId")
    }
}

/// Reads an install. Result: ``InstallResult``.
public struct QueryInstall: CommandMessage {
    public static let type = "identity.link.query.v1"
    public static let scope = Scope.internal

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

/// Takes the person off the install (L32). Nothing else is promoted, but what a creation took and failed with goes back
/// (L50). Result: ``InstallResult``.
public struct DetachInstall: CommandMessage {
    public static let type = "identity.link.detach-install.v1"
    public static let scope = Scope.internal

    public enum Cause: String, WireEnum {
        /// The creation that put the person here, or was about to, came to nothing.
        case creationFailed = "creation-failed"
        /// The device asked for it.
        case reset
        /// A creation finds what an earlier life left on the install.
        case leftover
    }

    public var installId: InstallID
    public var cause: Cause

    public init(installId: InstallID, cause: Cause) {
        self.installId = installId
        self.cause = cause
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let cause = json.value("cause", as: Cause.self)
        else { return nil }
        self.init(installId: InstallID(installId), cause: cause)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("cause", cause)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
    }
}

/// The platform enables, disables or deletes an install. Deleting cannot be taken back. A disabled install is nobody's
/// active one; enabled again it is, unless another took over. Result: ``InstallResult``.
public struct SetInstallStatus: CommandByHand {
    public static let type = "identity.link.set-install-status.v1"
    public static let scope = Scope.admin

    public var installId: InstallID
    public var status: InstallStatus
    /// Who asks, where a person does. A program that sets the status may leave it and `reason` out.
    public var author: String?
    public var reason: String?

    public init(installId: InstallID, status: InstallStatus, author: String? = nil, reason: String? = nil) {
        self.installId = installId
        self.status = status
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let status = json.value("status", as: InstallStatus.self),
            let author = json.textIfPresent("author"),
            let reason = json.textIfPresent("reason")
        else { return nil }
        self.init(installId: InstallID(installId), status: status, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("status", status)
        json.memberIfPresent("author", author)
        json.memberIfPresent("reason", reason)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        if let author { try Validation.text(author, "author") }
        if let reason { try Validation.text(reason, "reason", atMost: 1000) }
    }
}

/// Removes the person's external id and installs and leaves a tombstone; the user and the sync service are told to do
/// the same. `pending` until they have. Result: ``ErasureCertificate``.
public struct EraseUser: CommandMessage {
    public static let type = "identity.link.erase-user.v1"
    public static let scope = Scope.userDelete

    public var userId: UserID
    /// Who asks, where a person does. A program that erases may leave it and `reason` out.
    public var author: String?
    public var reason: String?

    public init(userId: UserID, author: String? = nil, reason: String? = nil) {
        self.userId = userId
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let author = json.textIfPresent("author"),
            let reason = json.textIfPresent("reason")
        else { return nil }
        self.init(userId: UserID(userId), author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.memberIfPresent("author", author)
        json.memberIfPresent("reason", reason)
        json.end()
    }

    public var partitionSubject: String { userId.text }

    public var subject: (kind: String, name: String) { ("userId", userId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(userId, "userId")
        if let author { try Validation.text(author, "author") }
        if let reason { try Validation.text(reason, "reason", atMost: 1000) }
    }
}

/// The sync service erased a profile: the person linked with it goes as with `link.erase-user`. Result:
/// ``ErasureCertificate``.
public struct ForgetPerson: CommandMessage {
    public static let type = "identity.link.forget.v1"
    public static let scope = Scope.internal

    public var userId: UserID?
    /// The person with this external id goes, unless it was linked with it after `erasedAt`.
    public var externalId: ExternalID?
    /// The moment (L45) of the command that erased the profile. Absent: now.
    public var erasedAt: Timestamp?

    public init(userId: UserID? = nil, externalId: ExternalID? = nil, erasedAt: Timestamp? = nil) {
        self.userId = userId
        self.externalId = externalId
        self.erasedAt = erasedAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.textIfPresent("userId"),
            let externalId = json.textIfPresent("externalId"),
            let erasedAt = json.valueIfPresent("erasedAt", as: Timestamp.self)
        else { return nil }
        self.init(userId: userId.map { UserID($0) }, externalId: externalId.map { ExternalID($0) }, erasedAt: erasedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.memberIfPresent("erasedAt", erasedAt)
        json.end()
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? "" }

    public func validate() throws(Rejection) {
        guard userId != nil || externalId != nil else {
            throw Rejection(.invalidRequest, "data needs userId, externalId or both.")
        }
        if let userId { try Validation.id(userId, "userId") }
        if let externalId { try Validation.identityValue(externalId, "externalId") }
    }
}

/// What became of the erasure of a user. `USER_NOT_FOUND` when there was none. Result: ``ErasureCertificate``.
public struct GetUserErasure: PersonQuery {
    public static let type = "identity.link.get-erasure.v1"
    public static let scope = Scope.userDelete

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

    public var partitionSubject: String { userId.text }

    public var subject: (kind: String, name: String) { ("userId", userId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(userId, "userId")
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
    /// Where the page before ended (`next`).
    public var after: String?

    public init(
        userId: UserID? = nil, externalId: ExternalID? = nil, installId: InstallID? = nil, after: String? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.installId = installId
        self.after = after
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.textIfPresent("userId"),
            let externalId = json.textIfPresent("externalId"),
            let installId = json.textIfPresent("installId"),
            let after = json.textIfPresent("after")
        else { return nil }
        self.init(
            userId: userId.map { UserID($0) }, externalId: externalId.map { ExternalID($0) },
            installId: installId.map { InstallID($0) }, after: after)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("externalId", externalId)
        json.memberIfPresent("installId", installId)
        json.memberIfPresent("after", after)
        json.end()
    }

    public var partitionSubject: String { externalId?.text ?? userId?.text ?? installId?.text ?? "" }

    public var subject: (kind: String, name: String) {
        if let externalId { return ("externalId", externalId.text) }
        if let userId { return ("userId", userId.text) }
        return ("installId", installId?.text ?? "")
    }

    public func validate() throws(Rejection) {
        guard [userId != nil, externalId != nil, installId != nil].count(where: { $0 }) == 1 else {
            throw Rejection(.invalidRequest, "data needs one of userId, externalId and installId.")
        }
        if let userId { try Validation.id(userId, "userId") }
        if let externalId { try Validation.identityValue(externalId, "externalId") }
        if let installId { try Validation.id(installId, "installId") }
        if let after { try Validation.text(after, "after", atMost: 1000) }
    }
}

/// Makes an install its person's active one, whatever elections said. Result: ``InstallResult``.
public struct MakeInstallActive: RepairCommand {
    public static let type = "identity.link.make-active.v1"
    public static let scope = Scope.support

    public var installId: InstallID
    public var author: String
    public var reason: String

    public init(installId: InstallID, author: String, reason: String) {
        self.installId = installId
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(installId: InstallID(installId), author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { installId.text }

    public var subject: (kind: String, name: String) { ("installId", installId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// Takes the external id off a person, who stays on its installs, unlinked; nothing links the two again but
/// `link.change-external-id`. Result: ``LinkedUserResult``.
public struct UnlinkUser: RepairCommand {
    public static let type = "identity.link.unlink-user.v1"
    public static let scope = Scope.support

    public var userId: UserID
    public var author: String
    public var reason: String

    public init(userId: UserID, author: String, reason: String) {
        self.userId = userId
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(userId: UserID(userId), author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { userId.text }

    public var subject: (kind: String, name: String) { ("userId", userId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(userId, "userId")
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// Gives a person another external id, or its first one. The one before names nobody for a while. The person is found
/// by `userId` or by `externalId`, the present one. Result: ``LinkedUserResult``.
public struct ChangeExternalID: RepairCommand {
    public static let type = "identity.link.change-external-id.v1"
    public static let scope = Scope.support

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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.textIfPresent("userId"),
            let externalId = json.textIfPresent("externalId"),
            let newExternalId = json.text("newExternalId"),
            let endHold = json.valueIfPresent("endHold", as: Bool.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(
            userId: userId.map { UserID($0) }, externalId: externalId.map { ExternalID($0) },
            newExternalId: ExternalID(newExternalId), endHold: endHold, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("externalId", externalId)
        json.member("newExternalId", newExternalId)
        json.memberIfPresent("endHold", endHold)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { newExternalId.text }

    public var subject: (kind: String, name: String) {
        if let userId { return ("userId", userId.text) }
        return ("externalId", externalId?.text ?? "")
    }

    public func validate() throws(Rejection) {
        guard (userId != nil) != (externalId != nil) else {
            throw Rejection(.invalidRequest, "data needs userId or externalId, and not both.")
        }
        if let userId { try Validation.id(userId, "userId") }
        if let externalId { try Validation.identityValue(externalId, "externalId") }
        try Validation.identityValue(newExternalId, "newExternalId")
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// Brings users of another system, with their installs (docs/link.md "Import"). Result: ``ImportResult``.
public struct ImportUsers: ImportCommand {
    public static let type = "identity.link.import-users.v1"
    public static let scope = Scope.importing

    public var users: [ListElement<ImportedUser>]
    public var upsert: Bool?
    public var events: Bool?

    public init(users: [ListElement<ImportedUser>], upsert: Bool? = nil, events: Bool? = nil) {
        self.users = users
        self.upsert = upsert
        self.events = events
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let users = json.value("users", as: [ListElement<ImportedUser>].self),
            let upsert = json.valueIfPresent("upsert", as: Bool.self),
            let events = json.valueIfPresent("events", as: Bool.self)
        else { return nil }
        self.init(users: users, upsert: upsert, events: events)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("users", users)
        json.memberIfPresent("upsert", upsert)
        json.memberIfPresent("events", events)
        json.end()
    }
}

/// The user service: a user who was never linked has not come back to this install. Nobody is on it from then on, and
/// the user is gone if it was on no other. Who is linked by then stays. Result: ``InstallResult``.
public struct ExpirePerson: CommandMessage {
    public static let type = "identity.link.expire-user.v1"
    public static let scope = Scope.internal

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

    public var partitionSubject: String { installId.text }

    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try Validation.id(userId, "userId")
    }
}

public struct InstallRegistered: EventMessage {
    public static let type = "identity.link.install-registered.v1"

    public var installId: InstallID
    public var device: Device
    /// The unlinked person it was registered with, if any.
    public var userId: UserID?
    /// `import` for what `link.import-users` brought. Else absent.
    public var cause: ImportCause?

    public init(installId: InstallID, device: Device, userId: UserID? = nil, cause: ImportCause? = nil) {
        self.installId = installId
        self.device = device
        self.userId = userId
        self.cause = cause
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let device = json.value("device", as: Device.self),
            let userId = json.textIfPresent("userId"),
            let cause = json.valueIfPresent("cause", as: ImportCause.self)
        else { return nil }
        self.init(installId: InstallID(installId), device: device, userId: userId.map { UserID($0) }, cause: cause)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("device", device)
        json.memberIfPresent("userId", userId)
        try json.memberIfPresent("cause", cause)
        json.end()
    }

    public var subject: String { installId.text }
}

public struct Linked: EventMessage {
    public static let type = "identity.link.linked.v1"

    public var installId: InstallID
    public var externalId: ExternalID
    public var userId: UserID
    public var personCreated: Bool
    /// The install that is active from now on; another than `installId` when a phone kept the person, and none while
    /// the person is restricted.
    public var activeInstallId: InstallID?
    public var deactivatedInstallIds: [InstallID]
    /// Counts the changes of the install, see `version` (L34).
    public var version: Int64
    /// Since when the person has the external id: an erasure of an earlier moment is another person's (L64).
    public var linkedAt: Timestamp?
    /// `import` for what `link.import-users` brought. Else absent.
    public var cause: ImportCause?

    public init(
        installId: InstallID, externalId: ExternalID, userId: UserID, personCreated: Bool,
        activeInstallId: InstallID? = nil, deactivatedInstallIds: [InstallID], version: Int64,
        linkedAt: Timestamp? = nil, cause: ImportCause? = nil
    ) {
        self.installId = installId
        self.externalId = externalId
        self.userId = userId
        self.personCreated = personCreated
        self.activeInstallId = activeInstallId
        self.deactivatedInstallIds = deactivatedInstallIds
        self.version = version
        self.linkedAt = linkedAt
        self.cause = cause
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let externalId = json.text("externalId"),
            let userId = json.text("userId"),
            let personCreated = json.value("personCreated", as: Bool.self),
            let activeInstallId = json.textIfPresent("activeInstallId"),
            let deactivatedInstallIds = json.value("deactivatedInstallIds", as: [InstallID].self),
            let version = json.value("version", as: Int64.self),
            let linkedAt = json.valueIfPresent("linkedAt", as: Timestamp.self),
            let cause = json.valueIfPresent("cause", as: ImportCause.self)
        else { return nil }
        self.init(
            installId: InstallID(installId), externalId: ExternalID(externalId), userId: UserID(userId),
            personCreated: personCreated, activeInstallId: activeInstallId.map { InstallID($0) },
            deactivatedInstallIds: deactivatedInstallIds, version: version, linkedAt: linkedAt, cause: cause)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("externalId", externalId)
        json.member("userId", userId)
        json.member("personCreated", personCreated)
        json.memberIfPresent("activeInstallId", activeInstallId)
        try json.member("deactivatedInstallIds", deactivatedInstallIds)
        json.member("version", version)
        try json.memberIfPresent("linkedAt", linkedAt)
        try json.memberIfPresent("cause", cause)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let reason = json.value("reason", as: ReasonCode.self)
        else { return nil }
        self.init(installId: InstallID(installId), reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("reason", reason)
        json.end()
    }

    public var subject: String { installId.text }
}

public struct InstallDetached: EventMessage {
    public static let type = "identity.link.install-detached.v1"

    public var installId: InstallID
    public var userId: UserID
    /// Counts the changes of the install, see `version`.
    public var version: Int64

    public init(installId: InstallID, userId: UserID, version: Int64) {
        self.installId = installId
        self.userId = userId
        self.version = version
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let userId = json.text("userId"),
            let version = json.value("version", as: Int64.self)
        else { return nil }
        self.init(installId: InstallID(installId), userId: UserID(userId), version: version)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("userId", userId)
        json.member("version", version)
        json.end()
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
        /// The creation failed that the person had moved to (L50).
        case restored
        /// `link.make-active` (L70).
        case chosen
        /// `link.unlink-user` (L72).
        case unlinked
        /// The person was linked again, on another install or by `link.change-external-id` (L73).
        case relinked
        /// What is known of the person is kept and not used from now on (L82).
        case restricted
        /// That is over (L83).
        case unrestricted
    }

    public var installId: InstallID
    public var status: InstallStatus
    public var isActive: Bool
    public var userId: UserID?
    /// Whether the user has an external id.
    public var isLinked: Bool
    public var cause: Cause
    /// `nil` where there is no user, or it is active.
    public var inactiveBecause: InactiveBecause?
    /// Counts the changes of the install, see `version`.
    public var version: Int64
    /// Who asked for it, and why, where a person did.
    public var author: String?
    public var reason: String?

    public init(
        installId: InstallID, status: InstallStatus, isActive: Bool, userId: UserID? = nil, isLinked: Bool,
        cause: Cause, inactiveBecause: InactiveBecause? = nil, version: Int64, author: String? = nil,
        reason: String? = nil
    ) {
        self.installId = installId
        self.status = status
        self.isActive = isActive
        self.userId = userId
        self.isLinked = isLinked
        self.cause = cause
        self.inactiveBecause = inactiveBecause
        self.version = version
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let status = json.value("status", as: InstallStatus.self),
            let isActive = json.value("isActive", as: Bool.self),
            let userId = json.textIfPresent("userId"),
            let isLinked = json.value("isLinked", as: Bool.self),
            let cause = json.value("cause", as: Cause.self),
            let inactiveBecause = json.valueIfPresent("inactiveBecause", as: InactiveBecause.self),
            let version = json.value("version", as: Int64.self),
            let author = json.textIfPresent("author"),
            let reason = json.textIfPresent("reason")
        else { return nil }
        self.init(
            installId: InstallID(installId), status: status, isActive: isActive, userId: userId.map { UserID($0) },
            isLinked: isLinked, cause: cause, inactiveBecause: inactiveBecause, version: version, author: author,
            reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        try json.member("status", status)
        json.member("isActive", isActive)
        json.memberIfPresent("userId", userId)
        json.member("isLinked", isLinked)
        try json.member("cause", cause)
        try json.memberIfPresent("inactiveBecause", inactiveBecause)
        json.member("version", version)
        json.memberIfPresent("author", author)
        json.memberIfPresent("reason", reason)
        json.end()
    }

    public var subject: String { installId.text }
}

/// Carries no external id and no install: it must be safe to keep. So must be the words of whoever asked.
public struct UserErased: EventMessage {
    public static let type = "identity.link.user-erased.v1"

    public var userId: UserID
    /// Who asked for it, and why, where a person did.
    public var author: String?
    public var reason: String?

    public init(userId: UserID, author: String? = nil, reason: String? = nil) {
        self.userId = userId
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let author = json.textIfPresent("author"),
            let reason = json.textIfPresent("reason")
        else { return nil }
        self.init(userId: UserID(userId), author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.memberIfPresent("author", author)
        json.memberIfPresent("reason", reason)
        json.end()
    }

    public var subject: String { userId.text }
}

/// A person lost its external id (`link.unlink-user`).
public struct ExternalIDRemoved: EventMessage {
    public static let type = "identity.link.external-id-removed.v1"

    public var userId: UserID
    public var externalId: ExternalID
    /// Links of before that the person had are over.
    public var unlinkedAt: Timestamp
    public var author: String
    public var reason: String

    public init(userId: UserID, externalId: ExternalID, unlinkedAt: Timestamp, author: String, reason: String) {
        self.userId = userId
        self.externalId = externalId
        self.unlinkedAt = unlinkedAt
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let externalId = json.text("externalId"),
            let unlinkedAt = json.value("unlinkedAt", as: Timestamp.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(
            userId: UserID(userId), externalId: ExternalID(externalId), unlinkedAt: unlinkedAt, author: author,
            reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("externalId", externalId)
        try json.member("unlinkedAt", unlinkedAt)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var subject: String { userId.text }
}

/// A person has another external id (`link.change-external-id`).
public struct ExternalIDChanged: EventMessage {
    public static let type = "identity.link.external-id-changed.v1"

    public var userId: UserID
    public var externalId: ExternalID
    /// `nil` for a person that had none.
    public var previousExternalId: ExternalID?
    /// Since when the person has the external id, see `linkedAt`.
    public var linkedAt: Timestamp
    public var author: String
    public var reason: String

    public init(
        userId: UserID, externalId: ExternalID, previousExternalId: ExternalID? = nil, linkedAt: Timestamp,
        author: String, reason: String
    ) {
        self.userId = userId
        self.externalId = externalId
        self.previousExternalId = previousExternalId
        self.linkedAt = linkedAt
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let externalId = json.text("externalId"),
            let previousExternalId = json.textIfPresent("previousExternalId"),
            let linkedAt = json.value("linkedAt", as: Timestamp.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(
            userId: UserID(userId), externalId: ExternalID(externalId),
            previousExternalId: previousExternalId.map { ExternalID($0) }, linkedAt: linkedAt, author: author,
            reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("externalId", externalId)
        json.memberIfPresent("previousExternalId", previousExternalId)
        try json.member("linkedAt", linkedAt)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var subject: String { userId.text }
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let installId = json.text("installId")
        else { return nil }
        self.init(userId: UserID(userId), installId: InstallID(installId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("installId", installId)
        json.end()
    }

    public var subject: String { userId.text }
}

/// `link.request` and `link.establish`.
public struct LinkResult: CommandResult {
    /// 24 lower-case hex characters.
    public var userId: UserID
    public var installId: InstallID
    /// False when a phone keeps the person and this tablet is linked but not active (L22), or the person is restricted.
    public var isActive: Bool
    /// `true` for a person who is active nowhere because of `sync.restrict`. Else absent.
    public var isRestricted: Bool?
    public var personCreated: Bool
    /// Counts the changes of the install. Replies and events overtake each other; what has the higher version is newer.
    public var version: Int64

    public init(
        userId: UserID, installId: InstallID, isActive: Bool, isRestricted: Bool? = nil, personCreated: Bool,
        version: Int64
    ) {
        self.userId = userId
        self.installId = installId
        self.isActive = isActive
        self.isRestricted = isRestricted
        self.personCreated = personCreated
        self.version = version
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let installId = json.text("installId"),
            let isActive = json.value("isActive", as: Bool.self),
            let isRestricted = json.valueIfPresent("isRestricted", as: Bool.self),
            let personCreated = json.value("personCreated", as: Bool.self),
            let version = json.value("version", as: Int64.self)
        else { return nil }
        self.init(
            userId: UserID(userId), installId: InstallID(installId), isActive: isActive, isRestricted: isRestricted,
            personCreated: personCreated, version: version)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.member("installId", installId)
        json.member("isActive", isActive)
        json.memberIfPresent("isRestricted", isRestricted)
        json.member("personCreated", personCreated)
        json.member("version", version)
        json.end()
    }
}

/// `link.query`, and the state after `link.register-install`, `link.detach-install` and `link.set-install-status`.
public struct InstallResult: CommandResult {
    public var installId: InstallID
    public var appId: AppID
    public var userId: UserID?
    public var externalId: ExternalID?
    public var status: InstallStatus
    public var isActive: Bool
    /// `nil` where there is no user, or it is active.
    public var inactiveBecause: InactiveBecause?
    /// Whether the user came to life on this install, rather than being restored on it (L35).
    public var isUsersFirst: Bool
    /// Counts the changes of the install, see `version`.
    public var version: Int64

    public init(
        installId: InstallID, appId: AppID, userId: UserID? = nil, externalId: ExternalID? = nil, status: InstallStatus,
        isActive: Bool, inactiveBecause: InactiveBecause? = nil, isUsersFirst: Bool, version: Int64
    ) {
        self.installId = installId
        self.appId = appId
        self.userId = userId
        self.externalId = externalId
        self.status = status
        self.isActive = isActive
        self.inactiveBecause = inactiveBecause
        self.isUsersFirst = isUsersFirst
        self.version = version
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let installId = json.text("installId"),
            let appId = json.text("appId"),
            let userId = json.textIfPresent("userId"),
            let externalId = json.textIfPresent("externalId"),
            let status = json.value("status", as: InstallStatus.self),
            let isActive = json.value("isActive", as: Bool.self),
            let inactiveBecause = json.valueIfPresent("inactiveBecause", as: InactiveBecause.self),
            let isUsersFirst = json.value("isUsersFirst", as: Bool.self),
            let version = json.value("version", as: Int64.self)
        else { return nil }
        self.init(
            installId: InstallID(installId), appId: AppID(appId), userId: userId.map { UserID($0) },
            externalId: externalId.map { ExternalID($0) }, status: status, isActive: isActive,
            inactiveBecause: inactiveBecause, isUsersFirst: isUsersFirst, version: version)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("installId", installId)
        json.member("appId", appId)
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.member("status", status)
        json.member("isActive", isActive)
        try json.memberIfPresent("inactiveBecause", inactiveBecause)
        json.member("isUsersFirst", isUsersFirst)
        json.member("version", version)
        json.end()
    }
}

/// A user of the link service, and the installs that it is on.
public struct LinkedUserResult: CommandResult {
    public struct Install: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var installId: InstallID
        public var device: Device
        public var status: InstallStatus
        public var isActive: Bool
        /// `nil` where it is active.
        public var inactiveBecause: InactiveBecause?
        public var isUsersFirst: Bool
        /// Counts the changes of the install, see `version`.
        public var version: Int64

        public init(
            installId: InstallID, device: Device, status: InstallStatus, isActive: Bool,
            inactiveBecause: InactiveBecause? = nil, isUsersFirst: Bool, version: Int64
        ) {
            self.installId = installId
            self.device = device
            self.status = status
            self.isActive = isActive
            self.inactiveBecause = inactiveBecause
            self.isUsersFirst = isUsersFirst
            self.version = version
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let installId = json.text("installId"),
                let device = json.value("device", as: Device.self),
                let status = json.value("status", as: InstallStatus.self),
                let isActive = json.value("isActive", as: Bool.self),
                let inactiveBecause = json.valueIfPresent("inactiveBecause", as: InactiveBecause.self),
                let isUsersFirst = json.value("isUsersFirst", as: Bool.self),
                let version = json.value("version", as: Int64.self)
            else { return nil }
            self.init(
                installId: InstallID(installId), device: device, status: status, isActive: isActive,
                inactiveBecause: inactiveBecause, isUsersFirst: isUsersFirst, version: version)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("installId", installId)
            try json.member("device", device)
            try json.member("status", status)
            json.member("isActive", isActive)
            try json.memberIfPresent("inactiveBecause", inactiveBecause)
            json.member("isUsersFirst", isUsersFirst)
            json.member("version", version)
            json.end()
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
    /// The next page's `after`, for the same question; `nil` on the last page.
    public var next: String?

    public init(
        userId: UserID, externalId: ExternalID? = nil, linkedAt: Timestamp? = nil, createdAt: Timestamp? = nil,
        isErased: Bool, installs: [Install], next: String? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.linkedAt = linkedAt
        self.createdAt = createdAt
        self.isErased = isErased
        self.installs = installs
        self.next = next
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let externalId = json.textIfPresent("externalId"),
            let linkedAt = json.valueIfPresent("linkedAt", as: Timestamp.self),
            let createdAt = json.valueIfPresent("createdAt", as: Timestamp.self),
            let isErased = json.value("isErased", as: Bool.self),
            let installs = json.value("installs", as: [Install].self),
            let next = json.textIfPresent("next")
        else { return nil }
        self.init(
            userId: UserID(userId), externalId: externalId.map { ExternalID($0) }, linkedAt: linkedAt,
            createdAt: createdAt, isErased: isErased, installs: installs, next: next)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.memberIfPresent("linkedAt", linkedAt)
        try json.memberIfPresent("createdAt", createdAt)
        json.member("isErased", isErased)
        try json.member("installs", installs)
        json.memberIfPresent("next", next)
        json.end()
    }
}

/// Who was brought by a list, and not by what they did.
public enum ImportCause: String, WireEnum {
    case importing = "import"
}

public struct ImportedUser: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public struct Install: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var installId: InstallID
        public var device: Device
        /// Absent: whether it is the only one.
        public var isActive: Bool?
        /// Absent: enabled.
        public var status: InstallStatus?

        public init(installId: InstallID, device: Device, isActive: Bool? = nil, status: InstallStatus? = nil) {
            self.installId = installId
            self.device = device
            self.isActive = isActive
            self.status = status
        }

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case installId, device, isActive, status
        }

        public init(from decoder: any Decoder) throws {
            try decoder.refuseUnknownMembers(but: CodingKeys.self)
            let container = try decoder.container(keyedBy: CodingKeys.self)
            installId = try container.decode(InstallID.self, forKey: .installId)
            device = try container.decode(Device.self, forKey: .device)
            isActive = try container.decodeIfPresent(Bool.self, forKey: .isActive)
            status = try container.decodeIfPresent(InstallStatus.self, forKey: .status)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("installId", installId)
            try json.member("device", device)
            json.memberIfPresent("isActive", isActive)
            try json.memberIfPresent("status", status)
            json.end()
        }
    }

    /// As the other system named it: 24 lower-case hex characters.
    public var userId: UserID
    public var externalId: ExternalID?
    public var createdAt: Timestamp?
    public var installs: [Install]?

    public init(
        userId: UserID, externalId: ExternalID? = nil, createdAt: Timestamp? = nil, installs: [Install]? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.createdAt = createdAt
        self.installs = installs
    }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case userId, externalId, createdAt, installs
    }

    public init(from decoder: any Decoder) throws {
        try decoder.refuseUnknownMembers(but: CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        userId = try container.decode(UserID.self, forKey: .userId)
        externalId = try container.decodeIfPresent(ExternalID.self, forKey: .externalId)
        createdAt = try container.decodeIfPresent(Timestamp.self, forKey: .createdAt)
        installs = try container.decodeIfPresent([Install].self, forKey: .installs)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.memberIfPresent("createdAt", createdAt)
        try json.memberIfPresent("installs", installs)
        json.end()
    }
}

/// The platform's word on an install; independent of whether it is its person's active one.
public enum InstallStatus: String, WireEnum {
    case enabled, disabled, deleted
}
