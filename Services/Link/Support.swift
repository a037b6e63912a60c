// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime

/// Reading a person, and putting right what is wrong with one. docs/link.md "Support".
extension LinkDecider {
    /// As many installs are told at once.
    static let installsInPage = 100
    /// A person on more installs than this is not repaired in one decision (L69).
    static let mostRepaired = 1000

    /// L65.
    func user(_ query: GetLinkedUser) throws(Rejection) -> Decision {
        guard let person = meant(by: query), person.app == app.id else { throw Rejection(.userNotFound) }
        return Decision(.succeeded(result(person, after: try pages(of: person).end(query.after))))
    }

    /// L65. Of the user, by whichever of its ids it is asked for: whose install or external id it is may change between two
    /// pages.
    private func pages(of person: Person) -> Paging { Paging(context, [GetLinkedUser.type, person.userID.text]) }

    private func meant(by query: GetLinkedUser) -> Person? {
        if let userID = query.userId { return state.person(userID: userID) }
        if let externalID = query.externalId { return state.person(app: app.id, externalID: externalID) }
        return query.installId.flatMap(known).flatMap(person)
    }

    /// L70, L71.
    func makeActive(_ command: MakeInstallActive) throws(Rejection) -> Decision {
        var chosen = try foundHere(command.installId)
        try checkStatus(of: chosen)  // L7
        guard let person = person(on: chosen) else { throw Rejection(.noUser) }
        if let since = chosen.personSince, context.told.milliseconds < since {  // L77
            throw Rejection(.noUser, "Whoever is on this install came after this was sent.")
        }
        let others = state.installs(of: person.userID).filter { $0.id != chosen.id && $0.hasItsPerson }
        let losers = others.map { other in
            var loser = other.with(person.userID, .deactivated)
            loser.turn = other.turn  // L45: nobody else came.
            return loser
        }
        guard !chosen.isActive || !losers.isEmpty else { return Decision(.succeeded(result(chosen))) }
        var events = losers.map { told(of: $0, person, .superseded) }
        // A creation may be under way on it: should that fail, they are as before (L50).
        let claims = zip(others, losers).map(Install.Superseded.init)
        chosen.superseded = (chosen.isActive ? chosen.superseded : []) + claims
        if !chosen.isActive {
            chosen.activity = .active
            chosen.version += 1
            events.insert(told(of: chosen, person, .chosen, by: command.author, because: command.reason), at: 0)
        }
        return Decision(
            .succeeded(result(chosen)),
            changes: [.person(person), .install(chosen)] + losers.map { .install($0) }, events: events)
    }

    /// L72.
    func unlink(_ command: UnlinkUser) throws(Rejection) -> Decision {
        let person = try repaired(command.userId, nil)
        guard let externalID = person.externalID else { return Decision(.succeeded(result(person))) }
        var unlinked = person
        let moment = unlinked.setExternalID(nil, at: context.moment)
        unlinked.barred.append(TextDigest(of: externalID.text))
        let event = ExternalIDRemoved(
            userId: person.userID, externalId: externalID, unlinkedAt: moment, author: command.author,
            reason: command.reason)
        return changed(unlinked, .unlinked, command, [event]) { install in
            // What was sent before does not link whoever is there now (L46).
            install.turn = context.moment
        }
    }

    /// L67, L68, L73, L75.
    func changeExternalID(_ command: ChangeExternalID) throws(Rejection) -> Decision {
        let new = command.newExternalId
        try app.linking.check(externalID: new)  // L3
        guard app.linking.isEnabled else { throw Rejection(.userLinkingNotConfigured) }  // L4
        try requireVouching()
        let person = try repaired(command.userId, command.externalId)
        if command.userId == nil, let since = person.linkedAt, context.told.milliseconds < since {  // L76
            throw Rejection(
                .externalIDChanged, "Whoever has this external id got it after this was sent; name the user by its id.")
        }
        guard person.externalID != new else { return Decision(.succeeded(result(person))) }
        let hold = hold(on: new)
        try checkFree(new, command.endHold == true ? hold.flatMap(lasting) : hold, for: person)
        var renamed = person
        let moment = renamed.setExternalID(new, at: context.moment)
        renamed.barred.removeAll { $0 == TextDigest(of: new.text) }
        renamed.giveUp(person.externalID, for: new, at: moment)
        let event = ExternalIDChanged(
            userId: person.userID, externalId: new, previousExternalId: person.externalID,
            linkedAt: moment, author: command.author, reason: command.reason)
        var decision = changed(renamed, person.externalID == nil ? .relinked : nil, command, [event]) { $0.turn = nil }
        if let old = person.externalID, app.linking.hold > 0 {
            let now = context.now.milliseconds
            decision.changes.append(
                .hold(
                    Hold(
                        app: app.id, externalID: old, userID: person.userID, since: now, until: now + app.linking.hold))
            )
        }
        if var hold {
            hold.ended = moment.milliseconds
            decision.changes.append(hold.userID == person.userID ? .released(hold.key) : .hold(hold))
        }
        return decision
    }

