// SPDX-License-Identifier: Apache-2.0

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
    /// What decided, for people and `identitybus explain`.
    public var rule: SyncRule

    public init(
        mpid: MPID, previousMPID: MPID? = nil, isLoggedIn: Bool, isEphemeral: Bool,
        matchedIdentities: [String: String] = [:], previousMismatch: Bool? = nil,
        changeResults: [ChangeResult]? = nil, context: String? = nil, rule: SyncRule
    ) {
        self.mpid = mpid
        self.previousMPID = previousMPID
        self.isLoggedIn = isLoggedIn
        self.isEphemeral = isEphemeral
        self.matchedIdentities = matchedIdentities
        self.previousMismatch = previousMismatch
        self.changeResults = changeResults
        self.context = context
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
    /// A logout always makes a new profile (conversion, link), or there was no anonymous one to go back to.
    case createdForLogout = "created-for-logout"
    /// A logout went back to the device's anonymous user.
    case returnedToAnonymous = "returned-to-anonymous"
    /// The command named the profile.
    case named
    /// The link service linked an external id that no profile had as its customer id.
    case createdForLink = "created-for-link"
}

/// `sync.alias`: accepted, to be applied when the delay is over.
public struct AliasResult: CommandResult {
    public var aliasId: String
    /// Whether it will be applied. False when one of the silent rules drops it; an `alias-dropped` event says which.
    public var isScheduled: Bool
    /// RFC 3339; absent when it is dropped.
    public var appliesAt: String?

    public init(aliasId: String, isScheduled: Bool, appliesAt: String?) {
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
        public var firstSeen: String
        /// RFC 3339.
        public var lastSeen: String
        public var isLoggedIn: Bool
        public var isCurrent: Bool
        public var name: String?
        /// All values of each type, the oldest first.
        @SortedKeys public var identities: [IdentityType.RawValue: [String]]

        public init(
            mpid: MPID, firstSeen: String, lastSeen: String, isLoggedIn: Bool, isCurrent: Bool, name: String?,
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

    public var deviceId: String
    public var users: [User]

    public init(deviceId: String, users: [User]) {
        self.deviceId = deviceId
        self.users = users
    }
}
