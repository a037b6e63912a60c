// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Runtime
public import Storage
import WireJSON

/// What is known of a device's session. V93.
extension VerificationService {
    public static func question(_ command: VerificationCommand) -> FactsQuery? {
        if case .facts(let query) = command { query } else { nil }
    }

    public func facts(
        about id: String, of app: AppSettings, in transaction: any SQLTransaction
    ) throws -> FactsSubject {
        let store = VerificationStore(transaction: transaction)
        var subject = FactsSubject()
        for session in try store.sessions([Session.Key(app: app.id, id: DeviceID(id))]) {
            add(session, session.lastDecision, to: &subject)
        }
        if let mpid = MPID(spelled: id) {
            // What was decided about the device before is told of the device alone: it had other users.
            for session in try store.sessions(of: [mpid], app: app.id) { add(session, nil, to: &subject) }
        }
        return subject
    }

    private func add(_ session: Session, _ last: LastDecision?, to subject: inout FactsSubject) {
        subject.add(
            "session",
            [
                "deviceId": .string(session.deviceID.text), "state": .string(session.state.rawValue),
                "mpid": session.mpid.map { .string($0.description) },
                "mayFileIssues": .bool(session.mayFileIssues),
            ], last)
    }
}
