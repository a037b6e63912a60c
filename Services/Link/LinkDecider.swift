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
        case .answered(let answer): take(answer)
        }
    }

    // MARK: What several rules ask

    var app: AppSettings { context.app }

    /// The install with this id, if there is one (L6).
    func known(_ installID: String) throws(Rejection) -> Install? {
        guard let install = state.install(installID) else { return nil }
        guard install.app == app.id else { throw Rejection(.installDoesNotBelongToApp) }  // L6
        return install
    }

    /// The install with this id (L5, L6).
    func found(_ installID: String) throws(Rejection) -> Install {
        guard let install = try known(installID) else { throw Rejection(.installNotFound) }  // L5
        return install
    }

    /// L7.
    func checkStatus(of install: Install) throws(Rejection) {
        switch install.status {
        case .enabled: break
        case .disabled: throw Rejection(.installDisabled)
        case .deleted: throw Rejection(.installDeleted)
        }
    }

    /// A person with the command's own user id, which is never given twice: it is taken only when a command is replayed
    /// that the journal has forgotten. If its user was erased since, the erasure stands.
    func newPerson() throws(Rejection) -> Person {
        if let taken = state.person(userID: context.newUserID) {
            throw Rejection(taken.isErased ? .userErased : .idReused)
        }
        return Person(userID: context.newUserID, app: app.id)
    }

    func person(on install: Install) -> Person? { install.userID.flatMap { state.person(userID: $0) } }
}

extension LinkCommand {
    /// The install that somebody wants to link.
    fileprivate var linkedInstallID: String? {
        switch self {
        case .request(let command): command.installId
        case .establish(let command): command.installId
        default: nil
        }
    }
}
