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
    /// The sync service's event: the device's user is another one, or is gone.
    case moved(DeviceID, DeviceMove)
    case facts(FactsQuery)
    /// Nobody used the device.
    case expire(ExpireSession)

    /// The device whose session the command is about, if it names one.
    var deviceID: DeviceID? {
        switch self {
        case .login(let command): command.deviceId
        case .loginIdentity(let command): command.deviceId
        case .logout(let command): command.deviceId
        case .getSession(let command): command.deviceId
        case .review(let command): command.deviceId
        case .moved(let device, _): device
        case .expire(let command): command.deviceId
        case .check, .usage, .forget, .synced, .facts: nil
        }
    }

    /// The forwarded command that this is the answer to.
    var answeredForward: CommandID? {
        if case .synced(let answer) = self { answer.forward } else { nil }
    }

    /// Whether it ends the session of the saga's device: a logout that was done, and a login that left nobody there.
    func logsOut(_ saga: LoginSaga) -> Bool {
        guard case .synced(let answer) = self, case .found(let user) = answer.outcome else { return false }
        return saga.kind == .logout || !user.isKnown
    }

    /// The users that it may bring or that it erases.
    var mpids: [MPID] {
        switch self {
        case .synced(let answer): if case .found(let user) = answer.outcome { [user.mpid] } else { [] }
        case .forget(let command): command.mpids
        default: []
        }
    }
}

/// What the sync service answered. A word that this version does not know becomes `SERVER_ERROR`: a login ends whatever
/// the answer is.
public struct SyncAnswer: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case found(Found)
        case rejected(Rejection)
        case expired
        /// Not the final answer.
        case pending
    }

    /// Whom the device has now.
    public struct Found: Sendable, Hashable {
        public var mpid: MPID
        public var isKnown: Bool
        /// `nil`: the sync service does not count moves yet.
        public var move: Int64?

        public init(_ mpid: MPID, isKnown: Bool, move: Int64?) {
            self.mpid = mpid
            self.isKnown = isKnown
            self.move = move
        }
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
            let result = reply.result
            let found = result?["mpid"]?.stringValue.flatMap { MPID($0) }.map { mpid in
                Found(mpid, isKnown: result?["isLoggedIn"] == true, move: result?["move"]?.int64Value)
            }
            outcome = found.map { .found($0) } ?? .rejected(Rejection(.internalError))
        case .rejected: outcome = .rejected(reply.rejection)
        case .expired: outcome = .expired
        case .pending: outcome = .pending
        }
    }
}
