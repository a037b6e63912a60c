// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime

/// Decides link commands. Pure: the same command, state and context give the same decision.
///
/// Every decision that changes anything writes each row that it relied on, the person's above all: two replicas that
/// decide about the same person at once then write the same row, and one of them decides again
/// (docs/decisions/0003-isolation.md, L19).
public struct LinkDecider {
    public typealias Decision = Runtime.Decision<LinkState.Change>

    let state: LinkState
    let context: DecisionContext

    public init(_ state: LinkState, _ context: DecisionContext) {
        self.state = state
        self.context = context
    }

    /// The door. Rules refuse by throwing; what a refusal tells is known here alone.
    public func decide(_ command: LinkCommand) -> Decision {
        do throws(Rejection) {
            return try rule(command)
        } catch {
            let refused = command.linkedInstallID.map { LinkRefused(installId: $0, reason: error.reason) }  // L16
            return Decision(.rejected(error), events: refused.map { [$0] } ?? [])
        }
    }

    private func rule(_ command: LinkCommand) throws(Rejection) -> Decision {
        switch command {
        case .request(let command): try request(command)
        case .establish(let command): try establish(command)
        case .registerInstall(let command): try register(command)
        case .query(let command): try query(command)
        case .detachInstall(let command): try detach(command)
        case .setInstallStatus(let command): try setStatus(command)
        case .eraseUser(let command): try erase(command)
        case .forget(let command): try forget(command)
        case .getErasure(let query): try erasure(query)
        case .getUser(let query): try user(query)
        case .makeActive(let command): try makeActive(command)
        case .unlink(let command): try unlink(command)
        case .changeExternalID(let command): try changeExternalID(command)
        case .importUsers(let command): try importUsers(command)
        case .restricted(let event): restricted(event)
        case .answered(let answer): take(answer)
        case .facts: .facts(context)
        case .expire(let command): try expire(command)
        }
    }

    // MARK: What several rules ask

    var app: AppSettings { context.app }

    /// The app's install with this id, if there is one (L47).
    func known(_ installID: InstallID) -> Install? { state.install(app.id, installID) }

    /// The app's install with this id (L5, L6).
    func found(_ installID: InstallID) throws(Rejection) -> Install {
        if let install = known(installID) { return install }
        throw Rejection(state.isKnown(installID) ? .installDoesNotBelongToApp : .installNotFound)
    }

    /// The same for whoever works for one app by hand: that another app has such an install is not their business (L33, L70).
    func foundHere(_ installID: InstallID) throws(Rejection) -> Install {
        guard let install = known(installID) else { throw Rejection(.installNotFound) }
        return install
    }

    /// What was sent before the person on the install was erased brings nobody back. Clocks that differ are no excuse here:
    /// whoever is refused wrongly can try again in a few seconds, and whoever comes back stays (L62).
    func checkMoment(of install: Install) throws(Rejection) {
        if let erasedAt = install.erasedAt, context.told.milliseconds < erasedAt { throw Rejection(.installDeleted) }
    }

    /// L7.
    func checkStatus(of install: Install) throws(Rejection) {
        try checkMoment(of: install)
        switch install.status {
        case .enabled: break
        case .disabled: throw Rejection(.installDisabled)
        case .deleted: throw Rejection(.installDeleted)
        }
    }

    /// A person with the command's own user id, which is never given twice: it is taken only when a command is replayed
    /// that the inbox has forgotten. If its user was erased since, the erasure stands (L37).
    func newPerson() throws(Rejection) -> Person {
        let userID = newUserID
        if let taken = state.person(userID: userID) {
            throw Rejection(taken.isErased ? .userErased : .idReused)
        }
        return Person(userID: userID, app: app.id, createdAt: context.moment.milliseconds)
    }

    /// The first that no other system has given (L156).
    var newUserID: UserID {
        var id = context.newUserID
        guard state.hasImported else { return id }
        var counter = 0
        while state.person(userID: id)?.imported != nil {
            counter += 1
            id = context.newUserID(counter)
        }
        return id
    }

    func person(on install: Install) -> Person? { install.userID.flatMap { state.person(userID: $0) } }
}

