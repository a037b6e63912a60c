// SPDX-License-Identifier: Apache-2.0

public import Contracts
import WireJSON

/// Everything the verification service consumes. Closed: a command without an answer does not compile.
public enum VerificationCommand: Sendable {
    case login(VerificationLogin)
    case loginIdentity(VerificationLoginIdentity)
    case logout(VerificationLogout)
    case check(VerificationCheck)
    case usage(VerificationUsage)
    case getSession(GetSession)
    case review(ReviewSession)
    case forget(ForgetSessions)
    /// The sync service's answer to a login or logout that was forwarded to it.
    case synced(SyncAnswer)

    static let types: [String: (scope: Scope, read: @Sendable (JSONValue) throws -> VerificationCommand)] = [
        VerificationLogin.type: (VerificationLogin.scope, { .login(try read($0)) }),
        VerificationLoginIdentity.type: (VerificationLoginIdentity.scope, { .loginIdentity(try read($0)) }),
        VerificationLogout.type: (VerificationLogout.scope, { .logout(try read($0)) }),
        VerificationCheck.type: (VerificationCheck.scope, { .check(try read($0)) }),
        VerificationUsage.type: (VerificationUsage.scope, { .usage(try read($0)) }),
        GetSession.type: (GetSession.scope, { .getSession(try read($0)) }),
        ReviewSession.type: (ReviewSession.scope, { .review(try read($0)) }),
        ForgetSessions.type: (ForgetSessions.scope, { .forget(try read($0)) }),
    ]

    static func read(reply data: JSONValue) throws -> VerificationCommand { .synced(try SyncAnswer(reply: data)) }

    private static func read<Message: CommandMessage>(_ data: JSONValue) throws -> Message {
        let message = try WireJSONDecoder().decode(Message.self, from: data)
        try message.validate()
        return message
    }

    /// The device whose session the command is about, if it names one.
    var deviceID: String? {
        switch self {
        case .login(let command): command.deviceId
        case .loginIdentity(let command): command.deviceId
        case .logout(let command): command.deviceId
        case .getSession(let command): command.deviceId
        case .review(let command): command.deviceId
        case .check, .usage, .forget, .synced: nil
        }
    }

    /// The forwarded command that this is the answer to.
    var answeredForward: String? {
        if case .synced(let answer) = self { answer.forward } else { nil }
    }

    /// The users that it may bring or that it erases.
    var mpids: [MPID] {
        switch self {
        case .synced(let answer): if case .found(let mpid) = answer.outcome { [mpid] } else { [] }
        case .forget(let command): command.mpids
        default: []
        }
    }
}

/// What the sync service answered. A word that this version does not know becomes `SERVER_ERROR`: a login ends whatever
/// the answer is.
public struct SyncAnswer: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case found(MPID)
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

    private struct Wire: Decodable {
        var commandId: String
        var status: String
        var reason: String?
        var message: String?
        var result: JSONValue?
    }

    init(reply data: JSONValue) throws {
        let wire = try WireJSONDecoder().decode(Wire.self, from: data)
        forward = wire.commandId
        switch Reply<JSONValue>.Status(rawValue: wire.status) {
        case .succeeded:
            let mpid = wire.result?["mpid"]?.stringValue.flatMap { MPID($0) }
            outcome = mpid.map { .found($0) } ?? .rejected(Rejection(.internalError))
        case .expired: outcome = .expired
        case .pending: outcome = .pending
        case .rejected, nil:
            let reason = wire.reason.flatMap(ReasonCode.init(rawValue:)) ?? .serverError
            outcome = .rejected(Rejection(reason, wire.message))
        }
    }
}
