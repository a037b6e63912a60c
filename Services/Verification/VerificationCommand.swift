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

    /// The device whose session the command is about, if it names one.
    var deviceID: DeviceID? {
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
    var answeredForward: CommandID? {
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
    public var forward: CommandID
    public var outcome: Outcome

    public init(forward: CommandID, outcome: Outcome) {
        self.forward = forward
        self.outcome = outcome
    }

    init(_ reply: ReceivedReply) {
        forward = reply.commandId
        switch reply.status {
        case .succeeded:
            let mpid = reply.result?["mpid"]?.stringValue.flatMap { MPID($0) }
            outcome = mpid.map { .found($0) } ?? .rejected(Rejection(.internalError))
        case .rejected: outcome = .rejected(reply.rejection)
        case .expired: outcome = .expired
        case .pending: outcome = .pending
        }
    }
}
