// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage

@testable import Runtime
@testable import Verification

/// Coming and going: docs/verification.md "Results of a login" and "Sessions".
extension NaiveSessions {
    mutating func logIn(_ login: RandomCommands.Login) -> Answer {
        var who = who(login)
        var problem: ReasonCode?
        var key: VerificationSettings.Key?
        let isChecked =
            switch (login.method, who) {
            case (.authToken, .anonymous), (.identityToken, .anonymous(.noIdentifier)): false
            case (.identityToken, .unreadable): settings.mode != .off && fault(login) != .invalidIdentityToken
            default: settings.mode != .off
            }
        if isChecked {
            switch vouching(login) {
            case .success(let maker): key = maker
            case .failure(let rejection): problem = rejection.reason
            }
        }
        if case .unreadable = who { (problem, key) = (problem ?? fault(login), nil) }
        count(login, who, problem, key)
        if case .unreadable = who, settings.mode != .enforce { return .rejected(problem ?? .internalError, with: nil) }

        look(at: login.device)
        var device = device(login.device)
        let isFirst = device.turns.isEmpty
        let before = device
        device.sent += 1
        if settings.mode == .enforce, let problem {
            // V29, V38.
            device.turns.append(Turn(number: device.sent, kind: .refused, state: .unverified, mayFileIssues: false))
            devices[self.key(login.device)] = device
            if isFirst || before.state != .unverified || before.mayFileIssues { tell(login.device, .refusal) }
            return .rejected(problem, with: Self.refused)
        }
        // V16, V26, V30.
        if case .user(let id, let email, let name) = who, settings.mode == .enforce, login.method == .authToken {
            who = .user(
                id: settings.signedFields == .email ? nil : id, email: settings.signedFields == .userId ? nil : email,
                name: name)
        }
        switch who {
        case .anonymous(let reason) where device.hasLogin: return logOut(login.device, because: reason)
        case .anonymous(let reason):
            device.turns.append(Turn(number: device.sent, kind: .anonymous))
            devices[self.key(login.device)] = device
            if isFirst || before.state != .anonymous || !before.mayFileIssues { tell(login.device, .login) }
            return .succeeded(VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason))
        case .unreadable: return .noted
        case .user(let id, let email, let name):
            device.hasLogin = true
            devices[self.key(login.device)] = device
            var turn = Turn(number: device.sent, kind: .login)
            (turn.state, turn.right) =
                settings.mode == .off
                ? (.unchecked, Right(since: context.now))
                : key.map {
                    (.verified, Right(secret: $0.secret, method: login.method, key: $0.shownID, since: context.now))
                } ?? (.unverified, Right(since: context.now))
            let request = SyncRequest(
                deviceId: login.device,
                knownIdentities: ["customerid": id, "email": email].compactMapValues { $0.map { $0 as String? } },
                name: name, clearAnonymousUser: settings.clearAnonymousUserOnLogin ? true : nil)
            forward(
                request, turn,
                Waiting(
                    command: context.command, device: self.key(login.device), turn: turn,
                    userID: id, email: email))
            return .pending
        }
    }

    /// Also what an anonymous login is on a device with somebody on it (V36).
    mutating func logOut(_ id: DeviceID, because reason: AnonymousReason?) -> Answer {
        var device = device(id)
        device.sent += 1
        devices[key(id)] = device
        let turn = Turn(number: device.sent, kind: .logout)
        forward(
            SyncRequest(deviceId: id, knownIdentities: [:]), turn,
            Waiting(command: context.command, device: key(id), turn: turn, reason: reason))
        return .pending
    }

    private mutating func forward(_ request: SyncRequest, _ turn: Turn, _ begun: Waiting) {
        let id = context.forwardID(0)
        waiting[id] = begun
        // V35.
        sent[id] = Sent(
            request: request, isLogin: turn.kind == .login, expiry: turn.kind == .login ? context.expiry : nil)
    }

    /// V52.
    private mutating func count(
        _ login: RandomCommands.Login, _ who: Who, _ problem: ReasonCode?, _ key: VerificationSettings.Key?
    ) {
        if settings.mode == .off { return }
        if case .anonymous = who, problem == nil { return }
        var counts = counts[context.app.id] ?? []
        let place = counts.firstIndex { $0.method == login.method && $0.reason == problem && $0.keyId == key?.shownID }
        if let place {
            counts[place].count += 1
            counts[place].lastUsed = max(counts[place].lastUsed, context.now)
        } else {
            counts.append(
                VerificationUsageResult.Count(
                    method: login.method, keyId: key?.shownID, reason: problem, count: 1, lastUsed: context.now))
        }
        self.counts[context.app.id] = counts
        guard let problem else {
            told.append(
                AnyHashable(
                    VerificationVerified(deviceId: login.device, method: login.method, keyId: key?.shownID)))
            return
        }
        told.append(
            settings.mode == .report
                ? AnyHashable(UnverifiedObserved(deviceId: login.device, method: login.method, reason: problem))
                : AnyHashable(VerificationFailed(deviceId: login.device, method: login.method, reason: problem)))
    }
}
