// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

/// A login's claim and what speaks for it, before the app's mode says what that is worth.
struct Claim {
    var method: VerificationMethod
    /// Whom the login is about; `nil` when that cannot be read.
    var claimant: Claimant?
    /// Why mode `enforce` refuses it.
    var problem: Rejection?
    /// The key that vouches.
    var key: VerificationSettings.Key?

    var keyID: String? { key?.shownID }

    /// What the session will rest on, if the login is let through.
    func standing(_ mode: VerificationSettings.Mode, since now: Timestamp) -> Standing {
        switch (mode, problem, key) {
        case (.off, _, _): Standing(.unchecked, since: now)
        case (_, nil, let key?): Standing(.key(mark: key.mark(method)), keyID: key.shownID, since: now)
        default: Standing(.unverified, since: now)
        }
    }

    static func of(_ login: VerificationLogin, _ settings: VerificationSettings, now: Timestamp) -> Claim {
        let fullPrivacy = settings.fullPrivacy || login.fullPrivacy == true
        let claimant = Claimant(
            userID: login.userId, email: login.userEmail, name: login.userName, fullPrivacy: fullPrivacy,
            nobody: settings.nobody)
        var claim = Claim(method: .authToken, claimant: claimant)
        guard settings.mode != .off, case .user(let identifiers) = claimant else { return claim }
        let verdict = AuthToken.verify(
            login.userAuthToken, of: identifiers, settings, fullPrivacy: fullPrivacy, now: now)
        switch verdict {
        case .valid(let keyID):
            claim.key = settings.keys.first { ExactText($0.id) == ExactText(keyID) }
            // Only where nobody gets in otherwise: mode `report` takes everybody for whom `off` would take them.
            if settings.mode == .enforce {
                claim.claimant = .user(SignedMessage.covered(identifiers, settings.signedFields))
            }
        case .notProvided: claim.problem = Rejection(.authTokenNotProvided)
        case .invalid: claim.problem = Rejection(.invalidAuthToken)
        }
        return claim
    }

    static func of(_ login: VerificationLoginIdentity, _ settings: VerificationSettings, now: Timestamp) -> Claim {
        guard !login.identityToken.isBlank else {
            return Claim(method: .identityToken, claimant: .anonymous(.noIdentifier))
        }
        var claim = Claim(method: .identityToken)
        do throws(Rejection) {
            let token = try IdentityToken(reading: login.identityToken)
            if settings.mode != .off { claim.check(token, settings, now) }
            claim.claimant = try token.claimant(
                fullPrivacy: settings.fullPrivacy || login.fullPrivacy == true, nobody: settings.nobody)
        } catch {
            claim.problem = claim.problem ?? error
            claim.key = nil
        }
        return claim
    }

    private mutating func check(_ token: IdentityToken, _ settings: VerificationSettings, _ now: Timestamp) {
        do throws(Rejection) {
            key = try token.verify(secrets: settings.identityTokenSecrets, now: now)
        } catch {
            problem = error
        }
    }
}
