// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// docs/verification.md "Erasing".
extension VerificationDecider {
    /// Sessions of these users go, and logins of theirs that are on their way end. A device with other logins on their
    /// way keeps a row, so that these are shown in their order; it says nothing of who was there (V53).
    func forget(_ command: ForgetSessions) -> Decision {
        let app = context.app
        let userIDs = Set(command.userIds.map { PersonDigest(of: $0.text, .customerID, app.sync) })
        let emails = Set(command.emails.map { PersonDigest(of: $0.text, .email, app.sync) })
        let ended = state.sagas(app: app.id) { saga in
            saga.userID.map(userIDs.contains) == true || saga.email.map(emails.contains) == true
        }
        let sessions = state.sessions(app: app.id, of: Set(command.mpids))
        var decision = Decision(
            .succeeded(
                ErasureCertificate(
                    requestId: context.command.id, erasedAt: context.now, completedAt: context.now,
                    subject: .init(mpids: command.mpids), done: .init(verification: .init(sessions: sessions.count)),
                    remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets))))
        decision.changes = ended.map { .ended($0) }
        decision.settlements = ended.map { Settlement($0.command, .rejected(Self.erased)) }
        for session in sessions {
            var session = session
            let isKept = isBusy(session.deviceID, but: ended)
            decision.events += session.forgetUser(isKept: isKept)
            decision.changes.append(isKept ? .session(session) : .removed(session))
        }
        // What was heard while only the erased logins were on their way is true now (V73). Also as it was: whoever decides at
        // the same time that the device has no login on its way any more, or what to make of an event of it, meets this
        // here.
        let others = Set(ended.map(\.deviceID)).subtracting(sessions.map(\.deviceID)).sorted()
        for device in others {
            guard var session = state.session(app: app.id, deviceID: device) else { continue }
            if !isBusy(device, but: ended) { decision.events += session.followHeard() }
            decision.changes.append(.session(session))
        }
        if !command.mpids.isEmpty {
            decision.changes.append(.erased(app: app.id, command.mpids))
            decision.events.append(SessionsErased(mpids: command.mpids))
        }
        return decision
    }
}
