// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// One identity value and the profiles that hold it. Its row is also the lock: whoever relies on who holds a value, or
/// on nobody holding it, writes the row (docs/decisions/0009-identity-rows.md).
public struct IdentityEntry: Sendable, Hashable {
    public typealias Key = Scoped<FoldedIdentity>

    public var key: Key
    /// In the order in which they took the value. One at most for a unique type.
    public var holders: [MPID] = []
    /// How often the value is used, for login identities.
    public var bucket: TokenBucket?
    /// Whether a ``ValueTooCommon`` event was published.
    public var isTold: Bool
    public var lastDecision = LastDecision()

    public init(key: Key, holders: [MPID] = [], bucket: TokenBucket? = nil, isTold: Bool = false) {
        self.key = key
        self.holders = holders
        self.bucket = bucket
        self.isTold = isTold
    }
}

/// An identity as it is compared, see `SyncSettings.folded`.
public struct FoldedIdentity: Sendable, Hashable, Comparable {
    public var type: IdentityType
    public var value: IdentityValue

    public static func < (left: FoldedIdentity, right: FoldedIdentity) -> Bool {
        (left.type, left.value) < (right.type, right.value)
    }

    var digest: TextDigest { TextDigest(of: value.text) }
    var key: IdentityDigest { IdentityDigest(type: type, digest: digest) }
}

extension Scoped<FoldedIdentity> {
    init(app: AppID, _ identity: Identity, _ settings: SyncSettings) {
        self.init(app: app, id: FoldedIdentity(type: identity.type, value: settings.folded(identity)))
    }

    init(app: AppID, type: IdentityType, value: IdentityValue) {
        self.init(app: app, id: FoldedIdentity(type: type, value: value))
    }
}

/// A device of an app: its current user and the users seen on it.
public struct DeviceRecord: Sendable, Hashable {
    public typealias Key = Scoped<DeviceID>

    public struct SeenUser: Sendable, Hashable {
        public var mpid: MPID
        public var firstSeen: Int64
        public var lastSeen: Int64
    }

    public var key: Key
    public var current: MPID?
    /// The last current user that was anonymous, as long as it is.
    public var anonymous: MPID?
    /// Newest last-seen first; the current user stands first (S19).
    public var users: [SeenUser] = []
    /// The identities of devices that the last identify, login or logout named, if any of them did (S87).
    public var identities: [Identity] = []
    /// The number of its last move (S86).
    public var lastMove: Int64 = 0
    public var bucket: TokenBucket?
    public var lastDecision = LastDecision()

    public init(key: Key) { self.key = key }

    /// Nobody was seen on it, as far as is known.
    var isUnused: Bool { current == nil && anonymous == nil && users.isEmpty }
    /// Whether there is something to know of it but its number of moves.
    var isKept: Bool { !isUnused || bucket != nil }

    /// The device has this user now (S13).
    /// - Parameter isUnseen: of whom it is not noted when they were here (S137).
    mutating func move(to mpid: MPID, now: Int64, remembering limit: Int, isUnseen: (MPID) -> Bool = { _ in false }) {
        if let current, !isUnseen(current), let index = users.firstIndex(where: { $0.mpid == current }) {
            users[index].lastSeen = now
        }
        var user = SeenUser(mpid: mpid, firstSeen: now, lastSeen: now)
        if let index = users.firstIndex(where: { $0.mpid == mpid }) {
            let seen = users.remove(at: index)
            user.firstSeen = seen.firstSeen
            if isUnseen(mpid) { user.lastSeen = seen.lastSeen }
        }
        users.insert(user, at: 0)
        users = Array(users.prefix(limit))
        current = mpid
        countMove(now: now)
    }

    /// Who its user is, or whether that one is known, is different now. A clock that goes back does not let the numbers go
    /// back (S86).
    mutating func countMove(now: Int64) { lastMove = max(lastMove + 1, now) }
}

/// The greatest number that a move of any forgotten device of an app had (S86).
struct MoveFloor: Sendable, Hashable {
    var key: AppID
    var move: Int64
}

/// An accepted alias that waits for its time.
public struct AliasRecord: Sendable, Hashable {
    public typealias Key = Scoped<AliasID>

    public var key: Key
    public var source: MPID
    public var destination: MPID
    public var window: ClosedRange<Int64>
    public var reach: AliasUsers.Reach
    public var stamp: String?
    public var dueAt: Int64
    /// The sender might name people (S47).
    public var isVouched: Bool
    /// The source's ``Profile/growth`` when it was aliased.
    public var growth: Int64
}

/// A token bucket in whole thousandths, so that both engines and every replica count alike.
public struct TokenBucket: Sendable, Hashable {
    public var thousandths: Int64
    /// When it held that many, in milliseconds since 1970.
    public var at: Int64

    /// Takes one token.
    /// - Parameter bucket: `nil` is a full one.
    /// - Returns: the bucket afterwards, or `nil` when there is none to take.
    static func take(from bucket: TokenBucket?, perSecond: Int, burst: Int, now: Int64) -> TokenBucket? {
        let most = Int64(max(burst, 1)) * 1000
        guard let bucket else { return TokenBucket(thousandths: most - 1000, at: now) }
        // Another replica's clock may be ahead of this one's: time never runs backwards.
        let elapsed = min(max(now - bucket.at, 0), most / Int64(max(perSecond, 1)) + 1)
        let filled = min(bucket.thousandths + elapsed * Int64(perSecond), most)
        return filled < 1000 ? nil : TokenBucket(thousandths: filled - 1000, at: max(now, bucket.at))
    }
}

/// What stands beside an erased profile's tombstone.
public struct ErasedProfile: Sendable, Hashable {
    public var key: Profile.Key
    public var certificate: ErasureCertificate
}
