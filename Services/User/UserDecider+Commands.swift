// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// What begins a saga: the SDK's commands.
extension UserDecider {
    static func create(_ command: CreateUser, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard let install = state.install(context.app.id, command.installId) else {
            return beginCreation(command, state, context)
        }
        if let digest = command.authCode.map({ CodeDigest(of: $0) }) {
            if install.phase == .creating, digest == install.saga?.digest { return join(\.commands, install, context) }
            // No longer than the code could be redeemed: who finds it later gets nothing for it.
            if install.hasUser, install.redeemed == .init(digest: digest, purpose: .create),
                let code = state.code(digest), code.expires > context.now
            {
                return Decision(outcome(install, context))
            }
        }
        if install.hasUser { return .rejected(.userAlreadyExists) }
        return .rejected(install.phase == .resetting ? .sdkResetInProgress : .userCreationInProgress)
    }

    private static func beginCreation(
        _ command: CreateUser, _ state: UserState, _ context: DecisionContext
    ) -> Decision {
        let refuse = { (rejection: Rejection) in
            Decision(
                .rejected(rejection),
                events: [UserCreationFailed(installId: command.installId, reason: rejection.reason)])
        }
        var saga: InstallSaga
        var changes: [UserState.Change] = []
        if let text = command.authCode {
            do throws(Rejection) {
                let code = try redeemable(text, state, context)
                changes = [.code(code.with(.reserved(installID: command.installId)))]
                saga = InstallSaga(.create, by: .code(externalID: code.externalID, digest: code.digest))
            } catch {
                return refuse(error)
            }
        } else {
            guard let secret = command.appSecret, context.app.sdk.appSecret?.matches(secret) == true else {
                return refuse(Rejection(.appSecretInvalid))
            }
            guard command.linking != .linker || context.app.linking.isEnabled else {
                return refuse(Rejection(.userLinkingNotConfigured))
            }
            saga = InstallSaga(.create, by: command.linking == .linker ? .linker : .unlinked)
        }
        saga.commands = [.init(context.command)]
        saga.expiry = context.expiry?.milliseconds
        var install = Installation(
            app: context.app.id, id: command.installId, phase: .creating, device: command.device,
            sdkVersion: command.sdkVersion, appVersion: command.appVersion, creation: newCreation(command, context),
            saga: saga)
        if saga.means == .linker { wait(&install, context) }
        let forward = askForUser(&install, context)
        // A linker may begin once the link service knows the install: see `registered`.
        return Decision(
            saga.means == .linker ? .begun : pending(install, context), changes: changes + put(install),
            forwards: forward.map { [$0] } ?? [])
    }

    /// The command to the link service that brings the user. `nil` when the saga's means need none.
    static func askForUser(_ install: inout Installation, _ context: DecisionContext) -> Forward? {
        guard let saga = install.saga, let device = install.device else { return nil }
        let command: any CommandMessage
        switch saga.means {
        case .code(let externalID, _):
            command = EstablishLink(
                installId: install.id, device: device, externalId: externalID,
                mode: saga.purpose == .create ? .create : .linkExistingUser)
        case .linker: command = RegisterInstall(installId: install.id, device: device, user: .none)
        case .unlinked: command = RegisterInstall(installId: install.id, device: device, user: .new)
        case .none: return nil
        }
        return send(command, &install, context, expiry: saga.expiry)
    }