    /// L75, L155. The sync service makes the external id the customer id by which a verified login finds its profile (S118).
    func requireVouching() throws(Rejection) {
        guard app.sync.fromLinks, app.verification.mode == .enforce, !context.principal.isVoucher else { return }
        throw Rejection(
            .verificationRequired,
            "A key that gives external ids in this app needs the scope identity.vouch: they say who a verified login is."
        )
    }

    /// L66, L66a. Whom it meant has another one by now; whoever sends it has not heard of that, or had not yet.
    func checkHold(of externalID: ExternalID, asked: Int64) throws(Rejection) {
        guard let hold = state.hold(app.id, externalID), !hold.isOver(context.now) else { return }
        guard let ended = hold.ended, ended <= asked else { throw Rejection(.externalIDChanged) }
    }

    /// What keeps all but who had the external id from it.
    private func hold(on externalID: ExternalID) -> Hold? {
        state.hold(app.id, externalID).flatMap { $0.keeps(context.now) ? $0 : nil }
    }

    /// L68: one that support ends is still there in its first minute.
    private func lasting(_ hold: Hold) -> Hold? {
        let end = hold.since + Hold.least
        return end <= context.now.milliseconds ? nil : Hold(hold, until: end)
    }

    /// L68. Whoever helps people is told until when another try is in vain.
    private func checkFree(_ externalID: ExternalID, _ hold: Hold?, for person: Person) throws(Rejection) {
        guard state.person(app: app.id, externalID: externalID) == nil else {
            throw Rejection(.externalIDTaken, "Another user has this external id.")
        }
        guard let hold, hold.userID != person.userID else { return }
        let end = Timestamp(milliseconds: hold.until).rfc3339
        throw Rejection(
            .externalIDTaken,
            "This external id is held until \(end) for the user who had it before, or until that user is erased.")
    }

    /// L74.
    func checkBarrier(between person: Person, and externalID: ExternalID) throws(Rejection) {
        guard !person.barred.isEmpty, person.barred.contains(TextDigest(of: externalID.text)) else { return }
        throw Rejection(.linkBarred)
    }

    /// Whom a repair is about.
    private func repaired(_ userID: UserID?, _ externalID: ExternalID?) throws(Rejection) -> Person {
        let person =
            userID.flatMap { state.person(userID: $0) }
            ?? externalID.flatMap { state.person(app: app.id, externalID: $0) }
        guard let person, person.app == app.id else { throw Rejection(.userNotFound) }
        if person.isErased { throw Rejection(.userErased) }
        guard state.installs(of: person.userID).count <= Self.mostRepaired else {
            throw Rejection(
                .limitExceeded, "The user is on more than \(Self.mostRepaired) installs; erase those that are not used."
            )
        }
        return person
    }

    /// The person as it is now, told of each of its installs where it is linked or not as of now.
    private func changed(
        _ person: Person, _ cause: InstallStatusChanged.Cause?, _ command: any RepairCommand,
        _ events: [any EventMessage], _ change: (inout Install) -> Void
    ) -> Decision {
        let installs = state.installs(of: person.userID)
        guard let cause else {
            return Decision(.succeeded(result(person)), changes: [.person(person)], events: events)
        }
        let after = Self.stirred(installs, change)
        return Decision(
            .succeeded(result(person, installs: after)), changes: [.person(person)] + after.map { .install($0) },
            events: events + after.map { told(of: $0, person, cause, by: command.author, because: command.reason) })
    }

    /// Whoever was unlinked and is linked again is linked on all of its installs: on the others too (L73).
    func relinked(
        _ others: [Install], _ person: Person, to externalID: ExternalID
    ) -> (installs: [Install], events: [any EventMessage]) {
        var person = person
        person.externalID = externalID
        let installs = Self.stirred(others) { $0.turn = nil }
        return (installs, installs.map { [person] in told(of: $0, person, .relinked) })
    }

    /// What is known of these installs of one person has changed, and not who is active on them: whoever lost the person to
    /// another of them may still get it back (L50).
    static func stirred(_ installs: [Install], _ change: (inout Install) -> Void) -> [Install] {
        installs.map { before in
            var install = before
            install.version += 1
            change(&install)
            return following(install, installs)
        }
    }

