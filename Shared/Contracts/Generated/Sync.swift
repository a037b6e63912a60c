// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import WireJSON

/// What identify, login, logout and search say: the identities of the user to move *to* (S13, F43).
public struct SyncRequest: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public enum Environment: String, WireEnum {
        case production, development
    }

    public var deviceId: DeviceID
    /// By wire name of the type; `null` values are ignored. Keys that are no `IdentityType` are refused.
    @SortedKeys public var knownIdentities: [String: String?]
    /// Never widens the search. When it is not the device's current user, the result says `previousMismatch`. 0 counts
    /// as absent.
    public var previousMPID: MPID?
    /// Not used in any decision.
    public var environment: Environment?
    public var requestId: String?
    /// The client's clock, milliseconds since 1970. Not used in any decision, so a wrong clock does no harm.
    public var requestTimestampMs: Int64?
    /// Comes back unchanged in the result.
    public var context: String?
    /// The user's name to store with the profile, 1 to 255 characters.
    public var name: String?
    /// The types somebody vouched for. Identities of other types are treated as if they had not been sent: they find
    /// nobody and change nothing. Absent: all types count.
    public var vouchedFor: [IdentityType]?
    /// Drops the device's anonymous user when the login is done: it loses its identities, and a later logout gets a new
    /// anonymous profile. Under every strategy.
    public var clearAnonymousUser: Bool?

    public init(
        deviceId: DeviceID, knownIdentities: [String: String?], previousMPID: MPID? = nil,
        environment: Environment? = nil, requestId: String? = nil, requestTimestampMs: Int64? = nil,
        context: String? = nil, name: String? = nil, vouchedFor: [IdentityType]? = nil, clearAnonymousUser: Bool? = nil
    ) {
        self.deviceId = deviceId
        self.knownIdentities = knownIdentities
        self.previousMPID = previousMPID
        self.environment = environment
        self.requestId = requestId
        self.requestTimestampMs = requestTimestampMs
        self.context = context
        self.name = name
        self.vouchedFor = vouchedFor
        self.clearAnonymousUser = clearAnonymousUser
    }

    private enum CodingKeys: String, CodingKey {
        case deviceId, knownIdentities, previousMPID, environment, requestId, requestTimestampMs, context, name
        case vouchedFor, clearAnonymousUser
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        deviceId = try container.decode(DeviceID.self, forKey: .deviceId)
        knownIdentities = try container.decode([String: String?].self, forKey: .knownIdentities)
        previousMPID = try container.decodeIfPresent(OptionalMPID.self, forKey: .previousMPID)?.mpid
        environment = try container.decodeIfPresent(Environment.self, forKey: .environment)
        requestId = try container.decodeIfPresent(String.self, forKey: .requestId)
        requestTimestampMs = try container.decodeIfPresent(Int64.self, forKey: .requestTimestampMs)
        context = try container.decodeIfPresent(String.self, forKey: .context)
        name = try container.decodeIfPresent(String.self, forKey: .name)
        vouchedFor = try container.decodeIfPresent([IdentityType].self, forKey: .vouchedFor)
        clearAnonymousUser = try container.decodeIfPresent(Bool.self, forKey: .clearAnonymousUser)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.map("knownIdentities", knownIdentities)
        try json.memberIfPresent("previousMPID", previousMPID)
        try json.memberIfPresent("environment", environment)
        json.memberIfPresent("requestId", requestId)
        json.memberIfPresent("requestTimestampMs", requestTimestampMs)
        json.memberIfPresent("context", context)
        json.memberIfPresent("name", name)
        try json.memberIfPresent("vouchedFor", vouchedFor)
        json.memberIfPresent("clearAnonymousUser", clearAnonymousUser)
        json.end()
    }

    func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
        for (type, value) in knownIdentities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "knownIdentities")
            if let value { try Validation.identityValue(value, "knownIdentities.\(type)") }
        }
        if let requestId { try Validation.text(requestId, "requestId") }
        if let context { try Validation.text(context, "context", atLeast: 0, atMost: 4096) }
        if let name { try Validation.identityValue(name, "name", atMost: 255) }
    }
}

/// Adds, changes and removes identities of one profile. Never makes or switches profiles. Result: ``SyncResult``.
public struct ModifyIdentities: CommandMessage {
    public static let type = "identity.sync.modify.v1"
    public static let scope = Scope.identitySync

    public struct Change: Codable, WireReadable, WireWritable, Sendable, Hashable {
        /// Another word is refused with `VALIDATION_ERROR` (S4).
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

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let identityType = json.text("identityType"),
                let oldValue = json.textIfPresent("oldValue"),
                let newValue = json.textIfPresent("newValue")
            else { return nil }
            self.init(identityType: identityType, oldValue: oldValue, newValue: newValue)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("identityType", identityType)
            json.memberIfPresent("oldValue", oldValue)
            json.memberIfPresent("newValue", newValue)
            json.end()
        }

        func validate(_ path: @autoclosure () -> String) throws(Rejection) {
            try Validation.identityType(identityType, "\(path()).identityType")
            if let newValue { try Validation.identityValue(newValue, "\(path()).newValue") }
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let changes = json.value("changes", as: [Change].self),
            let deviceId = json.textIfPresent("deviceId")
        else { return nil }
        self.init(mpid: mpid, changes: changes, deviceId: deviceId.map { DeviceID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("changes", changes)
        json.memberIfPresent("deviceId", deviceId)
        json.end()
    }

    public var partitionSubject: String { deviceId?.text ?? mpid.description }

    public func validate() throws(Rejection) {
        try Validation.entries(changes.count, "changes", atMost: 100)
        for (index, one) in changes.enumerated() {
            try one.validate("changes[\(index)]")
        }
        if let deviceId { try Validation.id(deviceId, "deviceId") }
    }
}

/// Carries what a source profile did over to a destination, after a delay (S39, F39). Result: ``AliasResult``.
public struct AliasUsers: CommandMessage {
    public static let type = "identity.sync.alias.v1"
    public static let scope = Scope.identitySync

    public enum Reach: String, WireEnum {
        case device, mpid
    }

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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let sourceMPID = json.value("sourceMPID", as: MPID.self),
            let destinationMPID = json.value("destinationMPID", as: MPID.self),
            let startUnixtimeMs = json.valueIfPresent("startUnixtimeMs", as: Int64.self),
            let endUnixtimeMs = json.valueIfPresent("endUnixtimeMs", as: Int64.self),
            let scope = json.valueIfPresent("scope", as: Reach.self),
            let deviceApplicationStamp = json.textIfPresent("deviceApplicationStamp")
        else { return nil }
        self.init(
            sourceMPID: sourceMPID, destinationMPID: destinationMPID, startUnixtimeMs: startUnixtimeMs,
            endUnixtimeMs: endUnixtimeMs, scope: scope, deviceApplicationStamp: deviceApplicationStamp)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("sourceMPID", sourceMPID)
        try json.member("destinationMPID", destinationMPID)
        json.memberIfPresent("startUnixtimeMs", startUnixtimeMs)
        json.memberIfPresent("endUnixtimeMs", endUnixtimeMs)
        try json.memberIfPresent("scope", scope)
        json.memberIfPresent("deviceApplicationStamp", deviceApplicationStamp)
        json.end()
    }

    public var partitionSubject: String { destinationMPID.description }

    public func validate() throws(Rejection) {
        if let deviceApplicationStamp { try Validation.identityValue(deviceApplicationStamp, "deviceApplicationStamp") }
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let aliasId = json.text("aliasId"),
            let destinationMPID = json.value("destinationMPID", as: MPID.self)
        else { return nil }
        self.init(aliasId: AliasID(aliasId), destinationMPID: destinationMPID)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("aliasId", aliasId)
        try json.member("destinationMPID", destinationMPID)
        json.end()
    }

    public var partitionSubject: String { destinationMPID.description }

    public func validate() throws(Rejection) {
        try Validation.id(aliasId, "aliasId")
    }
}

/// Takes identities from a profile that is two people by mistake, and gives them to another profile: a new one, or
/// `toMPID`. A barrier keeps the two apart until `sync.allow`. Result: ``DetachResult``.
public struct DetachIdentities: RepairCommand {
    public static let type = "identity.sync.detach.v1"
    public static let scope = Scope.support

    public var mpid: MPID
    /// What goes: 1 to 100, each of which the profile has, and not all of them.
    public var identities: [GetProfile.Named]
    /// An existing profile that gets them; absent: a new one.
    public var toMPID: MPID?
    public var author: String
    public var reason: String

