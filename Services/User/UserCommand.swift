// SPDX-License-Identifier: Apache-2.0

public import Contracts
import WireJSON

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

    static let types: [String: (scope: Scope, read: @Sendable (JSONValue) throws -> UserCommand)] = [
        RequestAuthCode.type: (RequestAuthCode.scope, { .requestAuthCode(try read($0)) }),
        CreateUser.type: (CreateUser.scope, { .create(try read($0)) }),
        LinkUser.type: (LinkUser.scope, { .link(try read($0)) }),
        ConfirmLink.type: (ConfirmLink.scope, { .confirmLink(try read($0)) }),
        ResetUser.type: (ResetUser.scope, { .reset(try read($0)) }),
        GetUser.type: (GetUser.scope, { .get(try read($0)) }),
        ExpireLinker.type: (ExpireLinker.scope, { .expireLinker(try read($0)) }),
        ForgetUser.type: (ForgetUser.scope, { .forget(try read($0)) }),
    ]

    /// What is read of other services.
    static let notices: [String: @Sendable (JSONValue) throws -> UserCommand] = [
        Reply<RawJSON>.type: { .answered(try LinkAnswer(reply: $0)) },
        Linked.type: { .linked(try WireJSONDecoder().decode(Linked.self, from: $0)) },
        InstallStatusChanged.type: {
            .statusChanged(try WireJSONDecoder().decode(InstallStatusChanged.self, from: $0))
        },
        InstallDetached.type: { .detached(try WireJSONDecoder().decode(InstallDetached.self, from: $0)) },
    ]

    private static func read<Message: CommandMessage>(_ data: JSONValue) throws -> Message {
        let message = try WireJSONDecoder().decode(Message.self, from: data)
        try message.validate()
        return message
    }

    /// The install that it is about, if it names one.
    var installID: String? {
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
        case .requestAuthCode, .answered, .forget: nil
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
    var userID: String? {
        switch self {
        case .answered(let answer): answer.facts?.userID
        case .linked(let event): event.userId
        case .statusChanged(let event): event.userId
        case .forget(let command): command.userId
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
    public var forward: String
    public var outcome: Outcome

    public init(forward: String, outcome: Outcome) {
        self.forward = forward
        self.outcome = outcome
    }

    var facts: LinkFacts? {
        if case .facts(let facts) = outcome { facts } else { nil }
    }

    /// A reason that this version does not know is kept as `SERVER_ERROR`: a saga must end whatever the answer is.
    private struct Wire: Decodable {
        var commandId: String
        var commandType: String
        var status: Reply<RawJSON>.Status
        var reason: String?
        var message: String?
        var result: JSONValue?
    }

    init(reply data: JSONValue) throws {
        let wire = try WireJSONDecoder().decode(Wire.self, from: data)
        forward = wire.commandId
        switch wire.status {
        case .succeeded where wire.commandType == EstablishLink.type:
            let result = try WireJSONDecoder().decode(LinkResult.self, from: wire.result ?? .null)
            outcome = .facts(LinkFacts(result))
        case .succeeded:
            let result = try WireJSONDecoder().decode(InstallResult.self, from: wire.result ?? .null)
            outcome = .facts(LinkFacts(result))
        case .rejected:
            let reason = wire.reason.flatMap(ReasonCode.init(rawValue:)) ?? .serverError
            outcome = .rejected(Rejection(reason, wire.message))
        case .expired: outcome = .expired
        case .pending: outcome = .pending
        }
    }
}
