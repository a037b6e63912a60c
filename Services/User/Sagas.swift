// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

/// A command that waits for its final answer, within the install's app.
public struct Waiting: Stored, Sendable, Hashable {
    /// More than this many commands do not wait for one thing (U68).
    static let most = 16

    var source: SourceID
    var id: CommandID

    init(_ key: CommandKey) {
        source = key.source
        id = key.id
    }

    func key(app: AppID) -> CommandKey { CommandKey(app: app, source: source, id: id) }
}

/// The `user.create` or `user.link` commands that wait: the one that began it, and those that repeat it.
public struct Beginners: Stored, Sendable, Hashable {
    let first: Waiting
    var repeats: [Waiting] = []

    init(_ first: Waiting) { self.first = first }

    var all: [Waiting] { [first] + repeats }
}

/// An authentication code that is reserved for what goes on at an install.
public struct HeldCode: Stored, Sendable, Hashable {
    var externalID: ExternalID
    var digest: CodeDigest
    /// When it was asked for.
    var moment: Timestamp
}

extension EstablishLink {
    /// By what a code says: whose external id it is, and since when that is meant.
    init(_ code: HeldCode, on install: InstallID, _ device: Device, _ mode: Mode) {
        self.init(
            installId: install, device: device, externalId: code.externalID, mode: mode, askedAt: code.moment)
    }
}

/// The linker is done, and the link service is asked whether it is so.
public struct Confirmation: Stored, Sendable, Hashable {
    /// The `user.confirm-link` commands that wait.
    var commands: [Waiting]
    /// Whom the app's backend linked, as they say (U72); each once.
    var externalIDs: [ExternalID] = []
    var resets: [Waiting] = []
    var forward: CommandID

    /// Whether the link service says that it is so.
    func isConfirmed(by answer: LinkAnswer) -> Bool {
        answer.facts?.isLinked == true && externalIDs.allSatisfy { $0 == answer.externalID }
    }
}

/// A user is on its way to an install.
public struct Creation: Stored, Sendable, Hashable {
    public enum Step: Stored, Sendable, Hashable {
        case asking(Question)
        /// The link service knows the install; the app's linker has its turn.
        case awaitingLinker(deadline: Timestamp)
        case confirming(Confirmation)
    }

    /// What the link service is asked.
    public struct Question: Stored, Sendable, Hashable {
        var want: Want
        var attempt = Attempt.first
        var forward: CommandID
        /// Until when the link service may decide it.
        var expiry: Timestamp?
    }

    public enum Want: Stored, Sendable, Hashable {
        case user(by: Means, resets: [Waiting] = [])
        /// To know the install, so that the app's linker may begin. Its turn is counted from the beginning.
        case linkersTurn(deadline: Timestamp)
    }

    public enum Means: Stored, Sendable, Hashable {
        /// The user behind an authentication code.
        case code(HeldCode)
        /// A new user, linked to nobody (U22).
        case unlinked
    }

    /// No creation starts from what an earlier life left on the install.
    public enum Attempt: String, Stored, Sendable, Hashable {
        case first
        /// What was left is being taken off.
        case detaching
        /// Nothing is left any more: a second refusal stands.
        case second
    }

    var registration: Registration
    /// Of the command that began it (``Moment``).
    var moment: Timestamp
    var facts = LinkFacts.nothing
    var commands: Beginners
    var step: Step

    var forward: CommandID? {
        switch step {
        case .asking(let question): question.forward
        case .awaitingLinker: nil
        case .confirming(let confirmation): confirmation.forward
        }
    }

    var code: HeldCode? {
        if case .asking(let question) = step, case .user(by: .code(let code), _) = question.want { code } else { nil }
    }

    var deadline: Timestamp? {
        switch step {
        case .asking(let question):
            if case .linkersTurn(let deadline) = question.want { deadline } else { nil }
        case .awaitingLinker(let deadline): deadline
        case .confirming: nil
        }
    }

    var waiting: [Waiting] {
        if case .confirming(let confirmation) = step { commands.all + confirmation.commands } else { commands.all }
    }

    var resets: [Waiting] {
        switch step {
        case .asking(let question): question.want.resets
        case .awaitingLinker: []
        case .confirming(let confirmation): confirmation.resets
        }
    }
}