    public init(mpid: MPID, identities: [GetProfile.Named], toMPID: MPID? = nil, author: String, reason: String) {
        self.mpid = mpid
        self.identities = identities
        self.toMPID = toMPID
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let identities = json.value("identities", as: [GetProfile.Named].self),
            let toMPID = json.valueIfPresent("toMPID", as: MPID.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(mpid: mpid, identities: identities, toMPID: toMPID, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("identities", identities)
        try json.memberIfPresent("toMPID", toMPID)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { mpid.description }

    public var subject: (kind: String, name: String) { ("mpid", mpid.description) }
}

/// Takes away what keeps a profile apart: from another profile (`otherMPID`), or by one identity. Result:
/// ``AllowResult``.
public struct AllowMerge: RepairCommand {
    public static let type = "identity.sync.allow.v1"
    public static let scope = Scope.support

    public var mpid: MPID
    public var otherMPID: MPID?
    public var identity: GetProfile.Named?
    public var author: String
    public var reason: String

    public init(mpid: MPID, otherMPID: MPID? = nil, identity: GetProfile.Named? = nil, author: String, reason: String) {
        self.mpid = mpid
        self.otherMPID = otherMPID
        self.identity = identity
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let otherMPID = json.valueIfPresent("otherMPID", as: MPID.self),
            let identity = json.valueIfPresent("identity", as: GetProfile.Named.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(mpid: mpid, otherMPID: otherMPID, identity: identity, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.memberIfPresent("otherMPID", otherMPID)
        try json.memberIfPresent("identity", identity)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { mpid.description }

    public var subject: (kind: String, name: String) { ("mpid", mpid.description) }

    public func validate() throws(Rejection) {
        guard (otherMPID != nil) != (identity != nil) else {
            throw Rejection(.invalidRequest, "data needs otherMPID or identity, and not both.")
        }
        if let identity { try identity.validate("identity") }
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// A person asked that what is known of them be kept and not used (GDPR, Article 18), or asks for that no longer. The
/// profile is found as by `sync.get-profile`. Result: ``RestrictResult``. Where it is `rejected`: ``IdentityHolders``.
public struct RestrictProfile: RepairCommand {
    public static let type = "identity.sync.restrict.v1"
    public static let scope = Scope.support

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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.valueIfPresent("mpid", as: MPID.self),
            let identity = json.valueIfPresent("identity", as: GetProfile.Named.self),
            let isRestricted = json.value("isRestricted", as: Bool.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(mpid: mpid, identity: identity, isRestricted: isRestricted, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.memberIfPresent("mpid", mpid)
        try json.memberIfPresent("identity", identity)
        json.member("isRestricted", isRestricted)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var partitionSubject: String { mpid?.description ?? identity?.value ?? "" }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return (identity?.type ?? "", identity?.value ?? "")
    }

    public func validate() throws(Rejection) {
        guard (mpid != nil) != (identity != nil) else {
            throw Rejection(.invalidRequest, "data needs mpid or identity, and not both.")
        }
        if let identity { try identity.validate("identity") }
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

/// Brings profiles of another system, with who uses which device (docs/sync.md "Import"). Result: ``ImportResult``.
public struct ImportProfiles: ImportCommand {
    public static let type = "identity.sync.import-profiles.v1"
    public static let scope = Scope.importing

    public var profiles: [ListElement<ImportedProfile>]
    public var upsert: Bool?
    public var events: Bool?

    public init(profiles: [ListElement<ImportedProfile>], upsert: Bool? = nil, events: Bool? = nil) {
        self.profiles = profiles
        self.upsert = upsert
        self.events = events
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let profiles = json.value("profiles", as: [ListElement<ImportedProfile>].self),
            let upsert = json.valueIfPresent("upsert", as: Bool.self),
            let events = json.valueIfPresent("events", as: Bool.self)
        else { return nil }
        self.init(profiles: profiles, upsert: upsert, events: events)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("profiles", profiles)
        json.memberIfPresent("upsert", upsert)
        json.memberIfPresent("events", events)
        json.end()
    }
}

/// The users seen on a device. Result: ``DeviceUsersResult``.
public struct GetDeviceUsers: PersonQuery {
    public static let type = "identity.sync.get-users.v1"
    public static let scope = Scope.identitySync

    public var deviceId: DeviceID

    public init(deviceId: DeviceID) {
        self.deviceId = deviceId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId")
        else { return nil }
        self.init(deviceId: DeviceID(deviceId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public var subject: (kind: String, name: String) { ("deviceId", deviceId.text) }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// Erases a person's profile for good: identities, name, devices' pointers, aliases. What remains is its MPID, which is
/// never used again. `pending` until all services have erased. Whom the identities do not name for certain is refused
/// with `IdentityHolders`. Result: ``ErasureCertificate``. Where it is `rejected`: ``IdentityHolders``.
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

    /// Either this or `identities`.
    public var mpid: MPID?
    /// By wire name of the type. They find one profile, as a search does (S90).
    @SortedKeys public var identities: [String: String]
    /// All profiles that the identities find go, when they are several (S91).
    public var everyHolder: Bool?
    /// Absent: the app's default (S93).
    public var persons: Persons?

    public init(
        mpid: MPID? = nil, identities: [String: String] = [:], everyHolder: Bool? = nil, persons: Persons? = nil
    ) {
        self.mpid = mpid
        self.identities = identities
        self.everyHolder = everyHolder
        self.persons = persons
    }

    private enum CodingKeys: String, CodingKey {
        case mpid, identities, everyHolder, persons
    }

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

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.memberIfPresent("mpid", mpid)
        if !identities.isEmpty { try json.map("identities", identities) }
        json.memberIfPresent("everyHolder", everyHolder)
        try json.memberIfPresent("persons", persons)
        json.end()
    }

    public var partitionSubject: String { mpid?.description ?? identities.min { $0.key < $1.key }?.value ?? "" }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return identities.min { $0.key < $1.key }.map { ($0.key, $0.value) } ?? ("", "")
    }

    public func validate() throws(Rejection) {
        guard (mpid != nil) != (!identities.isEmpty) else {
            throw Rejection(.invalidRequest, "data needs either mpid or identities.")
        }
        for (type, value) in identities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "identities")
            try Validation.identityValue(value, "identities.\(type)")
        }
    }
}

/// The link service erased a person: the profiles that were the person's go as with `sync.erase-profile`. Result:
/// ``ErasureCertificate``.
public struct ForgetProfiles: CommandMessage {
    public static let type = "identity.sync.forget.v1"
    public static let scope = Scope.internal

    /// Profiles go that are marked with this user and one of these external ids.
    public var userId: UserID?
    /// Profiles with this customer id go, unless they got it after `erasedAt`.
    public var externalId: ExternalID?
    /// What the person was called before support changed that. Absent: nothing else.
    public var former: [FormerExternalID]?
    /// The moment (L45) of the command that erased the person. Absent: now.
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.textIfPresent("userId"),
            let externalId = json.textIfPresent("externalId"),
            let former = json.valueIfPresent("former", as: [FormerExternalID].self),
            let erasedAt = json.valueIfPresent("erasedAt", as: Timestamp.self)
        else { return nil }
        self.init(
            userId: userId.map { UserID($0) }, externalId: externalId.map { ExternalID($0) }, former: former,
            erasedAt: erasedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.memberIfPresent("userId", userId)
        json.memberIfPresent("externalId", externalId)
        try json.memberIfPresent("former", former)
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
        for (index, one) in (former ?? []).enumerated() {
            try one.validate("former[\(index)]")
        }
    }
}

/// The sync service to itself: whom it erased goes in a replay too, where the profile has another MPID by then (S125).
/// Result: ``ErasureCertificate``.
public struct KeepErased: CommandMessage {
    public static let type = "identity.sync.keep-erased.v1"
    public static let scope = Scope.internal

    /// The smallest MPID that was erased.
    public var mpid: MPID
    /// The moment (L45) of the erasure: who came later is somebody else.
    public var erasedAt: Timestamp
    /// By what those who were erased are found again, in hex: closed with the salt of the service's store. Absent: they
    /// are not looked for.
    public var whom: String?
    /// Of whom the link service has said that they are gone. Absent: nothing.
    public var userIds: [UserID]?

    public init(mpid: MPID, erasedAt: Timestamp, whom: String? = nil, userIds: [UserID]? = nil) {
        self.mpid = mpid
        self.erasedAt = erasedAt
        self.whom = whom
        self.userIds = userIds
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let erasedAt = json.value("erasedAt", as: Timestamp.self),
            let whom = json.textIfPresent("whom"),
            let userIds = json.valueIfPresent("userIds", as: [UserID].self)
        else { return nil }
        self.init(mpid: mpid, erasedAt: erasedAt, whom: whom, userIds: userIds)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("erasedAt", erasedAt)
        json.memberIfPresent("whom", whom)
        try json.memberIfPresent("userIds", userIds)
        json.end()
    }

    public var partitionSubject: String { mpid.description }

    public func validate() throws(Rejection) {
        for (index, one) in (userIds ?? []).enumerated() {
            try Validation.id(one, "userIds[\(index)]")
        }
    }
}

/// What became of the erasure of a profile. `NOT_FOUND_ERROR` when there was none. Result: ``ErasureCertificate``.
public struct GetProfileErasure: PersonQuery {
    public static let type = "identity.sync.get-erasure.v1"
    public static let scope = Scope.userDelete

    public var mpid: MPID

    public init(mpid: MPID) {
        self.mpid = mpid
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self)
        else { return nil }
        self.init(mpid: mpid)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        json.end()
    }

    public var partitionSubject: String { mpid.description }

    public var subject: (kind: String, name: String) { ("mpid", mpid.description) }

    public func validate() throws(Rejection) {}
}

/// Reads a profile, found by its MPID or by one identity, as an erasure finds it (S90): nobody is found for certain by
/// what several people have. Result: ``ProfileResult``. Where it is `rejected`: ``IdentityHolders``.
public struct GetProfile: PersonQuery {
    public static let type = "identity.sync.get-profile.v1"
    public static let scope = Scope.support

    public struct Named: Codable, WireReadable, WireWritable, Sendable, Hashable {
        /// Another word is refused with `VALIDATION_ERROR` (S4).
        public var type: String
        public var value: String

        public init(type: String, value: String) {
            self.type = type
            self.value = value
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let type = json.text("type"),
                let value = json.text("value")
            else { return nil }
            self.init(type: type, value: value)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("type", type)
            json.member("value", value)
            json.end()
        }

        func validate(_ path: @autoclosure () -> String) throws(Rejection) {
            try Validation.identityType(type, "\(path()).type")
            try Validation.identityValue(value, "\(path()).value")
        }
    }

    public var mpid: MPID?
    public var identity: Named?
    /// Where the page before ended (`next`).
    public var after: String?

    public init(mpid: MPID? = nil, identity: Named? = nil, after: String? = nil) {
        self.mpid = mpid
        self.identity = identity
        self.after = after
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.valueIfPresent("mpid", as: MPID.self),
            let identity = json.valueIfPresent("identity", as: Named.self),
            let after = json.textIfPresent("after")
        else { return nil }
        self.init(mpid: mpid, identity: identity, after: after)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.memberIfPresent("mpid", mpid)
        try json.memberIfPresent("identity", identity)
        json.memberIfPresent("after", after)
        json.end()
    }

    public var partitionSubject: String { mpid?.description ?? identity?.value ?? "" }

    public var subject: (kind: String, name: String) {
        if let mpid { return ("mpid", mpid.description) }
        return (identity?.type ?? "", identity?.value ?? "")
    }
}

/// A person asks for something. The same request again is answered as it stands. Result: ``SubjectRequestResult``.
public struct FileRequest: CommandMessage {
    public static let type = "identity.sync.file-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support

    /// A UUID, of whoever sends it.
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    /// Either this or `identities`.
    public var mpid: MPID?
    /// By wire name of the type. They find one profile, as a search does (S90).
    @SortedKeys public var identities: [String: String]
    /// Of an erasure: all profiles that the identities find go, when they are several.
    public var everyHolder: Bool?
    /// `gdpr`, `ccpa` or another word.
    public var regulation: String?
    /// When the person asked.
    public var submittedAt: Timestamp?
    /// By which requests are found together.
    public var groupId: String?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, mpid: MPID? = nil, identities: [String: String] = [:],
        everyHolder: Bool? = nil, regulation: String? = nil, submittedAt: Timestamp? = nil, groupId: String? = nil
    ) {
        self.requestId = requestId
        self.kind = kind
        self.mpid = mpid
        self.identities = identities
        self.everyHolder = everyHolder
        self.regulation = regulation
        self.submittedAt = submittedAt
        self.groupId = groupId
    }

    private enum CodingKeys: String, CodingKey {
        case requestId, kind, mpid, identities, everyHolder, regulation, submittedAt, groupId
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        requestId = try container.decode(SubjectRequestID.self, forKey: .requestId)
        kind = try container.decode(SubjectRequest.Kind.self, forKey: .kind)
        mpid = try container.decodeIfPresent(MPID.self, forKey: .mpid)
        identities = try container.decodeIfPresent([String: String].self, forKey: .identities) ?? [:]
        everyHolder = try container.decodeIfPresent(Bool.self, forKey: .everyHolder)
        regulation = try container.decodeIfPresent(String.self, forKey: .regulation)
        submittedAt = try container.decodeIfPresent(Timestamp.self, forKey: .submittedAt)
        groupId = try container.decodeIfPresent(String.self, forKey: .groupId)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(requestId, forKey: .requestId)
        try container.encode(kind, forKey: .kind)
        try container.encodeIfPresent(mpid, forKey: .mpid)
        if !identities.isEmpty { try container.encode(_identities, forKey: .identities) }
        try container.encodeIfPresent(everyHolder, forKey: .everyHolder)
        try container.encodeIfPresent(regulation, forKey: .regulation)
        try container.encodeIfPresent(submittedAt, forKey: .submittedAt)
        try container.encodeIfPresent(groupId, forKey: .groupId)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.member("kind", kind)
        try json.memberIfPresent("mpid", mpid)
        if !identities.isEmpty { try json.map("identities", identities) }
        json.memberIfPresent("everyHolder", everyHolder)
        json.memberIfPresent("regulation", regulation)
        try json.memberIfPresent("submittedAt", submittedAt)
        json.memberIfPresent("groupId", groupId)
        json.end()
    }

    public var partitionSubject: String { requestId.text }
}

/// How far a request is. Result: ``SubjectRequestResult``.
public struct GetRequest: RequestCommand {
    public static let type = "identity.sync.get-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support

    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) {
        self.requestId = requestId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId")
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        json.end()
    }

    public var partitionSubject: String { requestId.text }

    public func validate() throws(Rejection) {
        try Validation.requestID(requestId, "requestId")
    }
}

/// The requests of a group, the latest first. Result: ``SubjectRequestsResult``.
public struct GetRequests: CommandMessage {
    public static let type = "identity.sync.get-requests.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support

    public var groupId: String

    public init(groupId: String) {
        self.groupId = groupId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let groupId = json.text("groupId")
        else { return nil }
        self.init(groupId: groupId)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("groupId", groupId)
        json.end()
    }

    public var partitionSubject: String { groupId }

    public func validate() throws(Rejection) {
        try Validation.text(groupId, "groupId")
    }
}

/// The request is not to be carried out. Result: ``SubjectRequestResult``.
public struct CancelRequest: RequestCommand {
    public static let type = "identity.sync.cancel-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support

    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) {
        self.requestId = requestId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId")
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        json.end()
    }

    public var partitionSubject: String { requestId.text }

    public func validate() throws(Rejection) {
        try Validation.requestID(requestId, "requestId")
    }
}

/// What the sync service holds of the person who asked for it. Result: ``RequestResultsResult``.
public struct GetRequestResults: PersonQuery, RequestCommand {
    public static let type = "identity.sync.get-request-results.v1"
    public static let scope = Scope.support

    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) {
        self.requestId = requestId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId")
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        json.end()
    }

    public var partitionSubject: String { requestId.text }

    public var subject: (kind: String, name: String) { ("requestId", requestId.text) }

    public func validate() throws(Rejection) {
        try Validation.requestID(requestId, "requestId")
    }
}

/// The sync service to itself: it is time to go on with a request.
public struct ProcessRequest: RequestCommand {
    public static let type = "identity.sync.process-request.v1"
    public static let scope = Scope.internal

    public var requestId: SubjectRequestID
    /// When it was to begin: in a replay the app may have another delay. Absent: it has begun.
    public var startsAt: Timestamp?

    public init(requestId: SubjectRequestID, startsAt: Timestamp? = nil) {
        self.requestId = requestId
        self.startsAt = startsAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId"),
            let startsAt = json.valueIfPresent("startsAt", as: Timestamp.self)
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId), startsAt: startsAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.memberIfPresent("startsAt", startsAt)
        json.end()
    }

    public var partitionSubject: String { requestId.text }

    public func validate() throws(Rejection) {
        try Validation.requestID(requestId, "requestId")
    }
}

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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(mpid: mpid, lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("lastSeen", lastSeen)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("lastSeen", lastSeen)
        json.end()
    }

    public var partitionSubject: String { deviceId.text }

    public func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
    }
}

/// Support took identities from one profile and gave them to another. What either did before is not divided.
public struct ProfileDetached: EventMessage {
    public static let type = "identity.sync.profile-detached.v1"

    public var fromMPID: MPID
    public var toMPID: MPID
    public var identities: [Identity]
    public var author: String
    public var reason: String

    public init(fromMPID: MPID, toMPID: MPID, identities: [Identity], author: String, reason: String) {
        self.fromMPID = fromMPID
        self.toMPID = toMPID
        self.identities = identities
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let fromMPID = json.value("fromMPID", as: MPID.self),
            let toMPID = json.value("toMPID", as: MPID.self),
            let identities = json.value("identities", as: [Identity].self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(fromMPID: fromMPID, toMPID: toMPID, identities: identities, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("fromMPID", fromMPID)
        try json.member("toMPID", toMPID)
        try json.member("identities", identities)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var subject: String { fromMPID.description }
}

/// An identify, login or logout named what its profile may not have, and it was left out.
public struct MergeBarred: EventMessage {
    public static let type = "identity.sync.merge-barred.v1"

    public var mpid: MPID
    public var deviceId: DeviceID
    public var cause: SyncCause
    public var types: [IdentityType]

    public init(mpid: MPID, deviceId: DeviceID, cause: SyncCause, types: [IdentityType]) {
        self.mpid = mpid
        self.deviceId = deviceId
        self.cause = cause
        self.types = types
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let deviceId = json.text("deviceId"),
            let cause = json.value("cause", as: SyncCause.self),
            let types = json.value("types", as: [IdentityType].self)
        else { return nil }
        self.init(mpid: mpid, deviceId: DeviceID(deviceId), cause: cause, types: types)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        json.member("deviceId", deviceId)
        try json.member("cause", cause)
        try json.member("types", types)
        json.end()
    }

    public var subject: String { mpid.description }
}

/// Support took away what kept a profile apart.
public struct MergeAllowed: EventMessage {
    public static let type = "identity.sync.merge-allowed.v1"

    public var mpid: MPID
    /// The latest, as many as `barriers` has.
    public var allowed: [MergeBarrier]
    public var allowedCount: Int
    public var author: String
    public var reason: String

    public init(mpid: MPID, allowed: [MergeBarrier], allowedCount: Int, author: String, reason: String) {
        self.mpid = mpid
        self.allowed = allowed
        self.allowedCount = allowedCount
        self.author = author
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let allowed = json.value("allowed", as: [MergeBarrier].self),
            let allowedCount = json.value("allowedCount", as: Int.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(mpid: mpid, allowed: allowed, allowedCount: allowedCount, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("allowed", allowed)
        try json.member("allowedCount", allowedCount)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var subject: String { mpid.description }
}

/// Support restricted a profile, or ended that (`sync.restrict`).
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let isRestricted = json.value("isRestricted", as: Bool.self),
            let author = json.text("author"),
            let reason = json.text("reason")
        else { return nil }
        self.init(mpid: mpid, isRestricted: isRestricted, author: author, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        json.member("isRestricted", isRestricted)
        json.member("author", author)
        json.member("reason", reason)
        json.end()
    }

    public var subject: String { mpid.description }
}

/// A profile restricts a user of the link service from now on, or no longer: the profile was restricted or is not any
/// more, or a restricted one was marked with the user or is not any more.
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let userId = json.text("userId"),
            let mpid = json.value("mpid", as: MPID.self),
            let isRestricted = json.value("isRestricted", as: Bool.self),
            let changedAt = json.value("changedAt", as: Timestamp.self)
        else { return nil }
        self.init(userId: UserID(userId), mpid: mpid, isRestricted: isRestricted, changedAt: changedAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("userId", userId)
        try json.member("mpid", mpid)
        json.member("isRestricted", isRestricted)
        try json.member("changedAt", changedAt)
        json.end()
    }

    public var subject: String { userId.text }
}

/// A profile is gone because nobody came back to it. Its MPID stays unused.
public struct ProfileExpired: EventMessage {
    public static let type = "identity.sync.profile-expired.v1"

    public var mpid: MPID
    public var lastSeen: Timestamp

    public init(mpid: MPID, lastSeen: Timestamp) {
        self.mpid = mpid
        self.lastSeen = lastSeen
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(mpid: mpid, lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("lastSeen", lastSeen)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let lastSeen = json.value("lastSeen", as: Timestamp.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), lastSeen: lastSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("lastSeen", lastSeen)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// A request of a data subject was filed, begun, completed or cancelled.
public struct RequestChanged: EventMessage {
    public static let type = "identity.sync.request-changed.v1"

    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var status: SubjectRequest.Status
    public var reason: ReasonCode?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, status: SubjectRequest.Status, reason: ReasonCode? = nil
    ) {
        self.requestId = requestId
        self.kind = kind
        self.status = status
        self.reason = reason
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId"),
            let kind = json.value("kind", as: SubjectRequest.Kind.self),
            let status = json.value("status", as: SubjectRequest.Status.self),
            let reason = json.valueIfPresent("reason", as: ReasonCode.self)
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId), kind: kind, status: status, reason: reason)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.member("kind", kind)
        try json.member("status", status)
        try json.memberIfPresent("reason", reason)
        json.end()
    }

    public var subject: String { requestId.text }
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let rule = json.value("rule", as: SyncRule.self),
            let isLoggedIn = json.value("isLoggedIn", as: Bool.self),
            let identities = json.value("identities", as: [Identity].self)
        else { return nil }
        self.init(mpid: mpid, cause: cause, rule: rule, isLoggedIn: isLoggedIn, identities: identities)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        try json.member("rule", rule)
        json.member("isLoggedIn", isLoggedIn)
        try json.member("identities", identities)
        json.end()
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
    /// See `move`.
    public var move: Int64

    public init(
        deviceId: DeviceID, previousMPID: MPID? = nil, mpid: MPID, cause: SyncCause, rule: SyncRule, isLoggedIn: Bool,
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let previousMPID = json.valueIfPresent("previousMPID", as: MPID.self),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let rule = json.value("rule", as: SyncRule.self),
            let isLoggedIn = json.value("isLoggedIn", as: Bool.self),
            let isEphemeral = json.value("isEphemeral", as: Bool.self),
            let move = json.value("move", as: Int64.self)
        else { return nil }
        self.init(
            deviceId: DeviceID(deviceId), previousMPID: previousMPID, mpid: mpid, cause: cause, rule: rule,
            isLoggedIn: isLoggedIn, isEphemeral: isEphemeral, move: move)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.memberIfPresent("previousMPID", previousMPID)
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        try json.member("rule", rule)
        json.member("isLoggedIn", isLoggedIn)
        json.member("isEphemeral", isEphemeral)
        json.member("move", move)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let reason = json.value("reason", as: Reason.self),
            let added = json.value("added", as: [Identity].self),
            let removed = json.value("removed", as: [Identity].self),
            let isLoggedIn = json.value("isLoggedIn", as: Bool.self)
        else { return nil }
        self.init(mpid: mpid, cause: cause, reason: reason, added: added, removed: removed, isLoggedIn: isLoggedIn)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        try json.member("reason", reason)
        try json.member("added", added)
        try json.member("removed", removed)
        json.member("isLoggedIn", isLoggedIn)
        json.end()
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

    public init(mpid: MPID, cause: SyncCause, takenBy: MPID? = nil) {
        self.mpid = mpid
        self.cause = cause
        self.takenBy = takenBy
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let takenBy = json.valueIfPresent("takenBy", as: MPID.self)
        else { return nil }
        self.init(mpid: mpid, cause: cause, takenBy: takenBy)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        try json.memberIfPresent("takenBy", takenBy)
        json.end()
    }

    public var subject: String { mpid.description }
}

/// The profile is a user's of the link service from now on, or another user's, or nobody's (S142). An erasure tells it
/// by `sync.profile-erased` instead.
public struct LinkedUserChanged: EventMessage {
    public static let type = "identity.sync.linked-user-changed.v1"

    public var mpid: MPID
    public var cause: SyncCause
    public var previousUserId: UserID?
    public var userId: UserID?
    /// All that the profile has: these come along with it.
    public var identities: [Identity]

    public init(
        mpid: MPID, cause: SyncCause, previousUserId: UserID? = nil, userId: UserID? = nil, identities: [Identity]
    ) {
        self.mpid = mpid
        self.cause = cause
        self.previousUserId = previousUserId
        self.userId = userId
        self.identities = identities
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let previousUserId = json.textIfPresent("previousUserId"),
            let userId = json.textIfPresent("userId"),
            let identities = json.value("identities", as: [Identity].self)
        else { return nil }
        self.init(
            mpid: mpid, cause: cause, previousUserId: previousUserId.map { UserID($0) },
            userId: userId.map { UserID($0) }, identities: identities)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        json.memberIfPresent("previousUserId", previousUserId)
        json.memberIfPresent("userId", userId)
        try json.member("identities", identities)
        json.end()
    }

    public var subject: String { mpid.description }
}

/// Support gave a user the customer id of another profile, which counts as aliased into the user's from now on: it is
/// in the user's export, and goes with the user's erasure (S122).
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let sourceMPID = json.value("sourceMPID", as: MPID.self),
            let destinationMPID = json.value("destinationMPID", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let identities = json.value("identities", as: [Identity].self)
        else { return nil }
        self.init(sourceMPID: sourceMPID, destinationMPID: destinationMPID, cause: cause, identities: identities)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("sourceMPID", sourceMPID)
        try json.member("destinationMPID", destinationMPID)
        try json.member("cause", cause)
        try json.member("identities", identities)
        json.end()
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
        scope: AliasUsers.Reach, deviceApplicationStamp: String? = nil, firstSeen: Timestamp
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let aliasId = json.text("aliasId"),
            let sourceMPID = json.value("sourceMPID", as: MPID.self),
            let destinationMPID = json.value("destinationMPID", as: MPID.self),
            let startUnixtimeMs = json.value("startUnixtimeMs", as: Int64.self),
            let endUnixtimeMs = json.value("endUnixtimeMs", as: Int64.self),
            let scope = json.value("scope", as: AliasUsers.Reach.self),
            let deviceApplicationStamp = json.textIfPresent("deviceApplicationStamp"),
            let firstSeen = json.value("firstSeen", as: Timestamp.self)
        else { return nil }
        self.init(
            aliasId: AliasID(aliasId), sourceMPID: sourceMPID, destinationMPID: destinationMPID,
            startUnixtimeMs: startUnixtimeMs, endUnixtimeMs: endUnixtimeMs, scope: scope,
            deviceApplicationStamp: deviceApplicationStamp, firstSeen: firstSeen)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("aliasId", aliasId)
        try json.member("sourceMPID", sourceMPID)
        try json.member("destinationMPID", destinationMPID)
        json.member("startUnixtimeMs", startUnixtimeMs)
        json.member("endUnixtimeMs", endUnixtimeMs)
        try json.member("scope", scope)
        json.memberIfPresent("deviceApplicationStamp", deviceApplicationStamp)
        try json.member("firstSeen", firstSeen)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let aliasId = json.text("aliasId"),
            let sourceMPID = json.value("sourceMPID", as: MPID.self),
            let destinationMPID = json.value("destinationMPID", as: MPID.self),
            let rule = json.value("rule", as: Rule.self)
        else { return nil }
        self.init(aliasId: AliasID(aliasId), sourceMPID: sourceMPID, destinationMPID: destinationMPID, rule: rule)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("aliasId", aliasId)
        try json.member("sourceMPID", sourceMPID)
        try json.member("destinationMPID", destinationMPID)
        try json.member("rule", rule)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self)
        else { return nil }
        self.init(mpid: mpid, cause: cause)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        json.end()
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
    /// See `move`.
    public var move: Int64

    public init(deviceId: DeviceID, mpid: MPID, cause: SyncCause, move: Int64) {
        self.deviceId = deviceId
        self.mpid = mpid
        self.cause = cause
        self.move = move
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let mpid = json.value("mpid", as: MPID.self),
            let cause = json.value("cause", as: SyncCause.self),
            let move = json.value("move", as: Int64.self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), mpid: mpid, cause: cause, move: move)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("mpid", mpid)
        try json.member("cause", cause)
        json.member("move", move)
        json.end()
    }

    public var subject: String { deviceId.text }
}

/// One value is shared by half as many profiles as the app's limit allows: most likely it names nobody. Said before the
/// limit takes it from anybody.
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let type = json.value("type", as: IdentityType.self),
            let digest = json.text("digest"),
            let holders = json.value("holders", as: Int.self),
            let limit = json.value("limit", as: Int.self)
        else { return nil }
        self.init(type: type, digest: digest, holders: holders, limit: limit)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("type", type)
        json.member("digest", digest)
        try json.member("holders", holders)
        try json.member("limit", limit)
        json.end()
    }

    public var subject: String { digest }
}

/// What was detached, and what the devices of the profile have to do with it.
public struct DetachResult: CommandResult {
    public struct Device: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var deviceId: DeviceID
        /// Its current user from now on.
        public var mpid: MPID
        /// Its user is another one, or known no longer: a session that the verification service has for it ends.
        public var endsSession: Bool
        public var nextLogin: DetachResult.NextLogin

        public init(deviceId: DeviceID, mpid: MPID, endsSession: Bool, nextLogin: DetachResult.NextLogin) {
            self.deviceId = deviceId
            self.mpid = mpid
            self.endsSession = endsSession
            self.nextLogin = nextLogin
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let deviceId = json.text("deviceId"),
                let mpid = json.value("mpid", as: MPID.self),
                let endsSession = json.value("endsSession", as: Bool.self),
                let nextLogin = json.value("nextLogin", as: DetachResult.NextLogin.self)
            else { return nil }
            self.init(deviceId: DeviceID(deviceId), mpid: mpid, endsSession: endsSession, nextLogin: nextLogin)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("deviceId", deviceId)
            try json.member("mpid", mpid)
            json.member("endsSession", endsSession)
            try json.member("nextLogin", nextLogin)
            json.end()
        }
    }

    /// What a login finds that names the device's identities, and of each type the oldest login identity that the
    /// profile had.
    public struct NextLogin: Codable, WireReadable, WireWritable, Sendable, Hashable {
        /// `nil`: it would make a profile.
        public var mpid: MPID?
        /// What the profile may not have and is left out.
        public var barred: [IdentityType]

        public init(mpid: MPID? = nil, barred: [IdentityType]) {
            self.mpid = mpid
            self.barred = barred
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let mpid = json.valueIfPresent("mpid", as: MPID.self),
                let barred = json.value("barred", as: [IdentityType].self)
            else { return nil }
            self.init(mpid: mpid, barred: barred)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.memberIfPresent("mpid", mpid)
            try json.member("barred", barred)
            json.end()
        }
    }

    public var mpid: MPID
    public var newMPID: MPID
    /// Empty when all of it was detached before.
    public var moved: [Identity]
    /// Whose current user the profile was: those first whose user is another one now, 100 at most.
    public var devices: [Device]
    public var deviceCount: Int

    public init(mpid: MPID, newMPID: MPID, moved: [Identity], devices: [Device], deviceCount: Int) {
        self.mpid = mpid
        self.newMPID = newMPID
        self.moved = moved
        self.devices = devices
        self.deviceCount = deviceCount
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let newMPID = json.value("newMPID", as: MPID.self),
            let moved = json.value("moved", as: [Identity].self),
            let devices = json.value("devices", as: [Device].self),
            let deviceCount = json.value("deviceCount", as: Int.self)
        else { return nil }
        self.init(mpid: mpid, newMPID: newMPID, moved: moved, devices: devices, deviceCount: deviceCount)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("newMPID", newMPID)
        try json.member("moved", moved)
        try json.member("devices", devices)
        try json.member("deviceCount", deviceCount)
        json.end()
    }
}

/// `sync.allow`: what keeps the profile apart no longer; empty when nothing did.
public struct AllowResult: CommandResult {
    public var mpid: MPID
    /// The latest, as many as `barriers` has.
    public var allowed: [MergeBarrier]
    public var allowedCount: Int

    public init(mpid: MPID, allowed: [MergeBarrier], allowedCount: Int) {
        self.mpid = mpid
        self.allowed = allowed
        self.allowedCount = allowedCount
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let allowed = json.value("allowed", as: [MergeBarrier].self),
            let allowedCount = json.value("allowedCount", as: Int.self)
        else { return nil }
        self.init(mpid: mpid, allowed: allowed, allowedCount: allowedCount)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("allowed", allowed)
        try json.member("allowedCount", allowedCount)
        json.end()
    }
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let count = json.value("count", as: Int.self),
            let heldByOthers = json.value("heldByOthers", as: Int.self)
        else { return nil }
        self.init(count: count, heldByOthers: heldByOthers)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("count", count)
        try json.member("heldByOthers", heldByOthers)
        json.end()
    }
}

/// A profile of the sync service.
public struct ProfileResult: CommandResult {
    public struct Device: Codable, WireReadable, WireWritable, Sendable, Hashable {
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

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let deviceId = json.text("deviceId"),
                let isCurrent = json.value("isCurrent", as: Bool.self),
                let firstSeen = json.value("firstSeen", as: Timestamp.self),
                let lastSeen = json.value("lastSeen", as: Timestamp.self)
            else { return nil }
            self.init(deviceId: DeviceID(deviceId), isCurrent: isCurrent, firstSeen: firstSeen, lastSeen: lastSeen)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("deviceId", deviceId)
            json.member("isCurrent", isCurrent)
            try json.member("firstSeen", firstSeen)
            try json.member("lastSeen", lastSeen)
            json.end()
        }
    }

