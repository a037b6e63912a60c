// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime

/// Decides user commands, and what the link service says. Pure: the same command, state and context give the same
/// decision.
///
/// What each command is answered in each state stands in docs/user.md "States", U50 to U67, and StateTableTests compares.
///
/// One command to the link service at most is on its way for an install, except that those about the install itself
/// may follow each other: they share a key, and with it their order.
public struct UserDecider {
    public typealias Decision = Runtime.Decision<UserState.Change>

    let state: UserState
    let context: DecisionContext

    public init(_ state: UserState, _ context: DecisionContext) {
        self.state = state
        self.context = context
    }

    var app: AppSettings { context.app }
    var now: Timestamp { context.now }

    /// The door: rules refuse by throwing, and what a refusal tells is added here.
    public func decide(_ command: UserCommand) -> Decision {
        if let refusal = refusalOfCaller(command) { return Decision(.rejected(refusal)) }
        do throws(Rejection) {
            return try rule(command)
        } catch {
            return Decision(.rejected(error), events: told(of: error, command))
        }
    }

    private func rule(_ command: UserCommand) throws(Rejection) -> Decision {
        switch command {
        case .requestAuthCode(let request): try issueCode(request)
        case .create(let command): try create(command)
        case .link(let command): try link(command)
        case .confirmLink(let command): try confirm(command)
        case .reset(let command): try reset(command)
        case .get(let command): try get(command)
        case .expireLinker(let command): expire(command)
        case .answered(let answer): take(answer)
        case .linked(let event): heard(of: event.installId) { _ in LinkFacts(event) }
        case .statusChanged(let event): heard(of: event.installId) { LinkFacts(event, $0) }
        case .detached(let event): heard(of: event.installId) { LinkFacts(event, $0) }
        case .externalIDChanged(let event): forgetCodes(of: event.previousExternalId, until: event.linkedAt)
        case .externalIDRemoved(let event): forgetCodes(of: event.externalId, until: event.unlinkedAt)
        case .facts: .facts(context)
        case .forget(let command): forget(command)
        case .expire(let command): expire(command)
        }
    }

    /// A creation that does not begin has failed. One that meets another, or a user, changes nothing: nobody is told.
    private func told(of refusal: Rejection, _ command: UserCommand) -> [any EventMessage] {
        guard case .create(let command) = command, install(command.installId) == nil else { return [] }
        return [UserCreationFailed(installId: command.installId, reason: refusal.reason)]
    }

    /// A user token opens the installs of its user, an install token the install that its creation made, and neither any
    /// other. An API key may be told to open none: then it creates users, and that is all.
    private func refusalOfCaller(_ command: UserCommand) -> Rejection? {
        guard let id = command.installID else { return nil }
        switch context.principal.kind {
        case .service: return nil
        case .user(let userID):  // U38
            if let own = install(id)?.facts.userID, own == userID { return nil }
            return Rejection(.userTokenNotAllowed, "This user token is not of the user of this install.")
        case .install(let creation):  // U40
            if let own = install(id)?.creation, own == creation { return nil }
            return Rejection(
                .userTokenNotAllowed, "This install token is not of this install, or is from before a reset.")
        case .expiredInstall(let creation):  // U75
            if let own = install(id), own.creation == creation, own.facts.status == .enabled,
                own.facts.inactiveBecause != .restricted, command.isForExpired
            {
                return nil
            }
            return Rejection(
                .userTokenNotAllowed,
                "The token has expired: it may read or reset the install that it was made for, unless that was reset or "
                    + "disabled, or its user is restricted.")
        case .apiKey:
            if app.sdk.keysOpenInstalls { return nil }  // U43
            if case .create = command { return nil }
            return Rejection(.userTokenRequired)
        }
    }

    private func get(_ command: GetUser) throws(Rejection) -> Decision {
        guard let install = install(command.installId) else { throw Rejection(.noUser) }
        switch install.state {
        case .creating: throw Rejection(.userCreationInProgress)
        case .present(let account), .linking(let account, _), .electing(let account, _):
            return Decision(user(account, command.installId), changes: noteSeen(account, install))
        case .resetting: throw Rejection(.sdkResetInProgress)
        }
    }

