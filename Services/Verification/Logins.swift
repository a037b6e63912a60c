// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

/// Coming and going (docs/verification.md "Results of a login").
extension VerificationDecider {
    func enter(_ claim: Claim, _ deviceID: DeviceID) -> Decision {
        var decision = tally(claim, deviceID)
        if settings.mode != .enforce, case .failure(let unreadable) = claim.claimant {
            // Nobody is named, so nothing happens to the session.
            decision.outcome = .rejected(unreadable)
            return decision
        }
        var session = next(deviceID, &decision)
        switch (claim.problem, claim.claimant) {
        case (let problem?, _) where settings.mode == .enforce, (_, .failure(let problem)):
            // V29. The current user stays (V38).
            decision.events += session.show(.unverified, mayFileIssues: false, cause: .refusal)
            decision.changes.append(.session(session))
            decision.outcome = .rejected(problem.carrying(Self.unverified))
        case (_, .success(.anonymous(let reason))) where session.hasLogin:  // V22
            // Whoever is on the device is logged out by it.
            forward(logout(session, because: reason), session, &decision)
        case (_, .success(.anonymous(let reason))):  // V7, V22, V75, V94
            decision.events += session.show(.anonymous, mayFileIssues: true, cause: .login)
            forward(anonymous(session, because: reason), session, &decision)
        case (_, .success(.user(let identifiers))):
            session.hasLogin = true
            forward(login(identifiers, claim, session), session, &decision)
        }
        return decision
    }

    /// The logout shows when the sync service has done it. Until then, and when it is refused, who is there is there.
    func leave(_ deviceID: DeviceID) -> Decision {
        var decision = Decision(.noted)
        let session = next(deviceID, &decision)
        forward(logout(session, because: nil), session, &decision)
        return decision
    }

