// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Storage
import WireJSON

@testable import Runtime
@testable import Verification

/// Sessions as docs/verification.md tells of them: a device is all that happened on it, and who uses it is read from that.
/// Knows from each login's maker what its token is worth.
struct NaiveSessions {
    enum Answer: Hashable {
        case succeeded(AnyHashable)
        case rejected(ReasonCode, with: VerificationResult?)
        case expired, pending, noted
    }

    /// What lets somebody do something.
    struct Right {
        /// The secret of the token that vouched; `nil` where nobody did.
        var secret: SymmetricKey?
        var method: VerificationMethod?
        var key: KeyID?
        /// `nil`: it does not age.
        var since: Timestamp?
    }

    /// What came of one login or logout.
    struct Turn {
        enum Kind { case refused, anonymous, logout, login }
        var number: Int
        var kind: Kind
        var state = VerificationState.anonymous
        var mayFileIssues = true
        var user: MPID?
        var right: Right?

        /// What it rested on is gone (V42 to V44).
        mutating func end(mayStay: Bool) {
            (state, mayFileIssues, right) = (.unverified, mayStay, mayStay ? Right() : nil)
        }
    }

    struct Device {
        var turns: [Turn] = []
        /// Logins and logouts that were sent.
        var sent = 0
        var hasLogin = false
        /// How far the sync service's moves were followed, and what was heard beyond.
        var followed: Int64 = 0
        var news: DeviceMove?

        var last: Turn? { turns.max { $0.number < $1.number } }
        /// The sync service has done it.
        var moved: Turn? { turns.filter { $0.kind == .login || $0.kind == .logout }.max { $0.number < $1.number } }
        var state: VerificationState { last?.state ?? .anonymous }
        var mayFileIssues: Bool { last?.mayFileIssues ?? true }
        var user: MPID? { moved?.user }

        func looks(like turn: Turn) -> Bool { state == turn.state && mayFileIssues == turn.mayFileIssues }
    }

    struct Waiting {
        var command: CommandKey
        var device: Session.Key
        /// What it becomes when the sync service has done it.
        var turn: Turn
        var reason: AnonymousReason?
    }

    struct Sent: Hashable {
        var request: SyncRequest
        var type: String
        var expiry: Timestamp?
    }

    var devices: [Session.Key: Device] = [:]
    var waiting: [CommandID: Waiting] = [:]
    var erased: Set<Scoped<MPID>> = []
    var counts: [AppID: [VerificationUsageResult.Count]] = [:]

    // What the command at hand comes to.
    var told: [any EventMessage] = []
    var sent: [CommandID: Sent] = [:]
    var settled: [CommandKey: Answer] = [:]
    private(set) var context = Fixture.context(Fixture.settings())

    var settings: VerificationSettings { context.app.verification }

    mutating func run(_ step: RandomCommands.Step) -> Answer {
        (told, sent, settled, context) = ([], [:], [:], step.context)
        switch step.command {
        case .login, .loginIdentity: return step.login.map { logIn($0) } ?? .noted
        case .check: return step.login.map { check($0) } ?? .noted
        case .logout(let command):
            look(at: command.deviceId)
            return logOut(command.deviceId, because: nil)
        case .getSession(let command):
            look(at: command.deviceId)
            return .succeeded(session(command.deviceId))
        case .review(let command):
            look(at: command.deviceId)
            return .noted
        case .usage:
            // One order for everybody: by method, reason and key.
            let counts = (counts[context.app.id] ?? []).sorted { left, right in
                let names = [left, right].map { [$0.method.rawValue, $0.reason?.rawValue ?? "", $0.keyId?.text ?? ""] }
                return names[0].lexicographicallyPrecedes(names[1])
            }
            return .succeeded(VerificationUsageResult(counts: counts))
        case .forget(let command): return forget(command)
        case .synced(let answer): return take(answer)
        case .facts, .expire: return .noted
        case .moved(let id, let move):
            hear(move, of: key(id))
            return .noted
        }
    }

    // MARK: Devices

    func key(_ device: DeviceID) -> Session.Key { Session.Key(app: context.app.id, id: device) }

    func device(_ id: DeviceID) -> Device { devices[key(id)] ?? Device() }

    private func session(_ id: DeviceID) -> SessionResult {
        let device = device(id)
        let right = device.state == .verified ? device.last?.right : nil
        return SessionResult(
            deviceId: id, state: device.state, mayFileIssues: device.mayFileIssues, hasLogin: device.hasLogin,
            mpid: device.user, keyId: right?.key, verifiedAt: right?.since)
    }

    /// V42 to V44: why this does not stand any longer.
    func reasonToEnd(_ right: Right) -> SessionChanged.Reason? {
        if let lifetime = settings.sessionLifetime, let since = right.since,
            context.now.milliseconds - since.milliseconds >= lifetime
        {
            return .sessionExpired
        }
        guard let secret = right.secret else { return settings.mode == .enforce ? .verificationRequired : nil }
        return right.method.flatMap { liveKey(of: secret, $0) } == nil ? .keyGone : nil
    }

    /// V42, V48, V56: what counts is the secret, not the key's name.
    func liveKey(of secret: SymmetricKey, _ method: VerificationMethod) -> VerificationSettings.Key? {
        let keys = method == .authToken ? settings.keys : settings.identityTokenSecrets
        return keys.first { key in key.secret == secret && key.retireAt.map { $0 > context.now } != false }
    }

    /// V46, V47: whatever reads a session applies the settings of now.
    mutating func look(at id: DeviceID) {
        var device = device(id)
        guard let last = device.last, let right = last.right, let reason = reasonToEnd(right),
            let place = device.turns.firstIndex(where: { $0.number == last.number })
        else { return }
        device.turns[place].end(mayStay: settings.mode != .enforce)
        devices[key(id)] = device
        if !device.looks(like: last) { tell(id, .ended, reason, device.user) }
    }

    /// Tells what the device's session is now.
    mutating func tell(
        _ id: DeviceID, _ cause: SessionChanged.Cause, _ reason: SessionChanged.Reason? = nil, _ mpid: MPID? = nil
    ) {
        let device = device(id)
        told.append(
            SessionChanged(
                deviceId: id, state: device.state, mayFileIssues: device.mayFileIssues, cause: cause, reason: reason,
                mpid: mpid))
    }
}

extension NaiveSessions.Answer {
    /// What the product answers, to be compared.
    init(_ outcome: Outcome) throws {
        switch outcome {
        case .succeeded(let result): self = .succeeded(AnyHashable(result))
        case .rejected(let rejection):
            let carried = try rejection.result.map {
                try WireJSONDecoder().decode(VerificationResult.self, from: $0.bytes)
            }
            self = .rejected(rejection.reason, with: carried)
        case .expired: self = .expired
        case .pending: self = .pending
        case .begun, .noted: self = .noted
        }
    }
}

extension NaiveSessions.Sent {
    init(_ forward: Forward) {
        let command = forward.command as? any SyncRequestMessage
        self.init(
            request: command?.request ?? SyncRequest(deviceId: "", knownIdentities: [:]),
            type: Swift.type(of: forward.command).type, expiry: forward.expiry)
    }
}
