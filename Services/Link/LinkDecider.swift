// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Runtime

/// Decides link commands. Pure: the same command, state and context give the same decision.
///
/// Every decision that changes anything writes each row that it relied on, the person's above all: two replicas that
/// decide about the same person at once then write the same row, and one of them decides again
/// (docs/decisions/0003-isolation.md).
public enum LinkDecider {
    public typealias Decision = Runtime.Decision<LinkState.Change>

    public static func decide(_ command: LinkCommand, _ state: LinkState, _ context: DecisionContext) -> Decision {
        switch command {
        case .request(let request): link(request, state, context)
        case .registerInstall(let command): register(command, state, context)
        case .establish(let command): establish(command, state, context)
        case .query(let query): read(query, state, context)
        case .detachInstall(let command): detach(command, state, context)
        case .setInstallStatus(let command): setStatus(command, state, context)
        case .eraseUser(let command): erase(command, state, context)
        case .forget(let command): forget(command, state, context)
        case .answered(let answer): take(answer, state, context)
        }
    }

    // MARK: Installs

    private static func register(
        _ command: RegisterInstall, _ state: LinkState, _ context: DecisionContext
    ) -> Decision {
        var install = Install(id: command.installId, app: context.app.id, device: command.device)
        var isNew = true
        if let known = state.install(command.installId) {
            if let refusal = refusal(of: known, context) { return .rejected(refusal) }
            isNew = known.device != command.device
            install = known
            install.device = command.device
        }
        var changes: [LinkState.Change] = []
        if command.user == .new, install.userID == nil {
            if let refusal = refusalOfNewUser(state, context) { return .rejected(refusal) }
            let person = Person(userID: context.newUserID, app: context.app.id)
            changes.append(.person(person))
            install = install.with(person.userID, .active, isNew: true)
            isNew = true
        }
        let opens = install.userID == nil && !install.isOpen
        guard isNew || opens else { return Decision(.succeeded(result(install, state))) }
        install.isOpen = install.userID == nil
        let event = InstallRegistered(installId: install.id, device: install.device, userId: install.userID)
        return Decision(
            .succeeded(result(install, state)), changes: [.install(install)] + changes, events: isNew ? [event] : [])
    }

    private static func read(_ query: QueryInstall, _ state: LinkState, _ context: DecisionContext) -> Decision {
        guard let install = state.install(query.installId) else { return .rejected(.installNotFound) }
        guard install.app == context.app.id else { return .rejected(.installDoesNotBelongToApp) }
        return Decision(.succeeded(result(install, state)))
    }

    private static func detach(_ command: DetachInstall, _ state: LinkState, _ context: DecisionContext) -> Decision {
        guard let install = state.install(command.installId) else { return .rejected(.installNotFound) }
        guard install.app == context.app.id else { return .rejected(.installDoesNotBelongToApp) }
        guard install.status != .deleted else { return .rejected(.installDeleted) }
        guard let userID = install.userID else {
            var closed = install
            closed.isOpen = false
            return Decision(.succeeded(result(install, state)), changes: install.isOpen ? [.install(closed)] : [])
        }
        let detached = install.with(nil, .none)
        return Decision(
            .succeeded(result(detached, state)),
            changes: [.install(detached)] + touch(userID, state),
            events: [InstallDetached(installId: install.id, userId: userID, version: detached.version)])
    }

    private static func setStatus(
        _ command: SetInstallStatus, _ state: LinkState, _ context: DecisionContext
    ) -> Decision {
        guard var install = state.install(command.installId) else { return .rejected(.installNotFound) }
        guard install.app == context.app.id else { return .rejected(.installDoesNotBelongToApp) }
        guard install.status != command.status else { return Decision(.succeeded(result(install, state))) }
        guard install.status != .deleted else { return .rejected(.installDeleted) }
        install.status = command.status
        install.version += 1
        install.activity = activity(of: install, state)
        let person = install.userID.flatMap { state.person(userID: $0) }
        let event = InstallStatusChanged(
            installId: install.id, status: install.status, isActive: install.isActive, userId: install.userID,
            isLinked: person?.externalID != nil, cause: .command, version: install.version)
        return Decision(
            .succeeded(result(install, state)),
            changes: [.install(install)] + (install.userID.map { touch($0, state) } ?? []), events: [event])
    }

