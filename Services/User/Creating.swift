// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Runtime
import Storage

/// Creating and restoring a user: by an authentication code, with the app's linker, or unlinked (docs/user.md "Creating
/// and restoring").
extension UserDecider {
    func create(_ command: CreateUser) throws(Rejection) -> Decision {
        guard let install = install(command.installId) else { return try begin(command) }
        let digest = command.authCode.map { CodeDigest(of: $0) }
        switch install.state {
        case .creating(var creation):
            guard let digest, digest == creation.code?.digest else { throw Rejection(.userCreationInProgress) }
            try waitAlong(&creation.commands.repeats, beside: 1)
            return later(install.with(.creating(creation)))
        case .present(let account), .linking(let account, _):
            if isRepeated(digest, account) { return Decision(user(account, install.id)) }
            guard case .present = install.state else { throw Rejection(.userAlreadyExists) }  // U12
            return try electAnew(command, account, install)
        case .electing(let account, var election):
            if digest == election.code.digest {
                try waitAlong(&election.commands.repeats, beside: 1)
                return later(install.with(.electing(account, election)))
            }
            guard isRepeated(digest, account) else { throw Rejection(.userAlreadyExists) }
            return Decision(user(account, install.id))
        case .resetting: throw Rejection(.sdkResetInProgress)
        }
    }

    /// Whether this code brought the user. No longer than it could be redeemed: who finds it later gets nothing for it.
    private func isRepeated(_ digest: CodeDigest?, _ account: Account) -> Bool {
        guard let digest, account.registration.redeemed == .init(digest: digest, purpose: .create),
            let code = state.code(digest)
        else { return false }
        return code.expires > now
    }

    private func begin(_ command: CreateUser) throws(Rejection) -> Decision {
        if let text = command.authCode {
            let (code, reserved) = try reserve(text, for: command.installId)
            return begin(command, .user(by: .code(code)), changes: [reserved])
        }
        guard let secret = command.appSecret, app.sdk.appSecret?.matches(secret) == true else {
            throw Rejection(.appSecretInvalid)  // U23
        }
        guard command.linking == .linker else { return begin(command, .user(by: .unlinked)) }  // U22
        guard app.linking.isEnabled else { throw Rejection(.userLinkingNotConfigured) }
        var decision = begin(command, .linkersTurn(deadline: linkersDeadline))
        // U17. The linker may begin once the link service knows the install, and is told then.
        decision.outcome = .begun
        return decision
    }

    private func begin(_ command: CreateUser, _ want: Creation.Want, changes: [UserState.Change] = []) -> Decision {
        let registration = Registration(
            device: command.device, sdkVersion: command.sdkVersion, appVersion: command.appVersion,
            creation: newCreation(command))
        let question = Creation.Question(want: want, forward: forwardID, expiry: context.expiry)
        let creation = Creation(
            registration: registration, moment: Timestamp(milliseconds: context.moment.milliseconds),
            commands: Beginners(Waiting(context.command)), step: .asking(question))
        let install = Installation(app: app.id, id: command.installId, .creating(creation))
        return later(install, changes: changes, forwards: [ask(question, creation, install)])
    }

    /// The same for no other creation, also when the inbox has forgotten this command and it comes again.
    private func newCreation(_ command: CreateUser) -> String {
        var hash = SHA256()
        let key = context.command
        for part in [key.app.text, command.installId.text, key.source.text, key.id.text, String(now.milliseconds)] {
            hash.update(data: Array("\(part.utf8.count):\(part)\n".utf8))
        }
        return hash.finalize().prefix(16).hex
    }

    private func ask(_ question: Creation.Question, _ creation: Creation, _ install: Installation) -> Forward {
        let device = creation.registration.device
        let command: any CommandMessage =
            switch question.want {
            case .user(by: .code(let code), _):
                EstablishLink(code, on: install.id, device, .create)
            case .user(by: .unlinked, _): RegisterInstall(installId: install.id, device: device, user: .new)
            case .linkersTurn: RegisterInstall(installId: install.id, device: device, user: .none)
            }
        return forward(command, expiry: question.expiry)
    }

    // MARK: The link service's answer