    public var mpid: MPID
    /// The values of each type, the oldest first; of more than 48,000 bytes the latest. `identityCount` says how many
    /// there are.
    @SortedKeys public var identities: [String: [String]]
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
    /// The next page's `after`, for the same question; `nil` on the last page.
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
        mpid: MPID, identities: [String: [String]], identityCount: Int, isLoggedIn: Bool, firstSeen: Timestamp,
        lastSeen: Timestamp, aliasedSince: Timestamp? = nil, aliasedFrom: [MPID], aliasedFromCount: Int,
        name: String? = nil, userId: UserID? = nil, devices: [Device], deviceCount: Int, next: String? = nil,
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let identities = json.map("identities", of: [String].self),
            let identityCount = json.value("identityCount", as: Int.self),
            let isLoggedIn = json.value("isLoggedIn", as: Bool.self),
            let firstSeen = json.value("firstSeen", as: Timestamp.self),
            let lastSeen = json.value("lastSeen", as: Timestamp.self),
            let aliasedSince = json.valueIfPresent("aliasedSince", as: Timestamp.self),
            let aliasedFrom = json.value("aliasedFrom", as: [MPID].self),
            let aliasedFromCount = json.value("aliasedFromCount", as: Int.self),
            let name = json.textIfPresent("name"),
            let userId = json.textIfPresent("userId"),
            let devices = json.value("devices", as: [Device].self),
            let deviceCount = json.value("deviceCount", as: Int.self),
            let next = json.textIfPresent("next"),
            let barriers = json.value("barriers", as: [MergeBarrier].self),
            let barrierCount = json.value("barrierCount", as: Int.self),
            let isRestricted = json.value("isRestricted", as: Bool.self),
            let isOrphaned = json.value("isOrphaned", as: Bool.self),
            let isErased = json.value("isErased", as: Bool.self)
        else { return nil }
        self.init(
            mpid: mpid, identities: identities, identityCount: identityCount, isLoggedIn: isLoggedIn,
            firstSeen: firstSeen, lastSeen: lastSeen, aliasedSince: aliasedSince, aliasedFrom: aliasedFrom,
            aliasedFromCount: aliasedFromCount, name: name, userId: userId.map { UserID($0) }, devices: devices,
            deviceCount: deviceCount, next: next, barriers: barriers, barrierCount: barrierCount,
            isRestricted: isRestricted, isOrphaned: isOrphaned, isErased: isErased)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.map("identities", identities)
        try json.member("identityCount", identityCount)
        json.member("isLoggedIn", isLoggedIn)
        try json.member("firstSeen", firstSeen)
        try json.member("lastSeen", lastSeen)
        try json.memberIfPresent("aliasedSince", aliasedSince)
        try json.member("aliasedFrom", aliasedFrom)
        try json.member("aliasedFromCount", aliasedFromCount)
        json.memberIfPresent("name", name)
        json.memberIfPresent("userId", userId)
        try json.member("devices", devices)
        try json.member("deviceCount", deviceCount)
        json.memberIfPresent("next", next)
        try json.member("barriers", barriers)
        try json.member("barrierCount", barrierCount)
        json.member("isRestricted", isRestricted)
        json.member("isOrphaned", isOrphaned)
        json.member("isErased", isErased)
        json.end()
    }
}