/// docs/link.md, L3 to L15. L1 and L2 are the runtime's (`Authenticator`, `Principal`).
extension LinkDecider {
    func request(_ request: LinkRequest) throws(Rejection) -> Decision {
        try app.linking.check(externalID: request.externalId)  // L3
        guard app.linking.isEnabled else { throw Rejection(.userLinkingNotConfigured) }  // L4
        let install = try found(request.installId)  // L5, L6
        try checkStatus(of: install)  // L7
        guard install.userID != nil || install.isOpen else { throw Rejection(.noLinkingInProgress) }  // L7a
        if let age = lateness(on: install) { return tooLate(request, by: age) }
        // L8 to L15
        return try connect(install, to: request.externalId, by: .request, asked: context.told.milliseconds)
    }

    /// By how many milliseconds the command is older than the install's turn, if that is too much (L46). Who is linked
    /// has no turn.
    private func lateness(on install: Install) -> Int64? {
        guard let turn = install.turn else { return nil }
        let age = turn.milliseconds - context.told.milliseconds
        let areBrokers = turn.isBrokers && context.told.isBrokers
        return age > (areBrokers ? Self.brokersTolerance : app.linking.clockTolerance) ? age : nil
    }

    /// The brokers of a cluster keep one time, in milliseconds.
    private static let brokersTolerance: Int64 = 1000

    /// L46. Counted, because it is also what a wrong clock looks like.
    private func tooLate(_ request: LinkRequest, by age: Int64) -> Decision {
        let rejection = Rejection(
            .noLinkingInProgress,
            "The request is \(Duration.milliseconds(age).inWords) older than the turn of whoever is on the install now. If it is not, the clock of its "
                + "producer is wrong.")
        let key: KeyID? = if case .apiKey(let key) = context.principal.kind { key } else { nil }
        return Decision(
            .rejected(rejection), changes: [.late(LateLink(app: app.id, key: key, age: age))],
            events: [LinkRefused(installId: request.installId, reason: rejection.reason)])
    }

    /// The user service's word that somebody proved to be this person: the install need not be known or wait for a
    /// linker (L30, L31).
    func establish(_ command: EstablishLink) throws(Rejection) -> Decision {
        try app.linking.check(externalID: command.externalId)  // L3
        guard app.linking.isEnabled else { throw Rejection(.userLinkingNotConfigured) }  // L4
        let known = known(command.installId)
        if let known { try checkStatus(of: known) }  // L7
        if command.mode == .linkExistingUser, known?.userID == nil { throw Rejection(.userNotFound) }
        var install = known ?? Install(id: command.installId, app: app.id, device: command.device)
        install.device = command.device
        let way: Way = command.mode == .create ? .creation : .request
        let asked = command.askedAt?.milliseconds ?? context.told.milliseconds
        var decision = try connect(install, to: command.externalId, by: way, asked: asked)  // L8 to L15
        guard known?.device != command.device else { return decision }
        let event = InstallRegistered(installId: install.id, device: install.device, userId: known?.userID)
        decision.events.insert(event, at: 0)
        if decision.changes.isEmpty { decision.changes = [.install(install)] + touchPerson(on: install) }
        return decision
    }

    /// What is asked for: that the install's person be linked, or that a creation bring the external id's person.
    private enum Way { case request, creation }

    /// - Parameter asked: since when it is meant, in milliseconds.
    private func connect(
        _ install: Install, to externalID: ExternalID, by way: Way, asked: Int64
    ) throws(Rejection) -> Decision {
        let owner = state.person(app: app.id, externalID: externalID)
        // L66, L66a
        if owner == nil || install.userID != owner?.userID { try checkHold(of: externalID, asked: asked) }
        switch person(on: install) {
        case let person? where person.isLinked(to: externalID):
            return try linkAgain(install, person, externalID, by: way)  // L9, L9a, L10, L53
        case let person? where person.externalID != nil:
            throw Rejection(.installLinkedToOtherUser)  // L8
        case .some where owner != nil || way == .creation:
            throw Rejection(.cannotLinkExistingPersonToOtherPerson)  // L15, L54
        case let person?:
            try checkBarrier(between: person, and: externalID)  // L74
            return try elect(install, for: person, externalID)  // L14
        case nil:
            if let owner { return try elect(install, for: owner, externalID) }  // L11, L13
            return try elect(install, for: newPerson(), externalID)  // L12
        }
    }

