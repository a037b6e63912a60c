// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Runtime
import Storage

/// What the other parts of the decider are made of.
extension UserDecider {
    // MARK: Outcomes

    /// The user of the install, with a fresh token.
    static func outcome(_ install: Installation, _ context: DecisionContext) -> Outcome {
        guard let userID = install.facts.userID else { return .rejected(Rejection(.noUser)) }
        let token = UserToken(
            app: install.app, userID: userID, installID: install.id, issued: context.now,
            lifetime: context.app.sdk.tokenLifetime)
        return .succeeded(
            UserResult(
                userId: userID, installId: install.id, isLinked: install.facts.isLinked,
                isRemoteEnabled: install.facts.isRemoteEnabled,
                token: UserTokenResult(
                    tokenId: token.signed(with: UserToken.key(of: context.app, secrets: context.secrets)),
                    expiryDate: token.expires.rfc3339),
                configuration: context.app.sdk.configuration, installToken: installToken(install, context)))
    }

    static func pending(_ install: Installation, _ context: DecisionContext) -> Outcome {
        let isLinkersTurn = install.phase == .awaitingLink
        return .pending(
            PendingUser(
                installId: install.id, awaiting: isLinkersTurn ? .linker : .platform,
                installToken: isLinkersTurn ? installToken(install, context) : nil))
    }

    private static func installToken(_ install: Installation, _ context: DecisionContext) -> UserTokenResult? {
        install.creation.map { creation in
            let token = InstallToken(
                app: install.app, installID: install.id, creation: creation, issued: context.now,
                lifetime: context.app.sdk.tokenLifetime)
            return UserTokenResult(
                tokenId: token.signed(with: UserToken.key(of: context.app, secrets: context.secrets)),
                expiryDate: token.expires.rfc3339)
        }
    }

    /// The same for no other creation, also when the journal has forgotten this command and it comes again.
    static func newCreation(_ command: CreateUser, _ context: DecisionContext) -> String {
        var hash = SHA256()
        let key = context.command
        for part in [key.app, command.installId, key.source, key.id, String(context.now.milliseconds)] {
            hash.update(data: Array("\(part.utf8.count):\(part)\n".utf8))
        }
        return hash.finalize().prefix(16).hex
    }

    static func outcome(_ failure: InstallSaga.Failure) -> Outcome {
        switch failure {
        case .rejected(let reason, let message): .rejected(Rejection(reason, message))
        case .expired: .expired
        }
    }

    /// What the SDK is told when the link service refuses. Reasons about the SDK's own doing are passed on.
    static func failure(_ rejection: Rejection) -> InstallSaga.Failure {
        switch rejection.reason {
        case .userLinkingNotConfigured, .installDoesNotBelongToApp, .installDeleted, .installDisabled,
            .installDeactivated, .installLinkedToOtherUser, .cannotLinkExistingPersonToOtherPerson,
            .multipleInstallsActive, .userErased, .invalidRequest:
            .rejected(rejection.reason, rejection.message)
        default:
            .rejected(.serverError, "The link service answered \(rejection.reason.rawValue): \(rejection.message)")
        }
    }

    // MARK: Waiting

    /// One more command waits for what goes on.
    static func join(
        _ list: WritableKeyPath<InstallSaga, [InstallSaga.Waiting]>, _ install: Installation,
        _ context: DecisionContext
    ) -> Decision {
        guard var saga = install.saga, saga[keyPath: list].count < InstallSaga.maxWaiting else {
            return .rejected(install.phase == .resetting ? .sdkResetInProgress : .userCreationInProgress)
        }
        saga[keyPath: list].append(.init(context.command))
        var joined = install
        joined.saga = saga
        return Decision(pending(joined, context), changes: put(joined))
    }

    /// The final answer to the commands that began the saga, and to those that confirmed it.
    static func settle(_ install: Installation, _ outcome: Outcome) -> [Settlement] {
        guard let saga = install.saga else { return [] }
        return (saga.commands + saga.confirmations).map { Settlement($0.key(app: install.app), outcome) }
    }

    /// The final answer to those who reset.
    static func settleResets(_ install: Installation, _ outcome: Outcome) -> [Settlement] {
        (install.saga?.resets ?? []).map { Settlement($0.key(app: install.app), outcome) }
    }

    // MARK: State

    static func put(_ install: Installation) -> [UserState.Change] {
        [.install(install)] + (install.facts.userID.map { [.user(id: $0, isErased: false)] } ?? [])
    }

    // MARK: Commands to the link service

    /// - Parameter expiry: in milliseconds since 1970.
    static func send(
        _ command: any CommandMessage, _ install: inout Installation, _ context: DecisionContext,
        expiry: Int64? = nil
    ) -> Forward {
        let id = context.forwardID(0)
        install.saga?.forward = id
        return Forward(id: id, command: command, expiry: expiry.map { Timestamp(milliseconds: $0) })
    }

    /// Takes off whatever is on the install; then the waiting commands are told of `failure`. Does not expire: a
    /// reset that began is done.
    static func clean(
        _ install: inout Installation, _ failure: InstallSaga.Failure?, _ context: DecisionContext
    ) -> Forward {
        install.phase = .resetting
        install.saga?.failure = failure
        return send(DetachInstall(installId: install.id), &install, context)
    }

    /// Ends what goes on in favour of a reset, and begins that. Those who wait for the reset keep waiting.
    static func interrupt(_ install: inout Installation, _ context: DecisionContext) -> Decision {
        let rejection = Rejection(.sdkResetInProgress)
        var decision = Decision(.noted, settlements: settle(install, .rejected(rejection)))
        if install.saga?.purpose == .create {
            decision.events = [UserCreationFailed(installId: install.id, reason: rejection.reason)]
        }
        var saga = InstallSaga(.reset)
        saga.resets = install.saga?.resets ?? []
        saga.userID = install.facts.userID
        install.saga = saga
        decision.forwards = [clean(&install, nil, context)]
        return decision
    }
}
