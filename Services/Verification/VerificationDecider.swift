// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
public import Runtime
import Storage
import WireJSON

/// Decides verification commands. Pure: the same command, state and context give the same decision.
///
/// A login that passes is forwarded to the sync service, and its session begins when that has answered: the two
/// session-changed events of a switch of accounts (the one who was there goes, the new one comes) then stand in one
/// decision. Refused and anonymous logins and logouts show at once. Every command of a device has a number; the answer
/// to one that a later command has overtaken changes nothing.
public enum VerificationDecider {
    public typealias Decision = Runtime.Decision<SessionState.Change>

    public static func decide(
        _ command: VerificationCommand, _ state: SessionState, _ context: DecisionContext
    ) -> Decision {
        let settings = context.app.verification
        return switch command {
        case .login(let login):
            enter(.of(login, settings, now: context.now), login.deviceId, state, context)
        case .loginIdentity(let login):
            enter(.of(login, settings, now: context.now), login.deviceId, state, context)
        case .logout(let logout): leave(next(logout.deviceId, state, context), because: nil, context)
        case .check(let check): answer(check, context)
        case .usage: report(state, context)
        case .synced(let reply): settle(reply, state, context)
        }
    }

    // MARK: Coming and going

    private static func enter(
        _ claim: Claim, _ deviceID: String, _ state: SessionState, _ context: DecisionContext
    ) -> Decision {
        let mode = context.app.verification.mode
        let session = next(deviceID, state, context)
        var decision: Decision
        switch (claim.problem, claim.claimant) {
        case (let problem?, _) where mode == .enforce: decision = refuse(problem, session)
        case (let problem?, nil): decision = Decision(.rejected(problem))
        case (nil, nil): decision = .rejected(.internalError)
        case (_, .anonymous(let reason)): decision = stayAnonymous(session, reason, context)
        case (let problem, .user(let identifiers)):
            let state: VerificationState = mode == .off ? .unchecked : problem == nil ? .verified : .unverified
            decision = forward(
                identifiers, VerificationResult(state: state, mayFileIssues: true, keyId: claim.keyID), session,
                context)
        }
        note(claim, deviceID, in: &decision, context)
        return decision
    }

    /// Counts and tells what the verification came to.
    private static func note(
        _ claim: Claim, _ deviceID: String, in decision: inout Decision, _ context: DecisionContext
    ) {
        let event: any EventMessage
        switch (context.app.verification.mode, claim.problem, claim.claimant) {
        case (.off, _, _), (_, nil, nil), (_, nil, .anonymous): return
        case (_, nil, .user):
            event = VerificationVerified(deviceId: deviceID, method: claim.method, keyId: claim.keyID)
        case (.report, let problem?, _):
            event = UnverifiedObserved(deviceId: deviceID, method: claim.method, reason: problem.reason)
        case (.enforce, let problem?, _):
            event = VerificationFailed(deviceId: deviceID, method: claim.method, reason: problem.reason)
        }
        let tally = Tally(method: claim.method, keyID: claim.keyID, reason: claim.problem?.reason)
        decision.events.insert(event, at: 0)
        decision.changes.append(.counted(app: context.app.id, tally, at: context.now))
    }

    /// What a refusal leaves: not anonymous, and nothing may be done (domain.md "Verification").
    private static let unverified = VerificationResult(state: .unverified, mayFileIssues: false)

    private static func refuse(_ problem: Rejection, _ session: Session) -> Decision {
        var refused = session
        let events = refused.show(.unverified, mayFileIssues: false, cause: .refusal)
        return Decision(
            .rejected(problem.carrying(Self.unverified)), changes: [.session(refused)], events: events)
    }

    private static func forward(
        _ identifiers: Identifiers, _ result: VerificationResult, _ session: Session, _ context: DecisionContext
    ) -> Decision {
        var session = session
        session.hasLogin = true
        var identities: [String: String?] = [:]
        if let userID = identifiers.userID { identities["customerid"] = userID }
        if let email = identifiers.email { identities["email"] = email }
        let clears = context.app.verification.clearAnonymousUserOnLogin
        let request = SyncRequest(
            deviceId: session.deviceID, knownIdentities: identities, name: identifiers.name,
            clearAnonymousUser: clears ? true : nil)
        return begin(.login, LogInUser(request), result, session, context)
    }

