// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// A user profile: what is known about one person, or about one anonymous visitor.
public struct Profile: Sendable, Hashable {
    /// MPIDs are given per app.
    public typealias Key = Scoped<MPID>

    public var app: AppID
    public var mpid: MPID
    /// In the order in which they came. A unique type has one value at most.
    public var identities: [Identity] = []
    /// Milliseconds since 1970, as all times here.
    public var firstSeen: Int64
    public var lastSeen: Int64
    /// For each identity, in their order, the moment of the command that gave it (``Moment``), which may be decided later
    /// (S100).
    public var namedAt: [Int64] = []
    /// Lost its last identity: never returned again, and its identities stay as they are (none).
    public var isOrphaned = false
    /// Nothing is left but the MPID, which is never used again. Always an orphan too.
    public var isErased = false
    public var name: String?
    /// Whom a link says this is.
    public var mark: LinkMark?
    /// What it was called before its user was linked by that name, which support took from it since.
    public var former: FormerName?
    /// The first-seen of a source aliased into this profile, when it was earlier.
    public var aliasedSince: Int64?
    /// The windows in which this profile was the source of an alias: those that an alias still reaches, or the last.
    public var aliasWindows: [ClosedRange<Int64>] = []
    /// How many aliases had this profile as destination.
    public var aliasSources: Int = 0
    /// The sources of aliases whose destination is this profile, each as often as it was aliased: what comes of one alias
    /// says nothing about another.
    public var aliasedFrom: [MPID] = []
    /// The destinations of aliases whose source this profile is, with whom it goes (S96): not those from before it became
    /// known. Each as often as this one was aliased into it.
    public var aliasedInto: [MPID] = []
    /// How often it became known: ``aliasedInto`` counts the aliases since the last time.
    public var growth: Int64 = 0
    /// What keeps it and others apart.
    public var barriers: [Barrier] = []
    /// What is known of it is kept and not used (S136).
    public var isRestricted = false
    /// When it was told last that this began or ended for a user of the link service; grows (S141).
    public var restrictionToldAt: Int64?
    /// When an import made it or added to it, and by which element last (S152). Retention counts from it where it is later than
    /// what was seen.
    var imported: Imported?
    public var lastDecision = LastDecision()

    public init(app: AppID, mpid: MPID, seen: Int64) {
        self.app = app
        self.mpid = mpid
        firstSeen = seen
        lastSeen = seen
    }

    public var key: Key { Key(app: app, id: mpid) }

    /// Since when this profile counts as seen.
    var countsSince: Int64 { min(firstSeen, aliasedSince ?? firstSeen) }

    func values(of type: IdentityType) -> [Identity] { identities.filter { $0.type == type } }

    /// Since when it has the identity, as its moment says; `nil` when it has not.
    func namedAt(_ identity: Identity, _ settings: SyncSettings) -> Int64? {
        let value = settings.folded(identity)
        return identities.firstIndex { $0.type == identity.type && settings.folded($0) == value }.map { namedAt[$0] }
    }

    mutating func add(_ identity: Identity, at moment: Int64) {
        identities.append(identity)
        namedAt.append(moment)
    }

    mutating func remove(_ gone: [Identity]) {
        namedAt = zip(identities, namedAt).filter { !gone.contains($0.0) }.map(\.1)
        identities.removeAll { gone.contains($0) }
    }

    func holds(_ identity: Identity, _ settings: SyncSettings) -> Bool {
        held(identity, settings) != nil
    }

    /// The stored spelling of an identity that this profile holds.
    func held(_ identity: Identity, _ settings: SyncSettings) -> Identity? {
        let value = settings.folded(identity)
        return identities.first { $0.type == identity.type && settings.folded($0) == value }
    }

    /// Known: has a login identity. All others are anonymous (S6).
    func isKnown(_ settings: SyncSettings) -> Bool {
        identities.contains { settings.loginIdentities.contains($0.type) }
    }

    /// Whether nothing can find this profile again (``SyncResult/isEphemeral``) (S17).
    func isEphemeral(_ settings: SyncSettings) -> Bool {
        settings.strategy.logout != .returnToDevices
            && !identities.contains { settings.priority.contains($0.type) }
    }
}