    /// What an install is to its person from the platform's word on: nobody's active one unless it is enabled.
    private static func activity(of install: Install, _ state: LinkState) -> Install.Activity {
        switch (install.status, install.activity) {
        case (.disabled, .active): return .suspended
        case (.deleted, .active), (.deleted, .suspended): return .deactivated
        case (.enabled, .suspended):
            let others = install.userID.map { state.installs(of: $0) } ?? []
            let isTaken = others.contains { $0.isActive && ExactText($0.id) != ExactText(install.id) }
            return isTaken ? .deactivated : .active
        default: return install.activity
        }
    }

    // MARK: Links (facts/linking-and-verification.md A5; the numbers are its rows)

    private static func link(_ request: LinkRequest, _ state: LinkState, _ context: DecisionContext) -> Decision {
        let refuse = { (reason: ReasonCode) in
            Decision.rejected(reason, events: [LinkRefused(installId: request.installId, reason: reason)])
        }
        if let invalid = invalid(request.externalId, context) {  // 3
            return Decision(
                .rejected(invalid), events: [LinkRefused(installId: request.installId, reason: invalid.reason)])
        }
        guard context.app.linking.isEnabled else { return refuse(.userLinkingNotConfigured) }  // 4
        guard let install = state.install(request.installId) else { return refuse(.installNotFound) }  // 5
        if let refusal = refusal(of: install, context) { return refuse(refusal) }  // 6, 7
        guard install.userID != nil || install.isOpen else { return refuse(.noLinkingInProgress) }  // 7a
        return connect(install, to: request.externalId, state, context)
    }

    private static func establish(_ command: EstablishLink, _ state: LinkState, _ context: DecisionContext) -> Decision
    {
        let refuse = { (reason: ReasonCode) in
            Decision.rejected(reason, events: [LinkRefused(installId: command.installId, reason: reason)])
        }
        if let invalid = invalid(command.externalId, context) {
            return Decision(
                .rejected(invalid), events: [LinkRefused(installId: command.installId, reason: invalid.reason)])
        }
        guard context.app.linking.isEnabled else { return refuse(.userLinkingNotConfigured) }
        let known = state.install(command.installId)
        if let known, let refusal = refusal(of: known, context) { return refuse(refusal) }
        if command.mode == .linkExistingUser {
            guard let userID = known?.userID else { return refuse(.userNotFound) }
            if let owner = state.person(app: context.app.id, externalID: command.externalId),
                ExactText(owner.userID) != ExactText(userID),
                state.person(userID: userID)?.externalID == nil
            {
                return refuse(.cannotLinkExistingPersonToOtherPerson)
            }
        }
        var install = known ?? Install(id: command.installId, app: context.app.id, device: command.device)
        install.device = command.device
        var decision = connect(install, to: command.externalId, state, context)
        if case .succeeded = decision.outcome, known?.device != command.device {
            let event = InstallRegistered(installId: install.id, device: install.device, userId: known?.userID)
            decision.events.insert(event, at: 0)
            if decision.changes.isEmpty { decision.changes = [.install(install)] }
        }
        return decision
    }

    private static func connect(
        _ install: Install, to externalID: String, _ state: LinkState, _ context: DecisionContext
    ) -> Decision {
        let refuse = { (reason: ReasonCode) in
            Decision.rejected(reason, events: [LinkRefused(installId: install.id, reason: reason)])
        }
        let owner = state.person(app: context.app.id, externalID: externalID)
        if let userID = install.userID, let person = state.person(userID: userID) {
            switch person.externalID.map({ ExactText($0) }) {
            case ExactText(externalID): return repeatLink(install, person, externalID, state)  // 9, 10
            case .some: return refuse(.installLinkedToOtherUser)  // 8
            case nil where owner != nil: return refuse(.cannotLinkExistingPersonToOtherPerson)  // 15
            case nil:  // 14
                var linked = person
                linked.externalID = externalID
                return elect(install, for: linked, isNew: false, externalID, state)
            }
        }
        if let owner { return elect(install, for: owner, isNew: false, externalID, state) }  // 11, 13
        if let refusal = refusalOfNewUser(state, context) { return refuse(refusal) }
        let person = Person(userID: context.newUserID, app: context.app.id, externalID: externalID)
        return elect(install, for: person, isNew: true, externalID, state)  // 12
    }