    func answered(
        _ answer: LinkAnswer.Outcome, _ question: Creation.Question, _ creation: Creation, _ install: Installation
    ) -> Decision {
        if question.attempt == .detaching { return askAgain(answer, question, creation, install) }
        switch question.want {
        case .user: return created(answer, question, creation, install)
        case .linkersTurn(let deadline): return registered(answer, question, deadline, creation, install)
        }
    }

    private func created(
        _ answer: LinkAnswer.Outcome, _ question: Creation.Question, _ creation: Creation, _ install: Installation
    ) -> Decision {
        switch answer {
        case .facts(let facts): return arrive(facts, creation, install)
        case .rejected(let rejection):
            // Left from an earlier life (U21).
            let leftovers: [ReasonCode] = [
                .installLinkedToOtherUser, .cannotLinkExistingPersonToOtherPerson, .userAlreadyExists,
            ]
            guard leftovers.contains(rejection.reason), question.attempt == .first else {
                return fail(Failure(rejection), creation, install)
            }
            return detachFirst(question, creation, install)
        case .expired, .pending: return fail(.expired, creation, install)
        }
    }

    /// No creation starts from what an earlier life left on the install (``Creation/Attempt``).
    func detachFirst(_ question: Creation.Question, _ creation: Creation, _ install: Installation) -> Decision {
        guard install.resets.isEmpty else { return yieldToReset(creation.registration, install) }
        var (question, creation) = (question, creation)
        question.attempt = .detaching
        question.forward = forwardID
        creation.step = .asking(question)
        return Decision(
            .noted, changes: put(install.with(.creating(creation))),
            forwards: [forward(DetachInstall(installId: install.id, cause: .leftover), expiry: question.expiry)])
    }

    private func askAgain(
        _ answer: LinkAnswer.Outcome, _ question: Creation.Question, _ creation: Creation, _ install: Installation
    ) -> Decision {
        if case .expired = answer { return fail(.expired, creation, install) }
        guard install.resets.isEmpty else { return yieldToReset(creation.registration, install) }
        var (question, creation) = (question, creation)
        question.attempt = .second
        question.forward = forwardID
        creation.step = .asking(question)
        return Decision(
            .noted, changes: put(install.with(.creating(creation))), forwards: [ask(question, creation, install)])
    }

    /// The user is here.
    func arrive(_ facts: LinkFacts, _ creation: Creation, _ waiting: Installation) -> Decision {
        guard waiting.resets.isEmpty else {
            return yieldToReset(
                creation.registration, waiting, knowing: creation.facts.updated(by: facts), isCodeUsed: true)
        }
        var registration = creation.registration
        if let code = creation.code { registration.redeemed = .init(digest: code.digest, purpose: .create) }
        // An event may have told of later things already: they happened behind the arrival.
        let latest = facts.updated(by: creation.facts)
        guard let account = Account(registration, latest) else { return close(waiting, .noUser, isCodeUsed: true) }
        if state.isErased(account.user.id) { return close(waiting, .userErased, isCodeUsed: true) }
        let install = waiting.with(.present(account))
        return Decision(
            .noted, changes: put(install) + useCode(of: waiting),
            events: arrival(facts, install.id) + changes(from: facts, to: latest, install.id),
            settlements: answer(waiting.waiting, user(account, install.id)))
    }

    private func arrival(_ facts: LinkFacts, _ installID: InstallID) -> [any EventMessage] {
        guard let user = facts.user else { return [] }
        return user.isUsersFirst
            ? [
                UserCreated(  // U13
                    installId: installID, userId: user.id, isLinked: user.isLinked,
                    isRemoteEnabled: facts.isRemoteEnabled)
            ]
            : [UserRestored(installId: installID, userId: user.id, isRemoteEnabled: facts.isRemoteEnabled)]  // U14
    }

    /// The link service has changed nothing: a creation leaves no trace.
    func fail(_ failure: Failure, _ creation: Creation, _ waiting: Installation) -> Decision {
        guard waiting.resets.isEmpty else { return yieldToReset(creation.registration, waiting) }
        return Decision(
            .noted, changes: [.remove(waiting.key)] + freeCode(of: waiting),
            events: [UserCreationFailed(installId: waiting.id, reason: failure.reason)],
            settlements: answer(waiting.waiting, failure.outcome))
    }
}
