// SPDX-License-Identifier: Apache-2.0

/// What identify, login, logout and search say: the identities of the user to move *to* (S13, F43).
public struct SyncRequest: Codable, Sendable, Hashable {
    public enum Environment: String, WireEnum { case production, development }

    public var deviceId: DeviceID
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

    // Optional members of `sync.login`, meant for the verification service. Ignored by the others, but for `vouchedFor`, and
    // from keys that may not vouch (S76).

    /// The user's name to store with the profile, 1 to 255 characters.
    public var name: String?
    /// The types somebody vouched for. Identities of other types are treated as if they had not been sent: they find
    /// nobody and change nothing. Absent: all types count.
    public var vouchedFor: [IdentityType]?
    /// Drops the device's anonymous user when the login is done: it loses its identities, and a later logout gets a
    /// new anonymous profile. Under every strategy.
    public var clearAnonymousUser: Bool?

    public init(
        deviceId: DeviceID, knownIdentities: [String: String?], previousMPID: MPID? = nil,
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

    func validate() throws(Rejection) {
        try Validation.id(deviceId, "deviceId")
        for (type, value) in knownIdentities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "knownIdentities")
            if let value { try Validation.identityValue(value, "knownIdentities.\(type)") }
        }
        if let requestId { try Validation.text(requestId, "requestId") }
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
    public var partitionSubject: String { request.deviceId.text }
    public func validate() throws(Rejection) { try request.validate() }
}

/// Who is on this device? Called at each start of an app. A service of the deployment may send no identities at all.
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

/// Somebody logged out; the identities are those of the anonymous user to come. Login identities are ignored. There
/// may be no identities at all.
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

/// `sync.identify`, `login`, `logout`, `search` and `modify`.
public struct SyncResult: CommandResult {
    /// A profile that `sync.modify` changed: the one asked for, and those that lost a unique value to it.
    public struct ChangeResult: Codable, Sendable, Hashable {
        public var identityType: IdentityType
        public var modifiedMPID: MPID

        public init(identityType: IdentityType, modifiedMPID: MPID) {
            self.identityType = identityType
            self.modifiedMPID = modifiedMPID
        }
    }

    public var mpid: MPID
    /// The device's current user before the command, if it had one. Not with search and modify.
    public var previousMPID: MPID?
    /// The number of the device's move, greater than those before. Of what tells of a device's user, the greatest is true.
    /// Not with search and modify.
    public var move: Int64?
    /// The profile has a login identity; a property of the profile, not of the command.
    public var isLoggedIn: Bool
    /// Nothing can find this profile again once the device moves on, so the client may forget it.
    public var isEphemeral: Bool
    /// The identities of the request that the profile matched. Of a known profile only login identities; empty for a
    /// new profile.
    @SortedKeys public var matchedIdentities: [IdentityType.RawValue: String]
    /// There when the request named a previous MPID: whether it differs from the device's current user.
    public var previousMismatch: Bool?
    /// With modify only.
    public var changeResults: [ChangeResult]?
    public var context: String?
    /// Types of identities that the profile may not have since `sync.detach`, and that were left out. Absent when there are
    /// none.
    public var barred: [IdentityType]?
    /// `true` for a profile that `sync.restrict` has restricted: nothing was learnt of it. Else absent.
    public var isRestricted: Bool?
    /// What decided, for people and `identitybus explain`.
    public var rule: SyncRule

    public init(
        mpid: MPID, previousMPID: MPID? = nil, move: Int64? = nil, isLoggedIn: Bool, isEphemeral: Bool,
        matchedIdentities: [String: String] = [:], previousMismatch: Bool? = nil,
        changeResults: [ChangeResult]? = nil, context: String? = nil, barred: [IdentityType]? = nil,
        isRestricted: Bool? = nil, rule: SyncRule
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
