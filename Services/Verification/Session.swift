// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// Who uses a device, as far as this service has said (docs/verification.md "Sessions").
public struct Session: Sendable, Hashable {
    public var app: AppID
    public var deviceID: DeviceID
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// The user whose login was announced and whose logout was not. Stays while a refused login makes the session
    /// `unverified`: nobody else has come.
    public var mpid: MPID?
    /// What ``mayFileIssues`` rests on. `nil` for anonymous users, who always may, and after a refusal.
    public var standing: Standing?
    /// How many logins and logouts the device has sent: the number of the last one.
    public var number: Int64
    /// The number of the one whose state the session shows. What comes back for a lower number has been overtaken.
    public var shown: Int64
    /// The number of the last login or logout that the sync service has done: ``mpid`` comes from it (V37).
    public var moved: Int64
    /// A login was forwarded to the sync service, or the device has a known user there, as far as is known.
    public var hasLogin: Bool
    /// The greatest number of a move of the device that the session follows (V71).
    public var move: Int64
    /// A later one, until the logins and logouts on their way are answered (V73).
    public var heard: DeviceMove?
    /// When the device sent its last login or logout, in milliseconds since 1970.
    public var seenAt: Int64 = 0
    public var lastDecision = LastDecision()

    public init(
        app: AppID, deviceID: DeviceID, state: VerificationState = .anonymous, mayFileIssues: Bool = true,
        mpid: MPID? = nil, standing: Standing? = nil, number: Int64 = 0, shown: Int64 = 0, moved: Int64 = 0,
        hasLogin: Bool = false, move: Int64 = 0, heard: DeviceMove? = nil
    ) {
        self.app = app
        self.deviceID = deviceID
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.mpid = mpid
        self.standing = standing
        self.number = number
        self.shown = shown
        self.moved = moved
        self.hasLogin = hasLogin
        self.move = move
        self.heard = heard
    }
}

// MARK: Transitions

/// What can happen to a session. Each returns the events that tell of it: none when nothing is different.
extension Session {
    /// Ends what the session's standing allowed when that is gone by the settings of now (V47).
    mutating func review(_ settings: VerificationSettings, at now: Timestamp) -> [any EventMessage] {
        guard let standing, let reason = settings.reasonToEnd(standing, at: now) else { return [] }
        let mayStay = settings.mode != .enforce
        let isNews = state != .unverified || mayFileIssues != mayStay
        (state, mayFileIssues) = (.unverified, mayStay)
        self.standing = mayStay ? Standing(.unverified) : nil
        guard isNews else { return [] }
        return [
            SessionChanged(
                deviceId: deviceID, state: state, mayFileIssues: mayStay, cause: .ended, reason: reason, mpid: mpid)
        ]
    }

    /// A command that is not forwarded shows its state: an anonymous login where nobody is, or a refused one (V36).
    mutating func show(
        _ state: VerificationState, mayFileIssues: Bool, cause: SessionChanged.Cause
    ) -> [any EventMessage] {
        let isNews = shown == 0 || self.state != state || self.mayFileIssues != mayFileIssues
        (self.state, self.mayFileIssues, standing, shown) = (state, mayFileIssues, nil, number)
        guard isNews else { return [] }
        return [SessionChanged(deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: cause)]
    }

    /// The sync service has done logout `number`: the one who was there is gone (V33).
    /// - Parameter hasLater: a later login is on its way: the next logout has to be forwarded again.
    mutating func logOut(number: Int64, hasLater: Bool) -> [any EventMessage] {
        guard number > moved else { return [] }
        let (before, isFirst) = (self, shown == 0)
        (mpid, moved, hasLogin) = (nil, number, hasLater)
        if number > shown { (state, mayFileIssues, standing, shown) = (.anonymous, true, nil, number) }
        guard isFirst || before.mpid != nil || before.state != state else { return [] }
        return [
            SessionChanged(
                deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: .logout, mpid: before.mpid)
        ]
    }

    /// The sync service has found the user of login `number`: whoever was there goes first. A refused login that came
    /// after it keeps the session `unverified`, but the user is there (V34, V39).
    mutating func logIn(
        _ user: MPID, number: Int64, state: VerificationState, mayFileIssues: Bool, standing: Standing?
    ) -> [any EventMessage] {
        guard number > moved else { return [] }
        let before = self
        (mpid, moved) = (user, number)
        if number > shown {
            (self.state, self.mayFileIssues, self.standing, shown) = (state, mayFileIssues, standing, number)
        }
        var events: [any EventMessage] = []
        if let old = before.mpid, old != user {
            events.append(
                SessionChanged(
                    deviceId: deviceID, state: .anonymous, mayFileIssues: true, cause: .logout, mpid: old))
        }
        if before.mpid != user || before.state != self.state || before.mayFileIssues != self.mayFileIssues {
            events.append(
                SessionChanged(
                    deviceId: deviceID, state: self.state, mayFileIssues: self.mayFileIssues, cause: .login, mpid: user)
            )
        }
        return events
    }

    /// The user was erased. What remains, while other logins of the device are on their way, says nothing of them.
    /// - Parameter isKept: there are such logins. A refusal that came after the user still stands then.
    mutating func forgetUser(isKept: Bool) -> [any EventMessage] {
        let user = mpid
        mpid = nil
        if let heard, heard.mpid == user { self.heard?.user = .erased }
        if !isKept || shown <= moved { (state, mayFileIssues, standing) = (.anonymous, true, nil) }
        return [
            SessionChanged(
                deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: .ended, reason: .erased,  // V45
                mpid: user)
        ]
    }
}

// MARK: Looking at a session

extension VerificationDecider {
    /// V50.
    func show(_ command: GetSession) -> Decision {
        var session = session(command.deviceId)
        var decision = reviewed(&session)
        let isVerified = session.state == .verified
        decision.outcome = .succeeded(
            SessionResult(
                deviceId: session.deviceID, state: session.state, mayFileIssues: session.mayFileIssues,
                hasLogin: session.hasLogin, mpid: session.mpid, keyId: isVerified ? session.standing?.keyID : nil,
                verifiedAt: isVerified ? session.standing?.since : nil))
        return decision
    }

    func review(_ command: ReviewSession) -> Decision {
        var session = session(command.deviceId)
        return reviewed(&session)
    }

    /// What has to end anyway. A device that is not known stays so, and what is as it was is not written.
    private func reviewed(_ session: inout Session) -> Decision {
        let events = session.review(settings, at: context.now)
        let before = state.session(app: context.app.id, deviceID: session.deviceID)
        return Decision(
            .noted, changes: before == nil || before == session ? [] : [.session(session)], events: events)
    }
}
