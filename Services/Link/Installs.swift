// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Registering, reading, detaching, and the platform's word on installs. docs/link.md.
extension LinkDecider {
    /// L28, L29.
    func register(_ command: RegisterInstall) throws(Rejection) -> Decision {
        let known = try known(command.installId)  // L6
        if let known { try checkStatus(of: known) }  // L7
        var install = known ?? Install(id: command.installId, app: app.id, device: command.device)
        install.device = command.device
        var isNews = known?.device != command.device
        var changes: [LinkState.Change] = []
        if command.user == .new, install.userID == nil {
            let person = try newPerson()
            install = install.with(person.userID, .active, isNew: true)
            changes = [.person(person)]
            isNews = true
        }
        let opens = install.userID == nil && !install.isOpen
        guard isNews || opens else { return Decision(.succeeded(result(install))) }
        install.isOpen = install.userID == nil  // L27
        let event = InstallRegistered(installId: install.id, device: install.device, userId: install.userID)
        return Decision(
            .succeeded(result(install)), changes: [.install(install)] + changes, events: isNews ? [event] : [])
    }

    /// L33.
    func query(_ query: QueryInstall) throws(Rejection) -> Decision {
        Decision(.succeeded(result(try found(query.installId))))  // L5, L6
    }

    /// L24, L32.
    func detach(_ command: DetachInstall) throws(Rejection) -> Decision {
        let install = try found(command.installId)  // L5, L6
        guard install.status != .deleted else { throw Rejection(.installDeleted) }
        guard let userID = install.userID else {
            // No linker is awaited any longer (L7a).
            var closed = install
            closed.isOpen = false
            return Decision(.succeeded(result(install)), changes: install.isOpen ? [.install(closed)] : [])
        }
        let detached = install.with(nil, .none)
        return Decision(
            .succeeded(result(detached)), changes: [.install(detached)] + touchPerson(on: install),
            events: [InstallDetached(installId: install.id, userId: userID, version: detached.version)])
    }

    /// L26.
    func setStatus(_ command: SetInstallStatus) throws(Rejection) -> Decision {
        var install = try found(command.installId)  // L5, L6
        guard install.status != command.status else { return Decision(.succeeded(result(install))) }
        guard install.status != .deleted else { throw Rejection(.installDeleted) }
        install.status = command.status
        install.version += 1
        install.activity = activity(of: install)
        let event = InstallStatusChanged(
            installId: install.id, status: install.status, isActive: install.isActive, userId: install.userID,
            isLinked: person(on: install)?.externalID != nil, cause: .command, version: install.version)
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
    private func touchPerson(on install: Install) -> [LinkState.Change] {
        person(on: install).map { [.person($0)] } ?? []
    }

    private func result(_ install: Install) -> InstallResult {
        InstallResult(
            installId: install.id, appId: install.app, userId: install.userID,
            externalId: person(on: install)?.externalID, status: install.status, isActive: install.isActive,
            isUsersFirst: install.isUsersFirst, version: install.version)
    }
}