/// `sync.restrict`: the profile as it is now.
public struct RestrictResult: CommandResult {
    public var mpid: MPID
    public var isRestricted: Bool
    /// Of the link service, where a link says who this is: the user's installs are disabled as long as it is
    /// restricted.
    public var userId: UserID?

    public init(mpid: MPID, isRestricted: Bool, userId: UserID? = nil) {
        self.mpid = mpid
        self.isRestricted = isRestricted
        self.userId = userId
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let isRestricted = json.value("isRestricted", as: Bool.self),
            let userId = json.textIfPresent("userId")
        else { return nil }
        self.init(mpid: mpid, isRestricted: isRestricted, userId: userId.map { UserID($0) })
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        json.member("isRestricted", isRestricted)
        json.memberIfPresent("userId", userId)
        json.end()
    }
}

/// How far a request is.
public struct SubjectRequestResult: CommandResult {
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var status: SubjectRequest.Status
    /// Why it is not completed yet: `AMBIGUOUS_IDENTITY` when others hold what was named, so that nobody knows whether
    /// the person is gone; `SERVER_ERROR` when another service could not do its part.
    public var reason: ReasonCode?
    public var groupId: String?
    public var receivedAt: Timestamp
    /// When it begins: until then it can be cancelled.
    public var startsAt: Timestamp
    /// When it is done, or usually would be.
    public var expectedAt: Timestamp
    public var completedAt: Timestamp?
    /// Of access and portability: until when the results can be had. Absent before it is completed.
    public var resultsUntil: Timestamp?
    /// How many profiles were found; those of an erasure are gone.
    public var profileCount: Int
    /// How many profiles hold a value that was named, and stay.
    public var heldByOthers: Int?
    /// Of an erasure: what was done.
    public var certificates: [ErasureCertificate]?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, status: SubjectRequest.Status,
        reason: ReasonCode? = nil, groupId: String? = nil, receivedAt: Timestamp, startsAt: Timestamp,
        expectedAt: Timestamp, completedAt: Timestamp? = nil, resultsUntil: Timestamp? = nil, profileCount: Int = 0,
        heldByOthers: Int? = nil, certificates: [ErasureCertificate]? = nil
    ) {
        self.requestId = requestId
        self.kind = kind
        self.status = status
        self.reason = reason
        self.groupId = groupId
        self.receivedAt = receivedAt
        self.startsAt = startsAt
        self.expectedAt = expectedAt
        self.completedAt = completedAt
        self.resultsUntil = resultsUntil
        self.profileCount = profileCount
        self.heldByOthers = heldByOthers
        self.certificates = certificates
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId"),
            let kind = json.value("kind", as: SubjectRequest.Kind.self),
            let status = json.value("status", as: SubjectRequest.Status.self),
            let reason = json.valueIfPresent("reason", as: ReasonCode.self),
            let groupId = json.textIfPresent("groupId"),
            let receivedAt = json.value("receivedAt", as: Timestamp.self),
            let startsAt = json.value("startsAt", as: Timestamp.self),
            let expectedAt = json.value("expectedAt", as: Timestamp.self),
            let completedAt = json.valueIfPresent("completedAt", as: Timestamp.self),
            let resultsUntil = json.valueIfPresent("resultsUntil", as: Timestamp.self),
            let profileCount = json.value("profileCount", as: Int.self),
            let heldByOthers = json.valueIfPresent("heldByOthers", as: Int.self),
            let certificates = json.valueIfPresent("certificates", as: [ErasureCertificate].self)
        else { return nil }
        self.init(
            requestId: SubjectRequestID(requestId), kind: kind, status: status, reason: reason, groupId: groupId,
            receivedAt: receivedAt, startsAt: startsAt, expectedAt: expectedAt, completedAt: completedAt,
            resultsUntil: resultsUntil, profileCount: profileCount, heldByOthers: heldByOthers,
            certificates: certificates)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.member("kind", kind)
        try json.member("status", status)
        try json.memberIfPresent("reason", reason)
        json.memberIfPresent("groupId", groupId)
        try json.member("receivedAt", receivedAt)
        try json.member("startsAt", startsAt)
        try json.member("expectedAt", expectedAt)
        try json.memberIfPresent("completedAt", completedAt)
        try json.memberIfPresent("resultsUntil", resultsUntil)
        try json.member("profileCount", profileCount)
        try json.memberIfPresent("heldByOthers", heldByOthers)
        try json.memberIfPresent("certificates", certificates)
        json.end()
    }
}

