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
        var signer: VerificationSettings.Key?
        let isChecked =
            switch (login.method, who) {
            case (.authToken, .anonymous), (.identityToken, .anonymous(.noIdentifier)): false
            case (.identityToken, .unreadable): settings.mode != .off && fault(login) != .invalidIdentityToken
            default: settings.mode != .off
            }
        if isChecked {
            switch vouching(login) {
            case .success(let maker):
                key = maker
                signer = login.method == .identityToken ? maker : nil
            case .failure(let rejection): problem = rejection.reason
            }
        }
        if case .unreadable = who { (problem, key) = (problem ?? fault(login), nil) }
        count(login, who, problem, key, signer)
        if case .unreadable = who, settings.mode != .enforce { return .rejected(problem ?? .internalError, with: nil) }

        look(at: login.device)
        if settings.mode == .enforce, let problem {
            // V29, V38.
            show(.refused, .unverified, mayFileIssues: false, on: login.device, .refusal)
            return .rejected(problem, with: Self.refused)
        }
        // V16, V26, V30.
        if case .user(let id, let email, let name) = who, settings.mode == .enforce, login.method == .authToken {
            who = .user(
                id: settings.signedFields == .email ? nil : id, email: settings.signedFields == .userId ? nil : email,
                name: name)
        }
        switch who {
        case .anonymous(let reason) where device(login.device).hasLogin: return logOut(login.device, because: reason)
        case .anonymous(let reason):
            show(.anonymous, .anonymous, mayFileIssues: true, on: login.device, .login)
            let turn = Turn(number: device(login.device).sent, kind: .anonymous)
            forward(
                SyncRequest(deviceId: login.device, knownIdentities: [:]),
                Waiting(command: context.command, device: self.key(login.device), turn: turn, reason: reason))
            return .pending
        case .unreadable: return .noted
        case .user(let id, let email, let name):
            devices[self.key(login.device), default: Device()].hasLogin = true
            var turn = Turn(number: nextNumber(on: login.device), kind: .login)
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
                request,
                Waiting(command: context.command, device: self.key(login.device), turn: turn))
            return .pending
        }
    }

    /// Also what an anonymous login is on a device with somebody on it (V36).
    mutating func logOut(_ id: DeviceID, because reason: AnonymousReason?) -> Answer {
        let turn = Turn(number: nextNumber(on: id), kind: .logout)
        forward(
            SyncRequest(deviceId: id, knownIdentities: [:]),
            Waiting(command: context.command, device: key(id), turn: turn, reason: reason))
        return .pending
    }

    private mutating func nextNumber(on id: DeviceID) -> Int {
        devices[key(id), default: Device()].sent += 1
        return device(id).sent
    }

    /// What the sync service is not asked about shows at once (V36).
    private mutating func show(
        _ kind: Turn.Kind, _ state: VerificationState, mayFileIssues: Bool, on id: DeviceID,
        _ cause: SessionChanged.Cause
    ) {
        let before = device(id)
        let turn = Turn(number: nextNumber(on: id), kind: kind, state: state, mayFileIssues: mayFileIssues)
        devices[key(id)]?.turns.append(turn)
        if before.turns.isEmpty || !before.looks(like: turn) { tell(id, cause) }
    }

    private mutating func forward(_ request: SyncRequest, _ begun: Waiting) {
        let id = context.forwardID(0)
        waiting[id] = begun
        let type =
            switch begun.turn.kind {
            case .login: LogInUser.type
            case .anonymous: IdentifyUser.type
            default: LogOutUser.type
            }
        // V35.
        sent[id] = Sent(request: request, type: type, expiry: type == LogOutUser.type ? nil : context.expiry)
    }

    /// V52.
    private mutating func count(
        _ login: RandomCommands.Login, _ who: Who, _ problem: ReasonCode?, _ key: VerificationSettings.Key?,
        _ signer: VerificationSettings.Key?
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
        let event: any EventMessage =
            switch (problem, settings.mode) {
            case (nil, _): VerificationVerified(deviceId: login.device, method: login.method, keyId: key?.shownID)
            case (let problem?, .report):
                UnverifiedObserved(
                    deviceId: login.device, method: login.method, reason: problem, keyId: signer?.shownID)
            case (let problem?, _):
                VerificationFailed(
                    deviceId: login.device, method: login.method, reason: problem, keyId: signer?.shownID)
            }
        told.append(event)
    }
}