    static func link(_ command: LinkUser, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard var install = state.install(context.app.id, command.installId) else { return .rejected(.noUser) }
        let digest = command.authCode.map { CodeDigest(of: $0) }
        switch install.phase {
        case .resetting: return .rejected(.sdkResetInProgress)
        case .linking where digest != nil && digest == install.saga?.digest:
            return join(\.commands, install, context)
        case .creating, .linking, .awaitingLink, .confirming:
            return .rejected(install.hasUser ? .userLinkingInProgress : .userCreationInProgress)
        case .present: break
        }
        if let digest, install.redeemed == .init(digest: digest, purpose: .link) {
            return Decision(outcome(install, context))
        }
        if install.facts.isLinked { return .rejected(.userAlreadyLinked) }
        if !install.facts.isRemoteEnabled { return .rejected(.userDisabledRemotely) }
        if !context.app.linking.isEnabled { return .rejected(.userLinkingNotConfigured) }
        var changes: [UserState.Change] = []
        var saga = InstallSaga(.link, by: .linker)
        if let text = command.authCode {
            do throws(Rejection) {
                let code = try redeemable(text, state, context)
                changes = [.code(code.with(.reserved(installID: install.id)))]
                saga.means = .code(externalID: code.externalID, digest: code.digest)
            } catch {
                return Decision(.rejected(error))
            }
        }
        saga.commands = [.init(context.command)]
        saga.expiry = context.expiry?.milliseconds
        install.saga = saga
        guard saga.means != .linker else {
            wait(&install, context)
            return Decision(pending(install, context), changes: put(install))
        }
        install.phase = .linking
        let forward = askForUser(&install, context)
        return Decision(
            pending(install, context), changes: changes + put(install), forwards: forward.map { [$0] } ?? [])
    }

    /// The linker's turn begins.
    private static func wait(_ install: inout Installation, _ context: DecisionContext) {
        install.phase = .awaitingLink
        let end = context.now.milliseconds + context.app.sdk.linkerTimeout
        let deadline = min(end, install.saga?.expiry ?? end)
        install.saga?.deadline = deadline
    }

    static func confirm(_ command: ConfirmLink, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard var install = state.install(context.app.id, command.installId) else { return .rejected(.noUser) }
        switch install.phase {
        case .resetting: return .rejected(.sdkResetInProgress)
        case .present where command.success && install.facts.isLinked: return Decision(outcome(install, context))
        case .present, .creating, .linking: return .rejected(.noLinkingInProgress)
        case .confirming: return join(\.confirmations, install, context)
        case .awaitingLink: break
        }
        guard !command.success else {
            install.phase = .confirming
            install.saga?.confirmations = [.init(context.command)]
            let forward = send(QueryInstall(installId: install.id), &install, context)
            return Decision(pending(install, context), changes: put(install), forwards: [forward])
        }
        let failed = Rejection(.appSideLinkingFailed)
        guard install.saga?.purpose == .create else {
            var decision = Decision(.rejected(failed), settlements: settle(install, .rejected(failed)))
            install.phase = .present
            install.saga = nil
            decision.changes = put(install)
            return decision
        }
        install.saga?.confirmations = [.init(context.command)]
        let forward = clean(&install, .rejected(failed.reason, failed.message), context)
        return Decision(pending(install, context), changes: put(install), forwards: [forward])
    }

    static func reset(_ command: ResetUser, _ state: UserState, _ context: DecisionContext) -> Decision {
        var install =
            state.install(context.app.id, command.installId)
            ?? Installation(app: context.app.id, id: command.installId, phase: .present)
        switch install.phase {
        case .creating, .confirming, .linking, .resetting: return join(\.resets, install, context)
        case .present, .awaitingLink: break
        }
        var decision = interrupt(&install, context)
        install.saga?.resets = [.init(context.command)]
        decision.outcome = pending(install, context)
        decision.changes = put(install)
        return decision
    }

    static func expire(_ command: ExpireLinker, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard var install = state.install(context.app.id, command.installId), install.phase == .awaitingLink,
            let first = install.saga?.commands.first,
            ExactText(first.source) == ExactText(command.commandSource),
            ExactText(first.id) == ExactText(command.commandId)
        else { return Decision(.noted) }
        guard install.saga?.purpose == .create else {
            var decision = Decision(.noted, settlements: settle(install, .expired))
            install.phase = .present
            install.saga = nil
            decision.changes = put(install)
            return decision
        }
        let forward = clean(&install, .expired, context)
        return Decision(.noted, changes: put(install), forwards: [forward])
    }
}