/// `sync.get-requests`: 100 at most.
public struct SubjectRequestsResult: CommandResult {
    public var groupId: String
    public var requests: [SubjectRequestResult]

    public init(groupId: String, requests: [SubjectRequestResult]) {
        self.groupId = groupId
        self.requests = requests
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let groupId = json.text("groupId"),
            let requests = json.value("requests", as: [SubjectRequestResult].self)
        else { return nil }
        self.init(groupId: groupId, requests: requests)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("groupId", groupId)
        try json.member("requests", requests)
        json.end()
    }
}

/// `sync.get-request-results`: the profiles as they are now, without the barriers, which name others.
public struct RequestResultsResult: CommandResult {
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var profiles: [ProfileResult]
    /// By which the link service may have users of theirs that the profiles do not name (S218).
    public var externalIds: [ExternalID]

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, profiles: [ProfileResult],
        externalIds: [ExternalID] = []
    ) {
        self.requestId = requestId
        self.kind = kind
        self.profiles = profiles
        self.externalIds = externalIds
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId"),
            let kind = json.value("kind", as: SubjectRequest.Kind.self),
            let profiles = json.value("profiles", as: [ProfileResult].self),
            let externalIds = json.value("externalIds", as: [ExternalID].self)
        else { return nil }
        self.init(requestId: SubjectRequestID(requestId), kind: kind, profiles: profiles, externalIds: externalIds)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.member("kind", kind)
        try json.member("profiles", profiles)
        try json.member("externalIds", externalIds)
        json.end()
    }
}