    /// A login without identifiers. Whoever is on the device is logged out by it.
    private static func stayAnonymous(
        _ session: Session, _ reason: AnonymousReason, _ context: DecisionContext
    ) -> Decision {
        if session.hasLogin { return leave(session, because: reason, context) }
        var anonymous = session
        let events = anonymous.show(.anonymous, mayFileIssues: true, cause: .login)
        let result = VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)
        return Decision(.succeeded(result), changes: [.session(anonymous)], events: events)
    }

    private static func leave(
        _ session: Session, because reason: AnonymousReason?, _ context: DecisionContext
    ) -> Decision {
        var session = session
        session.hasLogin = false
        let events = session.logOut()
        let result = VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)
        let request = SyncRequest(deviceId: session.deviceID, knownIdentities: [:])
        var decision = begin(.logout, LogOutUser(request), result, session, context)
        decision.events = events
        return decision
    }

    private static func begin(
        _ kind: LoginSaga.Kind, _ command: any CommandMessage, _ result: VerificationResult, _ session: Session,
        _ context: DecisionContext
    ) -> Decision {
        let saga = LoginSaga(
            forwardID: context.forwardID(0), command: context.command, deviceID: session.deviceID, kind: kind,
            number: session.number, result: result)
        return Decision(
            .pending(nil), changes: [.session(session), .began(saga)],
            // The session says already that the device is logged out, so that has to happen, however late.
            forwards: [
                Forward(id: saga.forwardID, command: command, expiry: kind == .logout ? nil : context.expiry)
            ])
    }

    /// The device's session with this command counted; a new one for a device that is not known.
    private static func next(_ deviceID: String, _ state: SessionState, _ context: DecisionContext) -> Session {
        var session =
            state.session(app: context.app.id, deviceID: deviceID) ?? Session(app: context.app.id, deviceID: deviceID)
        session.number += 1
        return session
    }

    // MARK: The sync service's answer

    private static func settle(
        _ reply: Reply<JSONValue>, _ state: SessionState, _ context: DecisionContext
    ) -> Decision {
        guard reply.status != .pending, let saga = state.saga(app: context.app.id, forwardID: reply.commandId) else {
            return Decision(.noted)
        }
        var decision = Decision(.noted, changes: [.ended(saga)])
        switch reply.status {
        case .pending: break
        case .expired: decision.settlements = [Settlement(saga.command, .expired)]
        case .rejected:
            let rejection = Rejection(reply.reason ?? .internalError, reply.message)
            decision.settlements = [Settlement(saga.command, .rejected(rejection))]
        case .succeeded:
            guard let mpid = reply.result?["mpid"]?.stringValue.flatMap({ MPID($0) }) else {
                decision.settlements = [Settlement(saga.command, .rejected(Rejection(.internalError)))]
                return decision
            }
            var result = saga.result
            result.mpid = mpid
            decision.settlements = [Settlement(saga.command, .succeeded(result))]
            if saga.kind == .login, var session = state.session(app: context.app.id, deviceID: saga.deviceID),
                saga.number > session.shown
            {
                decision.events = session.logIn(mpid, saga)
                decision.changes.append(.session(session))
            }
        }
        return decision
    }

    // MARK: Questions

    private static func answer(_ check: VerificationCheck, _ context: DecisionContext) -> Decision {
        let settings = context.app.verification
        switch Claimant(userID: check.userId, email: check.userEmail, fullPrivacy: settings.fullPrivacy) {
        case .anonymous(let reason):
            let result = VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)
            return Decision(.succeeded(result))
        case .user(let identifiers):
            let verdict = AuthToken.verify(
                check.userAuthToken, of: identifiers, settings, fullPrivacy: settings.fullPrivacy, now: context.now)
            return switch verdict {
            case .valid(let keyID):
                Decision(.succeeded(VerificationResult(state: .verified, mayFileIssues: true, keyId: keyID)))
            case .notProvided: Decision(.rejected(Rejection(.authTokenNotProvided).carrying(Self.unverified)))
            case .invalid: Decision(.rejected(Rejection(.invalidAuthToken).carrying(Self.unverified)))
            }
        }
    }

    private static func report(_ state: SessionState, _ context: DecisionContext) -> Decision {
        let counts = state.usage(app: context.app.id).sorted { $0.key.order.lexicographicallyPrecedes($1.key.order) }
            .map { tally, count in
                VerificationUsageResult.Count(
                    method: tally.method, keyId: tally.keyID, reason: tally.reason, count: count.count,
                    lastUsed: count.lastUsed.rfc3339)
            }
        return Decision(.succeeded(VerificationUsageResult(counts: counts)))
    }
}

// MARK: - Transitions of a session

extension Session {
    /// The state of the last command shows.
    /// - Returns: the event, when anything is different, or the session is the device's first.
    fileprivate mutating func show(
        _ state: VerificationState, mayFileIssues: Bool, cause: SessionChanged.Cause
    ) -> [any EventMessage] {
        let isNews = shown == 0 || self.state != state || self.mayFileIssues != mayFileIssues
        (self.state, self.mayFileIssues, shown) = (state, mayFileIssues, number)
        guard isNews else { return [] }
        return [SessionChanged(deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: cause)]
    }

    /// The one who is there goes.
    fileprivate mutating func logOut() -> [any EventMessage] {
        let isNews = shown == 0 || state != .anonymous || mpid != nil
        let event = SessionChanged(
            deviceId: deviceID, state: .anonymous, mayFileIssues: true, cause: .logout, mpid: mpid)
        (state, mayFileIssues, mpid, shown) = (.anonymous, true, nil, number)
        return isNews ? [event] : []
    }

    /// The sync service has found the user of a login: whoever was there goes first.
    fileprivate mutating func logIn(_ user: MPID, _ saga: LoginSaga) -> [any EventMessage] {
        var events: [any EventMessage] = []
        if let mpid, mpid != user {
            events.append(
                SessionChanged(
                    deviceId: deviceID, state: .anonymous, mayFileIssues: true, cause: .logout, mpid: mpid))
        }
        let (state, mayFileIssues) = (saga.result.state, saga.result.mayFileIssues)
        if mpid != user || self.state != state || self.mayFileIssues != mayFileIssues {
            events.append(
                SessionChanged(
                    deviceId: deviceID, state: state, mayFileIssues: mayFileIssues, cause: .login, mpid: user))
        }
        (self.state, self.mayFileIssues, mpid, shown) = (state, mayFileIssues, user, saga.number)
        return events
    }
}
