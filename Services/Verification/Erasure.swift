// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// docs/verification.md "Erasing".
extension VerificationDecider {
    /// Sessions of these users go. A login of theirs that is on its way is the sync service's to answer: if it was there
    /// before the erasure, it comes back with an MPID that is remembered here (V54), and else with a new one. A device
    /// with logins on their way keeps a row, so that these are shown in their order; it says nothing of who was there
    /// (V53).
    func forget(_ command: ForgetSessions) -> Decision {
        let app = context.app
        let sessions = state.sessions(app: app.id, of: Set(command.mpids))
        var decision = Decision(
            .succeeded(
                ErasureCertificate(
                    requestId: context.command.id, erasedAt: context.now, completedAt: context.now,
                    subject: .init(mpids: command.mpids), done: .init(verification: .init(sessions: sessions.count)),
                    remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets))))
        for session in sessions {
            var session = session
            let isKept = isBusy(session.deviceID)
            decision.events += session.forgetUser(isKept: isKept)
            decision.changes.append(isKept ? .session(session) : .removed(session))
        }
        if !command.mpids.isEmpty {
            decision.changes.append(.erased(app: app.id, command.mpids))
            decision.events.append(SessionsErased(mpids: command.mpids))
        }
        return decision
    }
}