/// `sync.alias`: accepted, to be applied when the delay is over.
public struct AliasResult: CommandResult {
    public var aliasId: AliasID
    /// Whether it will be applied. False when one of the silent rules drops it; an `alias-dropped` event says which.
    public var isScheduled: Bool
    /// RFC 3339; absent when it is dropped.
    public var appliesAt: Timestamp?

    public init(aliasId: AliasID, isScheduled: Bool, appliesAt: Timestamp? = nil) {
        self.aliasId = aliasId
        self.isScheduled = isScheduled
        self.appliesAt = appliesAt
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let aliasId = json.text("aliasId"),
            let isScheduled = json.value("isScheduled", as: Bool.self),
            let appliesAt = json.valueIfPresent("appliesAt", as: Timestamp.self)
        else { return nil }
        self.init(aliasId: AliasID(aliasId), isScheduled: isScheduled, appliesAt: appliesAt)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("aliasId", aliasId)
        json.member("isScheduled", isScheduled)
        try json.memberIfPresent("appliesAt", appliesAt)
        json.end()
    }
}

/// `sync.get-users`: newest last-seen first; the first one is the device's current user.
public struct DeviceUsersResult: CommandResult {
    public struct User: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var mpid: MPID
        /// RFC 3339: when the device had this user first, or a user that was aliased into it if that was earlier.
        public var firstSeen: Timestamp
        /// RFC 3339.
        public var lastSeen: Timestamp
        public var isLoggedIn: Bool
        public var isCurrent: Bool
        public var name: String?
        /// All values of each type, the oldest first.
        @SortedKeys public var identities: [String: [String]]

