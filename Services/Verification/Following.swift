// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// A device's user, as the sync service says (docs/verification.md "The device's user").
public struct DeviceMove: Sendable, Hashable {
    public enum User: String, Sendable, Hashable { case known, anonymous, erased }

    /// Of the moves of a device the one with the greatest number is true.
    public var number: Int64
    public var mpid: MPID
    public var user: User
    /// Support has taken the user apart (`sync.detach`).
    public var isDetached: Bool

    public init(number: Int64, mpid: MPID, user: User, isDetached: Bool = false) {
        self.number = number
        self.mpid = mpid
        self.user = user
        self.isDetached = isDetached
    }
}

extension DeviceMove {
    init(_ event: CurrentUserChanged) {
        self.init(
            number: event.move, mpid: event.mpid, user: event.isLoggedIn ? .known : .anonymous,
            isDetached: event.cause == .detach)
    }

    init(_ event: CurrentUserErased) {
        self.init(number: event.move, mpid: event.mpid, user: .erased)
    }
}

extension VerificationDecider {
    /// What the sync service tells of a device without a session is nobody's business here, and nothing is ever sent
    /// because of it (V71). While logins or logouts of the device are on their way, it waits for their answers: most likely
    /// they are what it tells of, and they say more (V73).
    func follow(_ deviceID: DeviceID, _ move: DeviceMove) -> Decision {
        var decision = Decision(.noted)
        guard var session = state.session(app: context.app.id, deviceID: deviceID), move.number > session.move,
            move.number > session.heard?.number ?? 0
        else { return decision }
        session.heard = move
        if !isBusy(deviceID) { decision.events = session.followHeard() }
        decision.changes.append(.session(session))
        return decision
    }

    /// Whether the sync service has yet to answer logins or logouts of the device.
    /// - Parameter ended: the one that ends with this decision.
    func isBusy(_ deviceID: DeviceID, but ended: LoginSaga? = nil) -> Bool {
        state.sagas(app: context.app.id, of: deviceID).contains { $0.forwardID != ended?.forwardID }
    }
}

extension Session {
    /// What was heard while logins were on their way, when the last of them is answered.
    mutating func followHeard() -> [any EventMessage] {
        defer { heard = nil }
        return heard.map { follow($0) } ?? []
    }

    /// Ends when its user is no longer the device's, or known no longer (V72, V76, V77). An erased one's session ends by
    /// `verification.forget`, which the sync service sends too. A refusal that came after the user stands (V38).
    mutating func follow(_ now: DeviceMove) -> [any EventMessage] {
        guard now.number > move else { return [] }
        move = now.number
        hasLogin = now.user == .known || now.user == .erased && now.mpid == mpid
        guard let old = mpid, old != now.mpid || now.user == .anonymous || now.isDetached else { return [] }
        mpid = nil
        if shown <= moved { (state, mayFileIssues, standing) = (.anonymous, true, nil) }
        return [
            SessionChanged(
                deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: .ended,
                reason: now.isDetached ? .detached : .userChanged, mpid: old)
        ]
    }
}
