// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Runtime
import Storage
import WireJSON

/// Decides verification commands. Pure: the same command, state and context give the same decision.
///
/// Logins that pass and logouts are forwarded to the sync service, and show when that has done them: what is told is true
/// by then, and the two session-changed events of a switch of accounts (the one who was there goes, the new one comes)
/// stand in one decision. Refused and anonymous logins show at once. Every command of a device has a number; the answer
/// to one that a later command has overtaken changes nothing. What a session may do is judged by the settings of the
/// moment whenever it is looked at.
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
        case .logout(let logout): leave(logout.deviceId, state, context)
        case .check(let check): answer(check, context)
        case .usage: report(state, context)
        case .getSession(let command): show(command, state, context)
        case .review(let command): review(command, state, context)
        case .forget(let command): forget(command, state, context)
        case .synced(let answer): settle(answer, state, context)
        }
    }

    // MARK: Coming and going

    private static func enter(
        _ claim: Claim, _ deviceID: String, _ state: SessionState, _ context: DecisionContext
    ) -> Decision {
        let mode = context.app.verification.mode
        let (session, told) = next(deviceID, state, context)
        var decision: Decision
        switch (claim.problem, claim.claimant) {
        case (let problem?, _) where mode == .enforce: decision = refuse(problem, session)
        case (_, .anonymous(let reason)): decision = stayAnonymous(session, reason, context)
        case (_, .user(let identifiers)):
            decision = forward(identifiers, claim.standing(mode, since: context.now), session, context)
        case (let problem, nil):
            // Nobody is named, so nothing happens to the session.
            decision = Decision(.rejected(problem ?? Rejection(.internalError)))
            note(claim, deviceID, in: &decision, context)
            return decision
        }
        decision.events.insert(contentsOf: told, at: 0)
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

    /// What a refusal leaves: not anonymous, and nothing may be done.
    static let unverified = VerificationResult(state: .unverified, mayFileIssues: false)

    private static func refuse(_ problem: Rejection, _ session: Session) -> Decision {
        var refused = session
        let events = refused.show(.unverified, mayFileIssues: false, cause: .refusal)
        return Decision(
            .rejected(problem.carrying(Self.unverified)), changes: [.session(refused)], events: events)
    }

    private static func forward(
        _ identifiers: Identifiers, _ standing: Standing, _ session: Session, _ context: DecisionContext
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
        let result = VerificationResult(state: standing.state, mayFileIssues: true, keyId: standing.keyID)
        let saga = LoginSaga(
            forwardID: context.forwardID(0), command: context.command, deviceID: session.deviceID, kind: .login,
            number: session.number, result: result, standing: standing,
            userID: identifiers.userID.map { PersonDigest(of: $0, .customerID, context.app.sync) },
            email: identifiers.email.map { PersonDigest(of: $0, .email, context.app.sync) })
        return begin(saga, Forward(id: saga.forwardID, command: LogInUser(request), expiry: context.expiry), session)
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
        _ deviceID: String, _ state: SessionState, _ context: DecisionContext
    ) -> Decision {
        let (session, told) = next(deviceID, state, context)
        var decision = leave(session, because: nil, context)
        decision.events = told
        return decision
    }

    /// The logout shows when the sync service has done it. Until then, and when it is refused, who is there is there.
    private static func leave(
        _ session: Session, because reason: AnonymousReason?, _ context: DecisionContext
    ) -> Decision {
        let result = VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)
        let saga = LoginSaga(
            forwardID: context.forwardID(0), command: context.command, deviceID: session.deviceID, kind: .logout,
            number: session.number, result: result)
        let request = SyncRequest(deviceId: session.deviceID, knownIdentities: [:])
        // Whoever asked for it has gone and does not ask again, so it has to happen, however late.
        return begin(saga, Forward(id: saga.forwardID, command: LogOutUser(request)), session)
    }

    private static func begin(_ saga: LoginSaga, _ forward: Forward, _ session: Session) -> Decision {
        Decision(.pending(nil), changes: [.session(session), .began(saga)], forwards: [forward])
    }

    /// The device's session by the settings of now, with this command counted; a new one for a device that is not known.
    private static func next(
        _ deviceID: String, _ state: SessionState, _ context: DecisionContext
    ) -> (session: Session, told: [any EventMessage]) {
        var (session, told) = reviewed(deviceID, state, context)
        session.number += 1
        return (session, told)
    }

    static func reviewed(
        _ deviceID: String, _ state: SessionState, _ context: DecisionContext
    ) -> (session: Session, told: [any EventMessage]) {
        var session =
            state.session(app: context.app.id, deviceID: deviceID) ?? Session(app: context.app.id, deviceID: deviceID)
        let told = session.review(context.app.verification, at: context.now)
        return (session, told)
    }

    // MARK: The sync service's answer

    private static func settle(_ answer: SyncAnswer, _ state: SessionState, _ context: DecisionContext) -> Decision {
        guard answer.outcome != .pending, let saga = state.saga(app: context.app.id, forwardID: answer.forward) else {
            return Decision(.noted)
        }
        var decision = Decision(.noted, changes: [.ended(saga)])
        let end: Outcome
        switch answer.outcome {
        case .pending: return Decision(.noted)
        case .expired: end = .expired
        case .rejected(let rejection): end = .rejected(rejection)
        case .found(let mpid):
            let isErased = state.isErased(app: context.app.id, mpid)
            // A row that is gone was an erased user's; the device's other logins are not.
            var session =
                state.session(app: context.app.id, deviceID: saga.deviceID)
                ?? Session(app: context.app.id, deviceID: saga.deviceID, number: saga.number)
            switch saga.kind {
            case .logout:
                decision.events = session.logOut(number: saga.number)
                var result = saga.result
                result.mpid = isErased ? nil : mpid
                end = .succeeded(result)
            case .login where isErased:
                decision.settlements = [Settlement(saga.command, .rejected(Self.erased))]
                return decision
            case .login: (end, decision.events) = logIn(mpid, saga, &session, context)
            }
            decision.changes.append(.session(session))
        }
        decision.settlements = [Settlement(saga.command, end)]
        return decision
    }

    static let erased = Rejection(.profileErased, "The user was erased while the login was on its way.")

    /// The sync service has the user. What vouched may have gone in the meantime.
    private static func logIn(
        _ mpid: MPID, _ saga: LoginSaga, _ session: inout Session, _ context: DecisionContext
    ) -> (Outcome, [any EventMessage]) {
        let settings = context.app.verification
        var result = saga.result
        result.mpid = mpid
        var standing = saga.standing
        var refusal: Rejection?
        if let reason = standing.flatMap({ settings.reasonToEnd($0, at: context.now) }) {
            result.state = .unverified
            result.mayFileIssues = settings.mode != .enforce
            result.keyId = nil
            standing = result.mayFileIssues ? Standing(.unverified) : nil
            if !result.mayFileIssues {
                refusal = Rejection(reason == .verificationRequired ? .authTokenNotProvided : .invalidAuthToken)
            }
        }
        let events = session.logIn(
            mpid, number: saga.number, state: result.state, mayFileIssues: result.mayFileIssues, standing: standing)
        return (refusal.map { .rejected($0.carrying(Self.unverified)) } ?? .succeeded(result), events)
    }
}
