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
        case .found(let mpid): settled[begun.command] = finish(begun, mpid)
        }
        waiting[answer.forward] = nil
        return .noted
    }

    private mutating func finish(_ begun: Waiting, _ mpid: MPID) -> Answer {
        let isErased = erased.contains(Scoped(app: context.app.id, id: mpid))
        let id = begun.device.id
        let before = device(id)
        let isOvertaken = (before.moved?.number ?? 0) > begun.turn.number
        if begun.turn.kind == .logout {
            if !isOvertaken {
                devices[begun.device, default: Device()].turns.append(begun.turn)
                // Nothing came after it.
                if before.sent == begun.turn.number { devices[begun.device]?.hasLogin = false }
                if before.turns.isEmpty || before.user != nil || before.state != device(id).state {
                    tell(id, .logout, nil, before.user)
                }
            }
            return .succeeded(
                VerificationResult(
                    state: .anonymous, mayFileIssues: true, mpid: isErased ? nil : mpid, anonymousReason: begun.reason))
        }
        if isErased { return .rejected(.profileErased, with: nil) }  // V54
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
        let isFolded = context.app.sync.foldedIdentities.contains(.email)
        func folded(_ email: String) -> String { isFolded ? email.lowercased() : email }
        let userIDs = command.userIds.map(\.text)
        let emails = command.emails.map { folded($0.text) }
        let isBusy = Set(waiting.values.map(\.device))
        for (id, begun) in waiting where begun.command.app == app {
            guard
                begun.userID.map(userIDs.contains) == true || begun.email.map({ emails.contains(folded($0)) }) == true
            else { continue }
            waiting[id] = nil
            settled[begun.command] = .rejected(.profileErased, with: nil)
        }
        let gone = devices.filter { $0.key.app == app && $0.value.user.map(command.mpids.contains) == true }
        for (key, device) in gone.sorted(by: { $0.key < $1.key }) {
            if isBusy.contains(key) {
                // A refusal that came after the user still stands.
                let turns = device.turns.map { turn in
                    turn.kind == .login ? Turn(number: turn.number, kind: .logout) : turn
                }
                devices[key]?.turns = turns
            } else {
                devices[key] = nil
            }
            tell(key.id, .ended, .erased, device.user)
        }
        if !command.mpids.isEmpty {
            erased.formUnion(command.mpids.map { Scoped(app: app, id: $0) })
            told.append(SessionsErased(mpids: command.mpids))
        }
        return .succeeded(ForgottenSessionsResult(sessionsRemoved: gone.count))
    }
}
