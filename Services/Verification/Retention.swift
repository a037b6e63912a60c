// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

extension Session {
    /// Since when nothing was heard of the device.
    var quietSince: Int64 { max(seenAt, move, heard?.number ?? .min) }

    /// Whether nobody is logged in, as far as this service and the sync service know.
    var isNobodys: Bool { mpid == nil && !hasLogin && heard == nil }
}

extension VerificationDecider {
    /// V200. The device is anonymous from then on, as one that was never heard of.
    func expire(_ command: ExpireSession) -> Decision {
        guard let session = state.session(app: context.app.id, deviceID: command.deviceId), session.isNobodys,
            session.quietSince == command.lastSeen.milliseconds, let period = context.app.retention.session,
            context.hasPassed(period, since: session.quietSince), !isBusy(command.deviceId)
        else { return Decision(.noted) }
        var decision = Decision(.noted, changes: [.expired(session)])
        if session.state != .anonymous || !session.mayFileIssues {
            decision.events.append(
                SessionChanged(
                    deviceId: session.deviceID, state: .anonymous, mayFileIssues: true, cause: .ended,
                    reason: .sessionForgotten))
        }
        decision.events.append(SessionExpired(deviceId: session.deviceID, lastSeen: command.lastSeen))
        return decision
    }
}

extension VerificationStore {
    /// Sessions of all apps whose days are over.
    func dueRetention(now: Timestamp, limit: Int, apps: AppDirectory) throws -> [DueCommand] {
        var due: [DueCommand] = []
        for app in apps.ids.compactMap({ apps[$0] }) where due.count < limit {
            guard let period = app.retention.session else { continue }
            due += try RetentionWalk(app.id, "session").due(now: now, in: transaction) { after in
                let rows = try Session.table.find(
                    "app = $1 AND device_id > $2 ORDER BY device_id LIMIT $3",
                    [.text(app.id.text), .text(after), SQLValue(limit)], in: transaction)
                return RetentionWalk.Step(
                    last: rows.count < limit ? nil : rows.last?.deviceID.text,
                    found: rows.filter { $0.isNobodys && $0.quietSince <= now.milliseconds - period }.map { session in
                        RetentionWalk.Found(
                            key: session.deviceID.text, end: session.quietSince + period,
                            command: ExpireSession(
                                deviceId: session.deviceID, lastSeen: Timestamp(milliseconds: session.quietSince)))
                    })
            }
        }
        return due
    }
}