        public init(
            mpid: MPID, firstSeen: Timestamp, lastSeen: Timestamp, isLoggedIn: Bool, isCurrent: Bool,
            name: String? = nil, identities: [String: [String]]
        ) {
            self.mpid = mpid
            self.firstSeen = firstSeen
            self.lastSeen = lastSeen
            self.isLoggedIn = isLoggedIn
            self.isCurrent = isCurrent
            self.name = name
            self.identities = identities
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let mpid = json.value("mpid", as: MPID.self),
                let firstSeen = json.value("firstSeen", as: Timestamp.self),
                let lastSeen = json.value("lastSeen", as: Timestamp.self),
                let isLoggedIn = json.value("isLoggedIn", as: Bool.self),
                let isCurrent = json.value("isCurrent", as: Bool.self),
                let name = json.textIfPresent("name"),
                let identities = json.map("identities", of: [String].self)
            else { return nil }
            self.init(
                mpid: mpid, firstSeen: firstSeen, lastSeen: lastSeen, isLoggedIn: isLoggedIn, isCurrent: isCurrent,
                name: name, identities: identities)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("mpid", mpid)
            try json.member("firstSeen", firstSeen)
            try json.member("lastSeen", lastSeen)
            json.member("isLoggedIn", isLoggedIn)
            json.member("isCurrent", isCurrent)
            json.memberIfPresent("name", name)
            try json.map("identities", identities)
            json.end()
        }
    }

    public var deviceId: DeviceID
    public var users: [User]

    public init(deviceId: DeviceID, users: [User]) {
        self.deviceId = deviceId
        self.users = users
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let deviceId = json.text("deviceId"),
            let users = json.value("users", as: [User].self)
        else { return nil }
        self.init(deviceId: DeviceID(deviceId), users: users)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("deviceId", deviceId)
        try json.member("users", users)
        json.end()
    }
}

/// `sync.identify`, `login`, `logout`, `search` and `modify`.
public struct SyncResult: CommandResult {
    /// A profile that `sync.modify` changed: the one asked for, and those that lost a unique value to it.
    public struct ChangeResult: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var identityType: IdentityType
        public var modifiedMPID: MPID

        public init(identityType: IdentityType, modifiedMPID: MPID) {
            self.identityType = identityType
            self.modifiedMPID = modifiedMPID
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let identityType = json.value("identityType", as: IdentityType.self),
                let modifiedMPID = json.value("modifiedMPID", as: MPID.self)
            else { return nil }
            self.init(identityType: identityType, modifiedMPID: modifiedMPID)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("identityType", identityType)
            try json.member("modifiedMPID", modifiedMPID)
            json.end()
        }
    }

    public var mpid: MPID
    /// The device's current user before the command, if it had one. Not with search and modify.
    public var previousMPID: MPID?
    /// The number of the device's move, greater than those before. Of what tells of a device's user, the greatest is
    /// true. Not with search and modify.
    public var move: Int64?
    /// The profile has a login identity; a property of the profile, not of the command.
    public var isLoggedIn: Bool
    /// Nothing can find this profile again once the device moves on, so the client may forget it.
    public var isEphemeral: Bool
    /// The identities of the request that the profile matched. Of a known profile only login identities; empty for a
    /// new profile.
    @SortedKeys public var matchedIdentities: [String: String]
    /// There when the request named a previous MPID: whether it differs from the device's current user.
    public var previousMismatch: Bool?
    /// With modify only.
    public var changeResults: [ChangeResult]?
    public var context: String?
    /// Types of identities that the profile may not have since `sync.detach`, and that were left out. Absent when there
    /// are none.
    public var barred: [IdentityType]?
    /// `true` for a profile that `sync.restrict` has restricted: nothing was learnt of it. Else absent.
    public var isRestricted: Bool?
    /// What decided, for people and `identitybus explain`.
    public var rule: SyncRule

    public init(
        mpid: MPID, previousMPID: MPID? = nil, move: Int64? = nil, isLoggedIn: Bool, isEphemeral: Bool,
        matchedIdentities: [String: String] = [:], previousMismatch: Bool? = nil, changeResults: [ChangeResult]? = nil,
        context: String? = nil, barred: [IdentityType]? = nil, isRestricted: Bool? = nil, rule: SyncRule
    ) {
        self.mpid = mpid
        self.previousMPID = previousMPID
        self.move = move
        self.isLoggedIn = isLoggedIn
        self.isEphemeral = isEphemeral
        self.matchedIdentities = matchedIdentities
        self.previousMismatch = previousMismatch
        self.changeResults = changeResults
        self.context = context
        self.barred = barred
        self.isRestricted = isRestricted
        self.rule = rule
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let previousMPID = json.valueIfPresent("previousMPID", as: MPID.self),
            let move = json.valueIfPresent("move", as: Int64.self),
            let isLoggedIn = json.value("isLoggedIn", as: Bool.self),
            let isEphemeral = json.value("isEphemeral", as: Bool.self),
            let matchedIdentities = json.map("matchedIdentities", of: String.self),
            let previousMismatch = json.valueIfPresent("previousMismatch", as: Bool.self),
            let changeResults = json.valueIfPresent("changeResults", as: [ChangeResult].self),
            let context = json.textIfPresent("context"),
            let barred = json.valueIfPresent("barred", as: [IdentityType].self),
            let isRestricted = json.valueIfPresent("isRestricted", as: Bool.self),
            let rule = json.value("rule", as: SyncRule.self)
        else { return nil }
        self.init(
            mpid: mpid, previousMPID: previousMPID, move: move, isLoggedIn: isLoggedIn, isEphemeral: isEphemeral,
            matchedIdentities: matchedIdentities, previousMismatch: previousMismatch, changeResults: changeResults,
            context: context, barred: barred, isRestricted: isRestricted, rule: rule)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.memberIfPresent("previousMPID", previousMPID)
        json.memberIfPresent("move", move)
        json.member("isLoggedIn", isLoggedIn)
        json.member("isEphemeral", isEphemeral)
        try json.map("matchedIdentities", matchedIdentities)
        json.memberIfPresent("previousMismatch", previousMismatch)
        try json.memberIfPresent("changeResults", changeResults)
        json.memberIfPresent("context", context)
        try json.memberIfPresent("barred", barred)
        json.memberIfPresent("isRestricted", isRestricted)
        try json.member("rule", rule)
        json.end()
    }
}