extension Creation.Want {
    var resets: [Waiting] {
        switch self {
        case .user(_, let resets): resets
        case .linkersTurn: []
        }
    }
}

/// The link of a user that is on an install is on its way.
public struct PendingLink: Stored, Sendable, Hashable {
    public enum Step: Stored, Sendable, Hashable {
        /// The link service is asked to link the user to the external id behind a code.
        case asking(HeldCode, forward: CommandID, resets: [Waiting] = [])
        /// The app's linker has its turn.
        case awaitingLinker(deadline: Timestamp)
        case confirming(Confirmation)
    }

    var commands: Beginners
    var step: Step

    var forward: CommandID? {
        switch step {
        case .asking(_, let forward, _): forward
        case .awaitingLinker: nil
        case .confirming(let confirmation): confirmation.forward
        }
    }

    var code: HeldCode? { if case .asking(let code, _, _) = step { code } else { nil } }

    var redeemed: Registration.Redeemed? { code.map { .init(digest: $0.digest, purpose: .link) } }

    var deadline: Timestamp? { if case .awaitingLinker(let deadline) = step { deadline } else { nil } }

    var waiting: [Waiting] {
        if case .confirming(let confirmation) = step { commands.all + confirmation.commands } else { commands.all }
    }

    var resets: [Waiting] {
        switch step {
        case .asking(_, _, let resets): resets
        case .awaitingLinker: []
        case .confirming(let confirmation): confirmation.resets
        }
    }
}

/// A user is on an install and not active there; whoever has a code of its external id makes it so (U79).
public struct Election: Stored, Sendable, Hashable {
    var commands: Beginners
    var code: HeldCode
    var forward: CommandID
    /// The `user.reset` commands that wait.
    var resets: [Waiting] = []
}

/// Whatever is on an install is being taken off.
public struct Reset: Stored, Sendable, Hashable {
    public enum Cause: Stored, Sendable, Hashable {
        /// Somebody asked for it. The user is the one that was there then: a creation that is reset may have none yet.
        case command(Registration, userID: UserID?)
        /// Somebody asked for it, of an install that we know nothing of; the link service may.
        case commandForUnknown
        /// A creation failed, and must leave nothing behind.
        case failure(FailedCreation)
    }

    var cause: Cause
    var facts: LinkFacts
    /// The `user.reset` commands that wait.
    var resets: [Waiting]
    var forward: CommandID

    var registration: Registration? {
        switch cause {
        case .command(let registration, _): registration
        case .commandForUnknown: nil
        case .failure(let failed): failed.registration
        }
    }

    var waiting: [Waiting] { if case .failure(let failed) = cause { failed.waiting } else { [] } }

    /// Who was there when somebody asked for it.
    var userID: UserID? { if case .command(_, let userID) = cause { userID } else { nil } }
}

/// A creation of which all who waited are told once the install is clean.
public struct FailedCreation: Stored, Sendable, Hashable {
    var registration: Registration
    var commands: Beginners
    /// The `user.confirm-link` commands that wait.
    var confirmations: [Waiting] = []
    var failure: Failure

    var waiting: [Waiting] { commands.all + confirmations }
}

/// How something ended without success.
public enum Failure: Stored, Sendable, Hashable {
    case rejected(ReasonCode, String)
    case expired

    static let appSideLinkingFailed = Failure.rejected(
        .appSideLinkingFailed, ReasonCode.appSideLinkingFailed.defaultMessage)

    var reason: ReasonCode? {
        if case .rejected(let reason, _) = self { reason } else { nil }
    }

    /// What the SDK is told when the link service refuses. Reasons about the SDK's own doing are passed on (U33).
    init(_ rejection: Rejection) {
        switch rejection.reason {
        case .userLinkingNotConfigured, .installDoesNotBelongToApp, .installDeleted, .installDisabled,
            .installDeactivated, .installLinkedToOtherUser, .cannotLinkExistingPersonToOtherPerson,
            .multipleInstallsActive, .userAlreadyExists, .userErased, .invalidRequest, .externalIDChanged,
            .linkBarred:
            self = .rejected(rejection.reason, rejection.message)
        default:
            self = .rejected(
                .serverError, "The link service answered \(rejection.reason.rawValue): \(rejection.message)")
        }
    }
}