/// A user of the link service, and its external id: the mark's profile has it as customer id, unless another user's has it
/// by what was read last (S122).
public struct LinkMark: Sendable, Hashable {
    public var userID: UserID
    public var externalID: ExternalID
    /// Since when the user has the external id. An erasure that was asked for before does not mean the user (S115).
    public var linkedAt: Int64
    /// The MPID of the profile that the link makes for the user where there is none.
    public var ownMPID: MPID

    public init(userID: UserID, externalID: ExternalID, linkedAt: Int64, ownMPID: MPID) {
        self.userID = userID
        self.externalID = externalID
        self.linkedAt = linkedAt
        self.ownMPID = ownMPID
    }
}

/// A customer id that a profile had before a link said whose profile it is: whoever was erased meanwhile by that external
/// id was the one who had it (S123).
public struct FormerName: Sendable, Hashable {
    public var externalID: ExternalID
    public var since: Int64
    /// When the user was linked by that name: from then on it says nothing of anybody else.
    public var until: Int64

    public init(externalID: ExternalID, since: Int64, until: Int64) {
        self.externalID = externalID
        self.since = since
        self.until = until
    }
}

extension Profile {
    /// Loses customer ids by what became of its user, who had none of them before that moment (S123).
    mutating func leave(_ customerIDs: [Identity], before linkedAt: Int64, _ settings: SyncSettings) {
        if let known = former { former?.until = min(known.until, linkedAt) }
        for customerID in customerIDs {
            guard let since = namedAt(customerID, settings), since < linkedAt else { continue }
            former = FormerName(externalID: ExternalID(customerID.value.text), since: since, until: linkedAt)
        }
    }

    /// Whether it had the former name already at that moment, and its user was linked only after `end` (S123).
    func wasCalled(_ name: ExternalID, at moment: Int64, upTo end: Int64) -> Bool {
        guard let former, former.externalID == name else { return false }
        return former.since <= moment && end < former.until
    }

    /// Whether it had the customer id of its mark before, and has it no longer.
    func hasLostItsName(since before: Profile, _ settings: SyncSettings) -> Bool {
        guard let mark, before.mark?.externalID == mark.externalID else { return false }
        return before.hasItsName(settings) && !hasItsName(settings)
    }

    /// Whether its user, who had lost the customer id of the mark, has one (S122).
    func hasItsNameAgain(since before: Profile, _ settings: SyncSettings) -> Bool {
        guard let user = mark?.userID, before.mark?.userID == user else { return false }
        return !before.hasItsName(settings) && hasItsName(settings)
    }

    /// The customer id of a mark.
    func name(of mark: LinkMark?) -> Identity {
        Identity(.customerID, IdentityValue(mark?.externalID.text ?? ""))
    }

    /// Of the link service.
    var linkedUser: LinkedUser? { mark.map { LinkedUser(app: app, id: $0.userID) } }

    /// Whether it has the customer id of its mark.
    func hasItsName(_ settings: SyncSettings) -> Bool {
        mark.map { holds(Identity(.customerID, IdentityValue($0.externalID.text)), settings) } == true
    }
}

extension SyncSettings {
    /// What an identity is compared by (S12).
    func folded(_ identity: Identity) -> IdentityValue {
        guard foldedIdentities.contains(identity.type) else { return identity.value }
        return IdentityValue(identity.value.text.asciiLowercased)
    }

    /// The login identities among these.
    func logins(_ identities: [Identity]) -> [Identity] {
        identities.filter { loginIdentities.contains($0.type) }
    }

    /// Whether a profile has one value of this type at most.
    func isSingleValued(_ type: IdentityType) -> Bool {
        uniqueIdentities.contains(type) || (strategy.lookup == .userIDThenEmail && type == .email)
    }

    /// Where a type stands in the priority; those that find nobody come last.
    func rank(_ type: IdentityType) -> Int { priority.firstIndex(of: type) ?? priority.count }
}

extension [MPID] {
    /// One more alias with this profile. As many as ever wait at once, and one more, say that it leads there whatever comes
    /// of those that wait.
    mutating func count(_ mpid: MPID, _ limits: SyncSettings.Limits) {
        if self.count(where: { $0 == mpid }) <= limits.aliasesPerProfile { append(mpid) }
    }

    /// One alias with this profile came to nothing.
    mutating func discount(_ mpid: MPID) {
        if let place = lastIndex(of: mpid) { remove(at: place) }
    }
}