    private func linkAgain(
        _ install: Install, _ person: Person, _ externalID: ExternalID, by way: Way
    ) throws(Rejection) -> Decision {
        switch install.activity {
        case .active:
            let changes = way == .creation ? forgottenClaims(of: install) : []
            return Decision(.succeeded(result(install, person)), changes: changes)  // L9
        case .standby where state.installs(of: person.userID).contains(where: { install.waits(for: $0) }):
            return Decision(.succeeded(result(install, person)))  // L9
        case .standby:
            return try elect(install, for: person, externalID)  // L9a
        case .deactivated where way == .creation:
            return try elect(install, for: person, externalID)  // L53
        case .deactivated, .suspended, .none:
            throw Rejection(.installDeactivated)  // L10
        }
    }

    /// Whoever asks anew has ended the creation before: what that took is not given back when this comes to nothing (L50).
    private func forgottenClaims(of install: Install) -> [LinkState.Change] {
        guard !install.superseded.isEmpty else { return [] }
        var settled = install
        settled.superseded = []
        return [.install(settled)]
    }

    /// Puts the person on the install and decides which of its installs is the active one: the new one, unless a phone
    /// has the person and the new one is a tablet (docs/link.md "Which install is active") (L21).
    func elect(_ install: Install, for person: Person, _ externalID: ExternalID) throws(Rejection) -> Decision {
        let others = state.installs(of: person.userID).filter { $0.id != install.id }
        guard others.count(where: \.isActive) < 2 else { throw Rejection(.multipleInstallsActive) }  // L11
        let isNew = state.person(userID: person.userID) == nil
        let phone = others.first { install.waits(for: $0) }
        var linked = install.with(person.userID, phone == nil ? .active : .standby, isNew: isNew)
        // One that is disabled would be active again when it is enabled (L49).
        let losers = phone == nil ? others.filter(\.hasItsPerson) : []
        let rest = isNew || person.externalID != nil ? [] : others.filter { !losers.contains($0) }
        let relinked = relinked(rest, person, to: externalID)
        let superseded = losers.map { Self.following($0.with(person.userID, .deactivated), rest) }
        // Linked anew where it is active, it has taken from nobody: what its creation took is given back still (L50).
        let taken = install.isActive && install.userID == person.userID ? Self.following(install, rest).superseded : []
        linked.superseded = taken + zip(losers, superseded).map(Install.Superseded.init)
        // A tablet that waits gets the person back as before, if the creation fails that took it (L50).
        let claims = handedOn(install, to: phone == nil ? [] : rest.isEmpty ? others : relinked.installs) { lost in
            [.init(installID: linked.id, version: linked.version, wasSuspended: lost.wasSuspended)]
        }
        var linkedPerson = person
        if linkedPerson.externalID != externalID { linkedPerson.setExternalID(externalID, at: context.moment) }
        if install.userID != person.userID { linked.personSince = context.moment.milliseconds }
        let event = Linked(
            installId: install.id, externalId: externalID, userId: person.userID, personCreated: isNew,
            activeInstallId: person.isRestricted ? nil : phone?.id ?? install.id,
            deactivatedInstallIds: superseded.map(\.id),
            version: linked.version, linkedAt: linkedPerson.linkedAt.map(Timestamp.init(milliseconds:)))
        let deactivations = superseded.map { [linkedPerson] in told(of: $0, linkedPerson, .superseded) }
        return Decision(
            .succeeded(result(linked, person, isNew: isNew)),
            changes: [.person(linkedPerson), .install(linked)]
                + (superseded + relinked.installs).map { .install($0) } + claims,
            events: [event] + deactivations + relinked.events)
    }

    private func result(_ install: Install, _ person: Person, isNew: Bool = false) -> LinkResult {
        LinkResult(
            userId: person.userID, installId: install.id, isActive: install.isUsed(by: person),
            isRestricted: person.isRestricted ? true : nil, personCreated: isNew, version: install.version)
    }
}

extension Install {
    /// A tablet waits while a phone is its person's active install.
    fileprivate func waits(for other: Install) -> Bool {
        device.kind == .tablet && other.device.kind == .phone && other.isActive
    }
}

extension Person {
    fileprivate func isLinked(to externalID: ExternalID) -> Bool {
        self.externalID == externalID
    }
}