    /// What the link service answered, and with it how things go on or end. An answer that nobody waits for any more is
    /// passed over.
    private func take(_ answer: LinkAnswer) -> Decision {
        if case .pending = answer.outcome { return Decision(.noted) }
        guard let install = state.install(app.id, awaiting: answer.forward) else { return Decision(.noted) }
        switch install.state {
        case .creating(let creation):
            switch creation.step {
            case .asking(let question): return answered(answer.outcome, question, creation, install)
            case .awaitingLinker: return Decision(.noted)
            case .confirming(let confirmation): return confirmed(answer, confirmation, creation, install)
            }
        case .present: return Decision(.noted)
        case .linking(let account, let link):
            switch link.step {
            case .asking: return linked(answer.outcome, account, link, install)
            case .awaitingLinker: return Decision(.noted)
            case .confirming(let confirmation): return confirmed(answer, confirmation, account, link, install)
            }
        case .electing(let account, let election): return elected(answer.outcome, account, election, install)
        case .resetting(let reset): return detached(answer.outcome, reset, install)
        }
    }

    // MARK: Installs

    func install(_ id: InstallID) -> Installation? { state.install(app.id, id) }

    func put(_ install: Installation) -> [UserState.Change] {
        [.install(install)] + (install.facts.userID.map { [.user(id: $0, isErased: false)] } ?? [])
    }

    // MARK: Answers

    /// The user of the install, with a fresh token.
    func user(_ account: Account, _ installID: InstallID) -> Outcome {
        let token = UserToken(
            app: app.id, userID: account.user.id, installID: installID, creation: account.registration.creation,
            issued: now, lifetime: app.sdk.tokenLifetime)
        return .succeeded(
            UserResult(
                userId: account.user.id, installId: installID, isLinked: account.user.isLinked,
                isRemoteEnabled: account.facts.isRemoteEnabled, inactiveBecause: account.facts.inactiveBecause,
                token: UserTokenResult(
                    tokenId: token.signed(with: UserToken.key(of: app, secrets: context.secrets)),
                    expiryDate: token.expires),
                configuration: app.sdk.configuration,  // U24
                installToken: installToken(account.registration.creation, installID)))
    }

    /// The answer comes later: what goes on, and who has to do something for it.
    func pending(_ install: Installation) -> Outcome {
        let isLinkersTurn = install.linkersTurn != nil
        return .pending(
            PendingUser(
                installId: install.id, awaiting: isLinkersTurn ? .linker : .platform,
                installToken: isLinkersTurn ? install.creation.map { installToken($0, install.id) } : nil))
    }

    private func installToken(_ creation: String, _ installID: InstallID) -> UserTokenResult {
        let token = InstallToken(
            app: app.id, installID: installID, creation: creation, issued: now, lifetime: app.sdk.tokenLifetime)
        return UserTokenResult(
            tokenId: token.signed(with: UserToken.key(of: app, secrets: context.secrets)), expiryDate: token.expires)
    }

    /// The sender waits, with the install as it is now.
    func later(
        _ install: Installation, changes: [UserState.Change] = [], forwards: [Forward] = []
    ) -> Decision {
        Decision(pending(install), changes: changes + put(install), forwards: forwards)
    }

    /// One more command waits for what goes on.
    /// - Parameter others: how many wait elsewhere for the same.
    func waitAlong(
        _ waiting: inout [Waiting], beside others: Int = 0, else reason: ReasonCode = .userCreationInProgress
    ) throws(Rejection) {
        guard others + waiting.count < Waiting.most else { throw Rejection(reason) }
        waiting.append(Waiting(context.command))
    }

    /// The answer to commands that waited.
    func answer(_ waiting: [Waiting], _ outcome: Outcome) -> [Settlement] {
        waiting.map { Settlement($0.key(app: app.id), outcome) }
    }

    // MARK: Commands to the link service

    /// Decided twice, it is the same command. One decision sends no more than one.
    var forwardID: CommandID { context.forwardID(0) }

    func forward(_ command: any CommandMessage, expiry: Timestamp? = nil) -> Forward {
        Forward(id: forwardID, command: command, expiry: expiry)
    }
}

extension Failure {
    var outcome: Outcome {
        switch self {
        case .rejected(let reason, let message): .rejected(Rejection(reason, message))
        case .expired: .expired
        }
    }
}