/// The profile `mpid` may not have the identity: support took one of the two from the other.
public struct MergeBarrier: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public var mpid: MPID
    public var identity: Identity
    /// From whom `mpid` is kept apart by it.
    public var otherMPID: MPID

    public init(mpid: MPID, identity: Identity, otherMPID: MPID) {
        self.mpid = mpid
        self.identity = identity
        self.otherMPID = otherMPID
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let mpid = json.value("mpid", as: MPID.self),
            let identity = json.value("identity", as: Identity.self),
            let otherMPID = json.value("otherMPID", as: MPID.self)
        else { return nil }
        self.init(mpid: mpid, identity: identity, otherMPID: otherMPID)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.member("identity", identity)
        try json.member("otherMPID", otherMPID)
        json.end()
    }
}

/// An external id that a person had until support gave it another one.
public struct FormerExternalID: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public var externalId: ExternalID
    /// The moment (L45) of the command that changed it.
    public var until: Timestamp

    public init(externalId: ExternalID, until: Timestamp) {
        self.externalId = externalId
        self.until = until
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let externalId = json.text("externalId"),
            let until = json.value("until", as: Timestamp.self)
        else { return nil }
        self.init(externalId: ExternalID(externalId), until: until)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("externalId", externalId)
        try json.member("until", until)
        json.end()
    }

    func validate(_ path: @autoclosure () -> String) throws(Rejection) {
        try Validation.identityValue(externalId, "\(path()).externalId")
    }
}

public struct ImportedProfile: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public struct Device: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var deviceId: DeviceID
        /// Whether the profile is the device's user now, and not only one of those who were.
        public var isCurrent: Bool
        public var firstSeen: Timestamp
        public var lastSeen: Timestamp

        public init(deviceId: DeviceID, isCurrent: Bool, firstSeen: Timestamp, lastSeen: Timestamp) {
            self.deviceId = deviceId
            self.isCurrent = isCurrent
            self.firstSeen = firstSeen
            self.lastSeen = lastSeen
        }

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case deviceId, isCurrent, firstSeen, lastSeen
        }

        public init(from decoder: any Decoder) throws {
            try decoder.refuseUnknownMembers(but: CodingKeys.self)
            let container = try decoder.container(keyedBy: CodingKeys.self)
            deviceId = try container.decode(DeviceID.self, forKey: .deviceId)
            isCurrent = try container.decode(Bool.self, forKey: .isCurrent)
            firstSeen = try container.decode(Timestamp.self, forKey: .firstSeen)
            lastSeen = try container.decode(Timestamp.self, forKey: .lastSeen)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("deviceId", deviceId)
            json.member("isCurrent", isCurrent)
            try json.member("firstSeen", firstSeen)
            try json.member("lastSeen", lastSeen)
            json.end()
        }
    }

    public var mpid: MPID
    /// By type. One value may stand without a list.
    @SortedKeys public var identities: [String: IdentityValues]
    public var firstSeen: Timestamp
    public var lastSeen: Timestamp
    public var name: String?
    public var devices: [Device]?

    public init(
        mpid: MPID, identities: [String: IdentityValues], firstSeen: Timestamp, lastSeen: Timestamp,
        name: String? = nil, devices: [Device]? = nil
    ) {
        self.mpid = mpid
        self.identities = identities
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.name = name
        self.devices = devices
    }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case mpid, identities, firstSeen, lastSeen, name, devices
    }

    public init(from decoder: any Decoder) throws {
        try decoder.refuseUnknownMembers(but: CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mpid = try container.decode(MPID.self, forKey: .mpid)
        identities = try container.decode([String: IdentityValues].self, forKey: .identities)
        firstSeen = try container.decode(Timestamp.self, forKey: .firstSeen)
        lastSeen = try container.decode(Timestamp.self, forKey: .lastSeen)
        name = try container.decodeIfPresent(String.self, forKey: .name)
        devices = try container.decodeIfPresent([Device].self, forKey: .devices)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("mpid", mpid)
        try json.map("identities", identities)
        try json.member("firstSeen", firstSeen)
        try json.member("lastSeen", lastSeen)
        json.memberIfPresent("name", name)
        try json.memberIfPresent("devices", devices)
        json.end()
    }
}

/// One identity as events and results write it.
public struct Identity: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public var type: IdentityType
    public var value: IdentityValue

    public init(type: IdentityType, value: IdentityValue) {
        self.type = type
        self.value = value
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let type = json.value("type", as: IdentityType.self),
            let value = json.text("value")
        else { return nil }
        self.init(type: type, value: IdentityValue(value))
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("type", type)
        json.member("value", value)
        json.end()
    }
}

extension SubjectRequest {
    public enum Kind: String, WireEnum {
        case erasure, access, portability
    }
}

extension SubjectRequest {
    public enum Status: String, WireEnum {
        /// It can still be cancelled.
        case pending
        case inProgress
        case completed
        case cancelled
    }
}

/// What made a sync event happen.
public enum SyncCause: String, WireEnum {
    case identify
    case login
    case logout
    case modify
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

/// Which rule chose the profile.
public enum SyncRule: String, WireEnum {
    /// One profile was left after walking the identity priority.
    case matched
    /// Several were left; the device's current user is among them.
    case tieToCurrentUser = "tie-to-current-user"
    /// Several were left; the one seen last.
    case tieToMostRecent = "tie-to-most-recent"
    /// Several were left and were seen at the same time; the smallest MPID.
    case tieToSmallest = "tie-to-smallest"
    /// Several profiles have the e-mail; the oldest one (strategy `userIdThenEmail`).
    case tieToOldest = "tie-to-oldest"
    /// The anonymous profile was given its first login identity (conversion).
    case converted
    /// No profile matched.
    case created
    /// A login identity that no profile had: a new profile, although an anonymous one matched (link, isolation).
    case createdForLogin = "created-for-login"
    /// The profile that a lower-ranked login identity named has another value of a higher-ranked one: it belongs to
    /// somebody else, and this login gets a new profile.
    case createdForOtherLogin = "created-for-other-login"
    /// An anonymous profile matched that may be somebody else's: in an app that enforces verification it is left alone,
    /// and the login makes a profile of its own.
    case createdBesideUnvouched = "created-beside-unvouched"
    /// An anonymous profile matched that is restricted: it stays anonymous, and the login makes a profile of its own.
    case createdBesideRestricted = "created-beside-restricted"
    /// A logout always makes a new profile (conversion, link), or there was no anonymous one to go back to.
    case createdForLogout = "created-for-logout"
    /// A logout went back to the device's anonymous user.
    case returnedToAnonymous = "returned-to-anonymous"
    /// A service named no identity, and the device keeps its user.
    case kept
    /// The command named the profile.
    case named
    /// Support took its identities from another profile (`sync.detach`).
    case detached
    /// The link service linked an external id that no profile had as its customer id.
    case createdForLink = "created-for-link"
    /// `sync.import-profiles` brought it.
    case imported
}