    /// What it has taken from the installs, whose versions grow by one.
    static func following(_ install: Install, _ installs: [Install]) -> Install {
        var install = install
        for place in install.superseded.indices where installs.contains(where: install.superseded[place].isStill) {
            install.superseded[place].version += 1
        }
        return install
    }

    func told(
        of install: Install, _ person: Person?, _ cause: InstallStatusChanged.Cause,
        by author: String? = nil, because reason: String? = nil
    ) -> InstallStatusChanged {
        InstallStatusChanged(
            installId: install.id, status: install.status, isActive: install.isUsed(by: person),
            userId: install.userID, isLinked: person?.externalID != nil, cause: cause,
            inactiveBecause: install.inactiveBecause(of: person), version: install.version, author: author,
            reason: reason)
    }

    private func result(_ person: Person, after end: PageEnd? = nil, installs: [Install]? = nil) -> LinkedUserResult {
        let ordered = (installs ?? state.installs(of: person.userID)).sorted { $0.pageEnd.isBefore($1.pageEnd) }
        let left = ordered.filter { install in end.map { $0.isBefore(install.pageEnd) } ?? true }
        let page = left.prefix(Self.installsInPage)
        return LinkedUserResult(
            userId: person.userID, externalId: person.externalID,
            linkedAt: person.externalID.flatMap { _ in person.linkedAt }.map(Timestamp.init(milliseconds:)),
            createdAt: person.createdAt.map(Timestamp.init(milliseconds:)), isErased: person.isErased,
            installs: page.map { install in
                LinkedUserResult.Install(
                    installId: install.id, device: install.device, status: install.status,
                    isActive: install.isUsed(by: person), inactiveBecause: install.inactiveBecause(of: person),
                    isUsersFirst: install.isUsersFirst,
                    version: install.version)
            }, next: left.count > page.count ? page.last.flatMap { pages(of: person).next($0.pageEnd) } : nil)
    }
}

extension Install {
    /// Where a page ends behind this install: those whose person came last come first.
    fileprivate var pageEnd: PageEnd { PageEnd(time: personSince ?? .min, id: id.text) }
}

extension Person {
    /// From one change to the next the moment grows, also when the later command was given first: whoever hears of two knows
    /// which one counts (S118).
    /// - Returns: since when the person has the external id, or has none.
    @discardableResult
    mutating func setExternalID(_ externalID: ExternalID?, at moment: Moment) -> Timestamp {
        let milliseconds = max(moment.milliseconds, linkedAt.map { $0 + 1 } ?? .min)
        (self.externalID, linkedAt) = (externalID, milliseconds)
        return Timestamp(milliseconds: milliseconds)
    }

    /// As many external ids before the present one are remembered (L78).
    private static let mostFormer = 16

    /// It is the same person by another name.
    fileprivate mutating func giveUp(_ old: ExternalID?, for new: ExternalID, at moment: Timestamp) {
        former.removeAll { $0.externalId == new || $0.externalId == old }
        if let old { former.append(FormerExternalID(externalId: old, until: moment)) }
        former = former.suffix(Self.mostFormer)
    }

    /// Whether it has the external id, or had it until support changed that.
    func isOrWas(_ externalID: ExternalID) -> Bool {
        self.externalID == externalID || former.contains { $0.externalId == externalID }
    }
}

/// An external id that was changed: it names nobody for a while (L66). No clear text.
public struct Hold: Sendable, Hashable {
    public typealias Key = Scoped<TextDigest>

    public var key: Key
    var userID: UserID
    /// In milliseconds since 1970.
    var since: Int64
    var until: Int64
    /// Since when support has given it to somebody else, in milliseconds (L68). What was meant before that means its person
    /// of then.
    var ended: Int64?

    /// So long no hold ends, in milliseconds: the services hear meanwhile that the external id was changed.
    static let least: Int64 = 60_000

    init(app: AppID, externalID: ExternalID, userID: UserID, since: Int64, until: Int64) {
        key = Self.key(app, externalID)
        self.userID = userID
        self.since = since
        self.until = until
    }

    init(_ hold: Hold, until: Int64) {
        self = hold
        self.until = until
    }

    static func key(_ app: AppID, _ externalID: ExternalID) -> Scoped<TextDigest> {
        Scoped(app: app, id: TextDigest(of: externalID.text))
    }

    func isOver(_ now: Timestamp) -> Bool { until <= now.milliseconds }

    /// Whether it keeps others from the external id.
    func keeps(_ now: Timestamp) -> Bool { ended == nil && !isOver(now) }
}
