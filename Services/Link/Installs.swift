// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Registering, reading, detaching, and the platform's word on installs. docs/link.md.
extension LinkDecider {
    /// L28, L29.
    func register(_ command: RegisterInstall) throws(Rejection) -> Decision {
        let known = known(command.installId)
        if let known { try checkStatus(of: known) }  // L7
        var install = known ?? Install(id: command.installId, app: app.id, device: command.device)
        install.device = command.device
        let isNews = known?.device != command.device
        guard command.user == .new else { return registered(opened(install), known, isNews: isNews) }
        if let userID = install.userID {
            // Of another command: what an earlier life left is nobody's to take over (L54), but for who was imported (L157).
            let isGiven = install.isImported && person(on: install)?.externalID == nil
            guard isGiven || userID == newUserID else { throw Rejection(.userAlreadyExists) }
            install.isImported = false
            return registered(install, known, isNews: isNews)
        }
        let person = try newPerson()
        install = install.with(person.userID, .active, isNew: true)
        install.personSince = context.moment.milliseconds
        install.turn = context.moment
        return registered(install, known, isNews: true, [.person(person)])
    }

    /// The linker's turn, which begins anew with each registration (L27, L45).
    private func opened(_ install: Install) -> Install {
        guard install.userID == nil else { return install }
        var install = install
        if let turn = install.turn, install.isOpen, turn.milliseconds >= context.moment.milliseconds { return install }
        install.isOpen = true
        install.turn = context.moment
        return install
    }

    private func registered(
        _ install: Install, _ known: Install?, isNews: Bool, _ changes: [LinkState.Change] = []
    ) -> Decision {
        guard install != known else { return Decision(.succeeded(result(install))) }
        let event = InstallRegistered(installId: install.id, device: install.device, userId: install.userID)
        return Decision(
            .succeeded(result(install)),
            changes: [.install(install)] + (changes.isEmpty ? touchPerson(on: install) : changes),
            events: isNews ? [event] : [])
    }

    /// L33.
    func query(_ query: QueryInstall) throws(Rejection) -> Decision {
        Decision(.succeeded(result(try found(query.installId))))  // L5, L6
    }

    /// L24, L32.
    func detach(_ command: DetachInstall) throws(Rejection) -> Decision {
        let install = try found(command.installId)  // L5, L6
        try checkMoment(of: install)
        guard let userID = install.userID else {
            guard install.status != .deleted else { throw Rejection(.installDeleted) }
            // No linker is awaited any longer (L7a).
            var closed = install
            closed.isOpen = false
            closed.turn = nil
            return Decision(.succeeded(result(install)), changes: install.isOpen ? [.install(closed)] : [])
        }
        let detached = install.with(nil, .none)
        var decision = Decision(
            .succeeded(result(detached)), changes: [.install(detached)] + touchPerson(on: install),
            events: [InstallDetached(installId: install.id, userId: userID, version: detached.version)])
        if command.cause == .creationFailed { giveBack(what: install, &decision) }
        return decision
    }

    /// The creation on this install failed: who lost the person to it is as before, unless somebody else has the person
    /// (L50).
    private func giveBack(what install: Install, _ decision: inout Decision) {
        let others = install.userID.map { state.installs(of: $0) }?.filter { $0.id != install.id } ?? []
        // Who took the person over from this install gives it back past it (L51).
        let heirs = handedOn(install, to: others) { _ in install.superseded }
        decision.changes += heirs
        if var holder = others.first(where: \.hasItsPerson) {
            // So does who took it when nobody had it, because this install was disabled or deleted by then.
            let left = install.superseded.filter { left in others.contains { left.isStill($0) } }
            guard heirs.isEmpty, !left.isEmpty else { return }
            holder.superseded += left
            decision.changes.append(.install(holder))
            return
        }
        for left in install.superseded {
            guard var former = others.first(where: { left.isStill($0) }) else { continue }
            former.activity = left.wasSuspended ? .suspended : .active
            former.version += 1
            decision.changes.append(.install(former))
            decision.events.append(told(of: former, person(on: former), .restored))
            if former.isActive { return }
        }
    }

    /// The installs that would give the person back to `install` as it stands: from now on they give it to its `heirs`.
    func handedOn(
        _ install: Install, to others: [Install], heirs: (Install.Superseded) -> [Install.Superseded]
    ) -> [LinkState.Change] {
        others.compactMap { other in
            guard let place = other.superseded.firstIndex(where: { $0.isStill(install) }) else { return nil }
            var changed = other
            changed.superseded.replaceSubrange(place...place, with: heirs(other.superseded[place]))
            return .install(changed)
        }
    }

    /// L26.
    func setStatus(_ command: SetInstallStatus) throws(Rejection) -> Decision {
        var install = try foundHere(command.installId)
        try checkMoment(of: install)
        guard install.status != command.status else { return Decision(.succeeded(result(install))) }
        guard install.status != .deleted else { throw Rejection(.installDeleted) }
        install.status = command.status
        install.version += 1
        install.activity = activity(of: install)
        let event = told(
            of: install, person(on: install), .command, by: command.author, because: command.reason)
        return Decision(
            .succeeded(result(install)), changes: [.install(install)] + touchPerson(on: install), events: [event])
    }

    /// What an install is to its person from the platform's word on: nobody's active one unless it is enabled.
    /// L23, L25.
    private func activity(of install: Install) -> Install.Activity {
        switch (install.status, install.activity) {
        case (.disabled, .active): return .suspended
        case (.deleted, .active), (.deleted, .suspended): return .deactivated
        case (.enabled, .suspended):
            let others = install.userID.map { state.installs(of: $0) } ?? []
            let isTaken = others.contains { $0.isActive && $0.id != install.id }
            return isTaken ? .deactivated : .active
        default: return install.activity
        }
    }

    /// Writes the person's row as it is, because the decision relied on it.
    func touchPerson(on install: Install) -> [LinkState.Change] {
        person(on: install).map { [.person($0)] } ?? []
    }

    func result(_ install: Install) -> InstallResult {
        let person = person(on: install)
        return InstallResult(
            installId: install.id, appId: install.app, userId: install.userID, externalId: person?.externalID,
            status: install.status, isActive: install.isUsed(by: person),
            inactiveBecause: install.inactiveBecause(of: person), isUsersFirst: install.isUsersFirst,
            version: install.version)
    }
}

extension Install {
    /// Whether its person, if it has one, is active here and may be (L82).
    func isUsed(by person: Person?) -> Bool { isActive && person?.isRestricted != true }

    /// Why its person is not active here, if it is not (L52).
    func inactiveBecause(of person: Person?) -> InactiveBecause? {
        guard userID != nil, !isUsed(by: person) else { return nil }
        if person?.isRestricted == true { return .restricted }
        if status != .enabled { return .disabled }
        return activity == .standby ? .waitsForPhone : .superseded
    }
}

extension Install.Superseded {
    /// Whether this install is as it was left.
    func isStill(_ install: Install) -> Bool { install.id == installID && install.version == version }
}
