// SPDX-License-Identifier: Apache-2.0

/// Takes identities from a profile that is two people by mistake, and gives them to another profile: a new one, or `toMPID`.
/// A barrier keeps the two apart until ``AllowMerge``. Result: ``DetachResult``.
public struct DetachIdentities: RepairCommand {
    public static let type = "identity.sync.detach.v1"
    /// More are refused.
    public static let mostIdentities = 100

    public var mpid: MPID
    /// What goes: 1 to 100, each of which the profile has, and not all of them.
    public var identities: [GetProfile.Named]
    /// An existing profile that gets them; absent: a new one.
    public var toMPID: MPID?
    public var author: String
    public var reason: String

    public init(
        mpid: MPID, identities: [GetProfile.Named], toMPID: MPID? = nil, author: String, reason: String
    ) {
        self.mpid = mpid
        self.identities = identities
        self.toMPID = toMPID
        self.author = author
        self.reason = reason
    }

    /// Those of a type that there is, each once, as they were written.
    public var named: [Identity] {
        var named: [Identity] = []
        for one in identities {
            guard let identity = one.identity, !named.contains(identity) else { continue }
            named.append(identity)
        }
        return named
    }

    public var partitionSubject: String { mpid.description }
    public var subject: (kind: String, name: String) { ("mpid", partitionSubject) }

    public func validate() throws(Rejection) {
        guard (1...Self.mostIdentities).contains(identities.count) else {
            throw Rejection(
                .invalidRequest,
                "data.identities has \(identities.count) entries; 1 to \(Self.mostIdentities) are allowed.")
        }
        for (index, identity) in identities.enumerated() {
            try Validation.identityType(identity.type, "identities[\(index)].type")
            try Validation.identityValue(identity.value, "identities[\(index)].value")
        }
        guard toMPID != mpid else {
            throw Rejection(.invalidRequest, "data.toMPID is mpid itself; name another profile, or leave it out.")
        }
        try validateReason()
    }
}

/// Takes away what keeps a profile apart: from another profile (`otherMPID`), or by one identity. Result: ``AllowResult``.
public struct AllowMerge: RepairCommand {
    public static let type = "identity.sync.allow.v1"
    public var mpid: MPID
    public var otherMPID: MPID?
    public var identity: GetProfile.Named?
    public var author: String
    public var reason: String

    public init(
        mpid: MPID, otherMPID: MPID? = nil, identity: GetProfile.Named? = nil, author: String, reason: String
    ) {
        self.mpid = mpid
        self.otherMPID = otherMPID
        self.identity = identity
        self.author = author
        self.reason = reason
    }

    public var partitionSubject: String { mpid.description }
    public var subject: (kind: String, name: String) { ("mpid", partitionSubject) }

    public func validate() throws(Rejection) {
        guard (otherMPID == nil) != (identity == nil) else {
            throw Rejection(.invalidRequest, "data needs otherMPID or identity, and not both.")
        }
        if let identity {
            try Validation.identityType(identity.type, "identity.type")
            try Validation.identityValue(identity.value, "identity.value")
        }
        try validateReason()
    }
}

/// The profile `mpid` may not have the identity: support took one of the two from the other.
public struct MergeBarrier: Codable, Sendable, Hashable {
    public var mpid: MPID
    public var identity: Identity
    /// From whom `mpid` is kept apart by it.
    public var otherMPID: MPID

    public init(mpid: MPID, identity: Identity, otherMPID: MPID) {
        self.mpid = mpid
        self.identity = identity
        self.otherMPID = otherMPID
    }
}

/// What was detached, and what the devices of the profile have to do with it.
public struct DetachResult: CommandResult {
    /// What a login finds that names the device's identities, and of each type the oldest login identity that the profile
    /// had.
    public struct NextLogin: Codable, Sendable, Hashable {
        /// `nil`: it would make a profile.
        public var mpid: MPID?
        /// What the profile may not have and is left out.
        public var barred: [IdentityType]

        public init(mpid: MPID?, barred: [IdentityType]) {
            self.mpid = mpid
            self.barred = barred
        }
    }

    public struct Device: Codable, Sendable, Hashable {
        public var deviceId: DeviceID
        /// Its current user from now on.
        public var mpid: MPID
        /// Its user is another one, or known no longer: a session that the verification service has for it ends.
        public var endsSession: Bool
        public var nextLogin: NextLogin

        public init(deviceId: DeviceID, mpid: MPID, endsSession: Bool, nextLogin: NextLogin) {
            self.deviceId = deviceId
            self.mpid = mpid
            self.endsSession = endsSession
            self.nextLogin = nextLogin
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
}

/// `sync.allow`: what keeps the profile apart no longer; empty when nothing did.
public struct AllowResult: CommandResult {
    public var mpid: MPID
    /// The latest, as many as ``ProfileResult/barriers`` has.
    public var allowed: [MergeBarrier]
    public var allowedCount: Int

    public init(mpid: MPID, allowed: [MergeBarrier], allowedCount: Int) {
        self.mpid = mpid
        self.allowed = allowed
        self.allowedCount = allowedCount
    }
}

// MARK: Events

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

    public var subject: String { mpid.description }
}

/// Support took away what kept a profile apart.
public struct MergeAllowed: EventMessage {
    public static let type = "identity.sync.merge-allowed.v1"
    public var mpid: MPID
    /// The latest, as many as ``ProfileResult/barriers`` has.
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

    public var subject: String { mpid.description }
}
