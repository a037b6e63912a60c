// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage

@testable import Runtime
@testable import Verification

/// What the sync service answers and whom it erases: docs/verification.md "Sessions" and "Erasing".
extension NaiveSessions {
    mutating func take(_ answer: SyncAnswer) -> Answer {
        guard let begun = waiting[answer.forward], begun.command.app == context.app.id else { return .noted }
        switch answer.outcome {
        case .pending: return .noted
        case .expired: settled[begun.command] = .expired
        case .rejected(let rejection): settled[begun.command] = .rejected(rejection.reason, with: nil)  // V32
        case .found(let user): settled[begun.command] = finish(begun, user)
        }
        waiting[answer.forward] = nil
        catchUp(begun.device)
        return .noted
    }

    /// V71: only what is news counts, and only of devices that have a session.
    mutating func hear(_ news: DeviceMove, of key: Session.Key) {
        guard let device = devices[key], max(device.followed, device.news?.number ?? 0) < news.number else { return }
        devices[key]?.news = news
        catchUp(key)
    }

    /// V73: news waits for what is on its way.
    private mutating func catchUp(_ key: Session.Key) {
        guard var device = devices[key], let news = device.news, !waiting.values.contains(where: { $0.device == key })
        else { return }
        let user = device.user
        device.news = nil
        defer { devices[key] = device }
        if news.number <= device.followed { return }
        device.followed = news.number
        switch news.user {
        case .known: device.hasLogin = true
        case .anonymous: device.hasLogin = false
        // Their session is ended by whoever erases them.
        case .erased: if user != news.mpid { device.hasLogin = false }
        }
        guard let user, news.user == .anonymous || news.mpid != user || news.isDetached else { return }
        // V72.
        for place in device.turns.indices where device.turns[place].kind == .login {
            device.turns[place] = Turn(number: device.turns[place].number, kind: .logout)
        }
        devices[key] = device
        tell(key.id, .ended, news.isDetached ? .detached : .userChanged, user)
    }

    private mutating func finish(_ begun: Waiting, _ user: SyncAnswer.Found) -> Answer {
        let mpid = user.mpid
        let isErased = erased.contains(Scoped(app: context.app.id, id: mpid))
        let id = begun.device.id
        let before = device(id)
        let isLate = user.move.map { $0 < before.followed } == true
        let isOvertaken = isLate || (before.moved?.number ?? 0) > begun.turn.number
        if isErased, begun.turn.kind == .login { return .rejected(.profileErased, with: nil) }  // V54
        devices[begun.device, default: Device()].followed = max(before.followed, user.move ?? 0)
        if begun.turn.kind == .anonymous {
            if user.isKnown, !isLate { devices[begun.device]?.hasLogin = true }
            return .succeeded(
                VerificationResult(
                    state: .anonymous, mayFileIssues: true, mpid: isErased || user.isKnown ? nil : mpid,
                    anonymousReason: begun.reason))
        }
        // V74: whoever is not known has not logged in.
        if begun.turn.kind == .logout || !user.isKnown {
            if !isOvertaken {
                devices[begun.device]?.turns.append(Turn(number: begun.turn.number, kind: .logout))
                // Whoever is still to be logged in keeps it; a refused login asked nobody.
                let coming = waiting.values.contains {
                    $0.device == begun.device && $0.turn.kind == .login && $0.turn.number > begun.turn.number
                }
                devices[begun.device]?.hasLogin = coming
                if before.turns.isEmpty || before.user != nil || before.state != device(id).state {
                    tell(id, .logout, nil, before.user)
                }
            }
            return .succeeded(
                VerificationResult(
                    state: .anonymous, mayFileIssues: true, mpid: isErased ? nil : mpid, anonymousReason: begun.reason))
        }
        var turn = begun.turn
        turn.user = mpid
        var refusal: ReasonCode?
        // V46.
        if let right = turn.right, let reason = reasonToEnd(right) {
            turn.end(mayStay: settings.mode != .enforce)
            if !turn.mayFileIssues {
                refusal = reason == .verificationRequired ? .authTokenNotProvided : .invalidAuthToken
            }
        }
        if !isOvertaken {
            devices[begun.device, default: Device()].turns.append(turn)
            let after = device(id)
            if let old = before.user, old != mpid {
                told.append(
                    SessionChanged(deviceId: id, state: .anonymous, mayFileIssues: true, cause: .logout, mpid: old))
            }
            if before.user != mpid || before.state != after.state || before.mayFileIssues != after.mayFileIssues {
                tell(id, .login, nil, mpid)
            }
        }
        if let refusal { return .rejected(refusal, with: Self.refused) }
        return .succeeded(
            VerificationResult(
                state: turn.state, mayFileIssues: turn.mayFileIssues,
                keyId: turn.state == .verified ? turn.right?.key : nil, mpid: mpid))
    }

    // MARK: Erasing

    mutating func forget(_ command: ForgetSessions) -> Answer {
        let app = context.app.id
        let isBusy = Set(waiting.values.map(\.device))
        let gone = devices.filter { $0.key.app == app && $0.value.user.map(command.mpids.contains) == true }
        for (key, device) in gone.sorted(by: { $0.key < $1.key }) {
            if isBusy.contains(key) {
                // A refusal that came after the user still stands.
                let turns = device.turns.map { turn in
                    turn.kind == .login ? Turn(number: turn.number, kind: .logout) : turn
                }
                devices[key]?.turns = turns
                if device.news?.mpid == device.user { devices[key]?.news?.user = .erased }
            } else {
                devices[key] = nil
            }
            tell(key.id, .ended, .erased, device.user)
        }
        if !command.mpids.isEmpty {
            erased.formUnion(command.mpids.map { Scoped(app: app, id: $0) })
            told.append(SessionsErased(mpids: command.mpids))
        }
        return .succeeded(
            ErasureCertificate(
                requestId: context.command.id, erasedAt: context.now, completedAt: context.now,
                subject: .init(mpids: command.mpids), done: .init(verification: .init(sessions: gone.count)),
                remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets)))
    }
}
