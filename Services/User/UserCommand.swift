// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Everything the user service consumes: commands, the link service's answers and its events. Closed: what has no
/// answer does not compile.
public enum UserCommand: Sendable, Hashable {
    case requestAuthCode(RequestAuthCode)
    case create(CreateUser)
    case link(LinkUser)
    case confirmLink(ConfirmLink)
    case reset(ResetUser)
    case get(GetUser)
    case expireLinker(ExpireLinker)
    case forget(ForgetUser)
    case answered(LinkAnswer)
    case linked(Linked)
    case statusChanged(InstallStatusChanged)
    case detached(InstallDetached)
    case externalIDChanged(ExternalIDChanged)
    case externalIDRemoved(ExternalIDRemoved)
    case facts(FactsQuery)
    /// Nobody came back.
    case expire(ExpireUser)

    /// The install that it is about, if it names one.
    var installID: InstallID? {
        switch self {
        case .create(let command): command.installId
        case .link(let command): command.installId
        case .confirmLink(let command): command.installId
        case .reset(let command): command.installId
        case .get(let command): command.installId
        case .expireLinker(let command): command.installId
        case .linked(let event): event.installId
        case .statusChanged(let event): event.installId
        case .detached(let event): event.installId
        case .expire(let command): command.installId
        case .requestAuthCode, .answered, .externalIDChanged, .externalIDRemoved, .forget, .facts: nil
        }
    }

    /// Whether a token that has expired is enough for it: reading brings a new one.
    var isForExpired: Bool {
        switch self {
        case .get, .reset: true
        default: false
        }
    }

    /// The authentication code that it redeems, as a digest.
    var digest: CodeDigest? {
        switch self {
        case .create(let command): command.authCode.map { CodeDigest(of: $0) }
        case .link(let command): command.authCode.map { CodeDigest(of: $0) }
        default: nil
        }
    }

    /// The user that it puts on an install, or forgets.
    var userID: UserID? {
        switch self {
        case .answered(let answer): answer.facts?.userID
        case .linked(let event): event.userId
        case .statusChanged(let event): event.userId
        case .forget(let command): command.userId
        case .expire(let command): command.userId
        default: nil
        }
    }
}

/// What the link service answered to a command of ours.
public struct LinkAnswer: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case facts(LinkFacts)
        case rejected(Rejection)
        case expired
        /// Not the final answer.
        case pending
    }

    /// The id of the command that was forwarded.
    public var forward: CommandID
    public var outcome: Outcome
    /// Whom the install's user is linked to, if the answer tells it.
    public var externalID: ExternalID?

    public init(forward: CommandID, outcome: Outcome, externalID: ExternalID? = nil) {
        self.forward = forward
        self.outcome = outcome
        self.externalID = externalID
    }

    var facts: LinkFacts? {
        if case .facts(let facts) = outcome { facts } else { nil }
    }

    /// What this version cannot read becomes `SERVER_ERROR`: a saga must end whatever the answer is.
    init(_ reply: ReceivedReply) {
        forward = reply.commandId
        switch reply.status {
        case .succeeded:
            guard reply.commandType != EstablishLink.type else {
                let facts = reply.result(as: LinkResult.self).map { LinkFacts($0) }
                outcome = facts.map { .facts($0) } ?? .rejected(Rejection(.serverError))
                return
            }
            let install = reply.result(as: InstallResult.self)
            outcome = install.map { .facts(LinkFacts($0)) } ?? .rejected(Rejection(.serverError))
            externalID = install?.externalId
        case .rejected: outcome = .rejected(reply.rejection)
        case .expired: outcome = .expired
        case .pending: outcome = .pending
        }
    }
}