    /// The install is linked to this external id already.
    private static func repeatLink(
        _ install: Install, _ person: Person, _ externalID: String, _ state: LinkState
    ) -> Decision {
        switch install.activity {
        case .active:
            return Decision(.succeeded(linkResult(install, person, isNew: false)))
        case .standby where state.installs(of: person.userID).contains(where: { waits(install, for: $0) }):
            return Decision(.succeeded(linkResult(install, person, isNew: false)))
        case .standby:
            return elect(install, for: person, isNew: false, externalID, state)
        case .deactivated, .suspended, .none:
            return .rejected(
                .installDeactivated, events: [LinkRefused(installId: install.id, reason: .installDeactivated)])
        }
    }

    /// Puts the person on the install and decides which of its installs is the active one: the new one, unless a phone
    /// has the person and the new one is a tablet (seed 001).
    private static func elect(
        _ install: Install, for person: Person, isNew: Bool, _ externalID: String, _ state: LinkState
    ) -> Decision {
        let active = state.installs(of: person.userID).filter {
            $0.isActive && ExactText($0.id) != ExactText(install.id)
        }
        guard active.count < 2 else {  // 11
            return .rejected(
                .multipleInstallsActive,
                events: [LinkRefused(installId: install.id, reason: .multipleInstallsActive)])
        }
        let previous = active.first
        let phoneStays = active.contains { waits(install, for: $0) }
        let linked = install.with(person.userID, phoneStays ? .standby : .active, isNew: isNew)
        let superseded = phoneStays ? [] : active.map { $0.with(person.userID, .deactivated) }
        let event = Linked(
            installId: install.id, externalId: externalID, userId: person.userID, personCreated: isNew,
            activeInstallId: phoneStays ? previous?.id ?? install.id : install.id,
            deactivatedInstallIds: superseded.map(\.id), version: linked.version)
        let deactivations = superseded.map {
            InstallStatusChanged(
                installId: $0.id, status: $0.status, isActive: false, userId: person.userID, isLinked: true,
                cause: .superseded, version: $0.version)
        }
        return Decision(
            .succeeded(linkResult(linked, person, isNew: isNew)),
            changes: [.person(person), .install(linked)] + superseded.map { .install($0) },
            events: [event] + deactivations)
    }

    /// A tablet waits while a phone is its person's active install (seed 001).
    private static func waits(_ install: Install, for other: Install) -> Bool {
        install.device.kind == .tablet && other.device.kind == .phone && other.isActive
    }

    // MARK: Parts

    /// Rows 6 and 7.
    private static func refusal(of install: Install, _ context: DecisionContext) -> ReasonCode? {
        if install.app != context.app.id { return .installDoesNotBelongToApp }
        return switch install.status {
        case .enabled: nil
        case .disabled: .installDisabled
        case .deleted: .installDeleted
        }
    }

    /// A user id is never given twice. The command's own one is taken only when a command is replayed that the journal
    /// has forgotten: if its user was erased since, the erasure stands (facts/peers.md bug j).
    private static func refusalOfNewUser(_ state: LinkState, _ context: DecisionContext) -> ReasonCode? {
        guard let taken = state.person(userID: context.newUserID) else { return nil }
        return taken.isErased ? .userErased : .idReused
    }

    private static func invalid(_ externalID: String, _ context: DecisionContext) -> Rejection? {
        do throws(Rejection) {
            try context.app.linking.check(externalID: externalID)
            return nil
        } catch {
            return error
        }
    }

    /// Writes the person's row as it is, because the decision relied on it.
    private static func touch(_ userID: String, _ state: LinkState) -> [LinkState.Change] {
        state.person(userID: userID).map { [.person($0)] } ?? []
    }

    private static func linkResult(_ install: Install, _ person: Person, isNew: Bool) -> LinkResult {
        LinkResult(
            userId: person.userID, installId: install.id, isActive: install.isActive, personCreated: isNew,
            version: install.version)
    }

    private static func result(_ install: Install, _ state: LinkState) -> InstallResult {
        InstallResult(
            installId: install.id, appId: install.app, userId: install.userID,
            externalId: install.userID.flatMap { state.person(userID: $0)?.externalID }, status: install.status,
            isActive: install.isActive, isUsersFirst: install.isUsersFirst, version: install.version)
    }
}
