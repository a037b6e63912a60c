// SPDX-License-Identifier: Apache-2.0

/// What identify, login, logout and search say: the identities of the user to move *to* (S13, F43).
public struct SyncRequest: Codable, Sendable, Hashable {
    public enum Environment: String, WireEnum { case production, development }

    public var deviceId: String
    /// By wire name of the type; `null` values are ignored. Keys that are no ``IdentityType`` are refused.
    @SortedKeys public var knownIdentities: [String: String?]
    /// Never widens the search. When it is not the device's current user, the result says ``SyncResult/previousMismatch``.
    /// 0 counts as absent.
    public var previousMPID: MPID?
    /// Not used in any decision.
    public var environment: Environment?
    public var requestId: String?
    /// The client's clock, milliseconds since 1970. Not used in any decision, so a wrong clock does no harm.
    public var requestTimestampMs: Int64?
    /// Comes back unchanged in the result.
    public var context: String?

    // Optional members of `sync.login`, meant for the verification service. Ignored by the others, but for `vouchedFor`.

    /// The user's name to store with the profile, 1 to 255 characters.
    public var name: String?
    /// The types somebody vouched for. Identities of other types are treated as if they had not been sent: they find
    /// nobody and change nothing. Absent: all types count.
    public var vouchedFor: [IdentityType]?
    /// Drops the device's anonymous user when the login is done: it loses its identities, and a later logout gets a
    /// new anonymous profile. Under every strategy.
    public var clearAnonymousUser: Bool?

    public init(
        deviceId: String, knownIdentities: [String: String?], previousMPID: MPID? = nil,
        environment: Environment? = nil, requestId: String? = nil, requestTimestampMs: Int64? = nil,
        context: String? = nil, name: String? = nil, vouchedFor: [IdentityType]? = nil,
        clearAnonymousUser: Bool? = nil
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
        deviceId = try container.decode(String.self, forKey: .deviceId)
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

    func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
        for (type, value) in knownIdentities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "knownIdentities")
            if let value { try Validation.identityValue(value, "knownIdentities.\(type)") }
        }
        if let requestId { try Validation.id(requestId, "requestId") }
        if let context {
            guard context.utf8.count <= 4096 else {
                throw Rejection(.invalidRequest, "data.context has \(context.utf8.count) bytes; 4096 are allowed.")
            }
            try Validation.noControlCharacters(context, "context")
        }
        if let name {
            guard (1...255).contains(name.unicodeScalars.count) else {
                throw Rejection(
                    .invalidRequest, "data.name has \(name.unicodeScalars.count) characters; 1 to 255 are allowed.")
            }
            try Validation.noControlCharacters(name, "name")
        }
    }
}

/// A command whose data is a ``SyncRequest``. Result: ``SyncResult``.
public protocol SyncRequestMessage: CommandMessage {
    var request: SyncRequest { get }
    init(_ request: SyncRequest)
}

extension SyncRequestMessage {
    public static var scope: Scope { .identitySync }
    public init(from decoder: any Decoder) throws { self.init(try SyncRequest(from: decoder)) }
    public func encode(to encoder: any Encoder) throws { try request.encode(to: encoder) }
    public var partitionSubject: String { request.deviceId }
    public func validate() throws(Rejection) { try request.validate() }
}

/// Who is on this device? Called at each start of an app.
public struct IdentifyUser: SyncRequestMessage {
    public static let type = "identity.sync.identify.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Somebody logged in.
public struct LogInUser: SyncRequestMessage {
    public static let type = "identity.sync.login.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Somebody logged out; the identities are those of the anonymous user to come. Login identities are ignored. A service
/// of the deployment may send no identities at all.
public struct LogOutUser: SyncRequestMessage {
    public static let type = "identity.sync.logout.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Finds a profile; never writes, never moves the device. `NOT_FOUND_ERROR` when there is none.
public struct SearchUser: SyncRequestMessage {
    public static let type = "identity.sync.search.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

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
    public var deviceId: String?

    public init(mpid: MPID, changes: [Change], deviceId: String? = nil) {
        self.mpid = mpid
        self.changes = changes
        self.deviceId = deviceId
    }

    public var partitionSubject: String { deviceId ?? mpid.description }

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
    public var aliasId: String
    public var destinationMPID: MPID

    public init(aliasId: String, destinationMPID: MPID) {
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
    public var deviceId: String

    public init(deviceId: String) { self.deviceId = deviceId }

    public var partitionSubject: String { deviceId }

    public func validate() throws(Rejection) { try Validation.id(deviceId, "deviceId") }
}