    /// V51. What a login's token is worth, without a login.
    func check(_ check: VerificationCheck) throws(Rejection) -> Decision {
        let claimant = Claimant(
            userID: check.userId, email: check.userEmail, fullPrivacy: settings.fullPrivacy, nobody: settings.nobody)
        switch claimant {
        case .anonymous(let reason):
            return Decision(
                .succeeded(VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason)))
        case .user(let identifiers):
            let verdict = AuthToken.verify(
                check.userAuthToken, of: identifiers, settings, fullPrivacy: settings.fullPrivacy, now: context.now)
            switch verdict {
            case .valid(let keyID):
                return Decision(.succeeded(VerificationResult(state: .verified, mayFileIssues: true, keyId: keyID)))
            case .notProvided: throw Rejection(.authTokenNotProvided).carrying(Self.unverified)
            case .invalid: throw Rejection(.invalidAuthToken).carrying(Self.unverified)
            }
        }
    }

    // MARK: The way there

    /// Counts and tells what the verification came to.
    private func tally(_ claim: Claim, _ deviceID: DeviceID) -> Decision {
        let event: any EventMessage
        switch (settings.mode, claim.problem, claim.claimant) {
        case (.off, _, _), (_, nil, .success(.anonymous)), (_, nil, .failure): return Decision(.noted)
        case (_, nil, .success(.user)):
            event = VerificationVerified(deviceId: deviceID, method: claim.method, keyId: claim.keyID)
        case (.report, let problem?, _):
            event = UnverifiedObserved(
                deviceId: deviceID, method: claim.method, reason: problem.reason, keyId: claim.signer?.shownID)  // V25
        case (.enforce, let problem?, _):
            event = VerificationFailed(
                deviceId: deviceID, method: claim.method, reason: problem.reason, keyId: claim.signer?.shownID)
        }
        let tally = Tally(method: claim.method, keyID: claim.keyID, reason: claim.problem?.reason)
        return Decision(.noted, changes: [.counted(app: context.app.id, tally, at: context.now)], events: [event])
    }

    /// The device's session by the settings of now, with this command counted.
    private func next(_ deviceID: DeviceID, _ decision: inout Decision) -> Session {
        var session = session(deviceID)
        decision.events += session.review(settings, at: context.now)
        session.number += 1
        session.seenAt = max(session.seenAt, context.now.milliseconds)
        return session
    }

    private func login(_ identifiers: Identifiers, _ claim: Claim, _ session: Session) -> (LoginSaga, Forward) {
        var identities: [String: String?] = [:]
        if let userID = identifiers.userID { identities["customerid"] = userID }
        if let email = identifiers.email { identities["email"] = email }
        let request = SyncRequest(
            deviceId: session.deviceID, knownIdentities: identities, name: identifiers.name,
            clearAnonymousUser: settings.clearAnonymousUserOnLogin ? true : nil)  // V40
        let standing = claim.standing(settings.mode, since: context.now)
        let result = VerificationResult(state: standing.state, mayFileIssues: true, keyId: standing.keyID)
        let saga = LoginSaga(
            forwardID: context.forwardID(0), command: context.command, deviceID: session.deviceID, kind: .login,
            number: session.number, result: result, standing: standing)
        return (saga, Forward(id: saga.forwardID, command: LogInUser(request), expiry: context.expiry))
    }

    private func logout(_ session: Session, because reason: AnonymousReason?) -> (LoginSaga, Forward) {
        let (saga, request) = nobody(.logout, session, reason)
        // Whoever asked for it has gone and does not ask again, so it has to happen, however late (V35).
        return (saga, Forward(id: saga.forwardID, command: LogOutUser(request)))
    }

    /// V75.
    private func anonymous(_ session: Session, because reason: AnonymousReason?) -> (LoginSaga, Forward) {
        let (saga, request) = nobody(.anonymous, session, reason)
        return (saga, Forward(id: saga.forwardID, command: IdentifyUser(request), expiry: context.expiry))
    }

    /// What leaves the device without anybody who has logged in.
    private func nobody(
        _ kind: LoginSaga.Kind, _ session: Session, _ reason: AnonymousReason?
    ) -> (LoginSaga, SyncRequest) {
        let saga = LoginSaga(
            forwardID: context.forwardID(0), command: context.command, deviceID: session.deviceID, kind: kind,
            number: session.number,
            result: VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason))
        return (saga, SyncRequest(deviceId: session.deviceID, knownIdentities: [:]))
    }

    /// V6.
    private func forward(_ begun: (saga: LoginSaga, forward: Forward), _ session: Session, _ decision: inout Decision) {
        decision.outcome = .pending(nil)
        decision.changes += [.session(session), .began(begun.saga)]
        decision.forwards.append(begun.forward)
    }

    // MARK: The sync service's answer

    func take(_ answer: SyncAnswer) -> Decision {
        guard let saga = state.saga(app: context.app.id, forwardID: answer.forward) else { return Decision(.noted) }
        var decision = Decision(.noted, changes: [.ended(saga)])
        var session = state.session(app: context.app.id, deviceID: saga.deviceID)
        let end: Outcome
        do throws(Rejection) {
            switch answer.outcome {
            case .pending: return Decision(.noted)
            case .expired: end = .expired
            case .rejected(let rejection): throw rejection  // V32
            case .found(let user): end = .succeeded(try finish(saga, user, &session, &decision))
            }
        } catch {
            end = .rejected(error)
        }
        if var session {
            if !isBusy(saga.deviceID, but: saga) { decision.events += session.followHeard() }
            // Also as it was: whoever decides at the same time what to make of an event of the device meets this here.
            decision.changes.append(.session(session))
        }
        decision.settlements = [Settlement(saga.command, end)]
        return decision
    }

    /// Whether the sync service has yet to answer a login that the device sent after this.
    private func hasLater(than saga: LoginSaga) -> Bool {
        state.sagas(app: context.app.id, of: saga.deviceID).contains { $0.kind == .login && $0.number > saga.number }
    }

    static let erased = Rejection(.profileErased, "The user was erased while the login was on its way.")

    /// It may have had a token, which nobody looked at.
    static let overtaken = Rejection(
        .authTokenNotProvided,
        "The app began to verify its users while the login was on its way; log in again with a user authentication token."
    )

    /// The sync service has done it.
    private func finish(
        _ saga: LoginSaga, _ user: SyncAnswer.Found, _ kept: inout Session?, _ decision: inout Decision
    ) throws(Rejection) -> VerificationResult {
        let mpid = user.mpid
        let isErased = state.isErased(app: context.app.id, mpid)
        if saga.kind == .login, isErased { throw Self.erased }  // V54
        // A row that is gone was an erased user's; the device's other logins are not.
        var session = kept ?? Session(app: context.app.id, deviceID: saga.deviceID, number: saga.number)
        // A later answer came first (V71).
        let isLate = user.move.map { $0 < session.move } ?? false
        session.move = max(session.move, user.move ?? 0)
        defer { kept = session }
        var result = saga.result
        result.mpid = isErased || saga.kind == .anonymous && user.isKnown ? nil : mpid
        var refusal: Rejection?
        switch saga.kind {
        case .logout:
            if !isLate { decision.events = session.logOut(number: saga.number, hasLater: hasLater(than: saga)) }
        case .anonymous: if user.isKnown, !isLate { session.hasLogin = true }
        case .login where !user.isKnown:
            // V74
            result = VerificationResult(state: .anonymous, mayFileIssues: true, mpid: mpid)
            if !isLate { decision.events = session.logOut(number: saga.number, hasLater: hasLater(than: saga)) }
        case .login:
            var standing = saga.standing
            // What vouched may have gone in the meantime.
            if let reason = standing.flatMap({ settings.reasonToEnd($0, at: context.now) }) {
                (result.state, result.mayFileIssues, result.keyId) = (.unverified, settings.mode != .enforce, nil)
                standing = result.mayFileIssues ? Standing(.unverified) : nil
                if !result.mayFileIssues {
                    refusal = reason == .verificationRequired ? Self.overtaken : Rejection(.invalidAuthToken)
                }
            }
            if !isLate {
                decision.events = session.logIn(
                    mpid, number: saga.number, state: result.state, mayFileIssues: result.mayFileIssues,
                    standing: standing)
            }
        }
        if let refusal { throw refusal.carrying(Self.unverified) }
        return result
    }
}
