// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage

@testable import Runtime
@testable import Verification

/// Whom a login names and what vouches for it: docs/verification.md "Who logs in" and "Making the token".
extension NaiveSessions {
    enum Who {
        case anonymous(AnonymousReason)
        case user(id: String?, email: String?, name: String?)
        case unreadable
    }

    static let refused = VerificationResult(state: .unverified, mayFileIssues: false)

    private func isPrivate(_ login: RandomCommands.Login) -> Bool { settings.fullPrivacy || login.fullPrivacy == true }

    /// V2 to V5, V19, V20.
    func who(_ login: RandomCommands.Login) -> Who {
        let id = login.userID == "" ? nil : login.userID
        let isPrivate = isPrivate(login)
        switch login.method {
        case .authToken:
            let email = isPrivate ? nil : login.email
            if id == " anna" { return .anonymous(.userIdOuterWhiteSpace) }
            if id == "null" { return .anonymous(.userIdNamesNobody) }
            if email == "nowhere" { return .anonymous(.userEmailInvalid) }
            if id == nil, email == nil { return .anonymous(isPrivate ? .fullPrivacyWithoutUserId : .noIdentifier) }
            return .user(id: id, email: email, name: isPrivate ? nil : login.name)
        case .identityToken:
            if case .missing = login.token { return .anonymous(.noIdentifier) }
            if case .forged = login.token { return .unreadable }
            if ["", " anna", "null"].contains(login.userID) || login.email == "nowhere" { return .unreadable }
            if id == nil, isPrivate { return .anonymous(.fullPrivacyWithoutUserId) }
            if id == nil, login.email == nil { return .unreadable }
            return .user(id: id, email: isPrivate ? nil : login.email, name: nil)
        }
    }

    /// Why an identity token names nobody.
    func fault(_ login: RandomCommands.Login) -> ReasonCode {
        if case .forged = login.token { return .invalidIdentityToken }
        return login.userID == nil && login.email == nil ? .uidOrEmailIsMandatory : .identitiesDataInvalid
    }

    /// V11 to V16, V31, V56: the key that a token is of, or why it is of none.
    func vouching(_ login: RandomCommands.Login) -> Result<VerificationSettings.Key, Rejection> {
        guard case .made(let secret) = login.token else {
            if case .forged = login.token { return .failure(Rejection(.invalidAuthToken)) }
            return .failure(Rejection(.authTokenNotProvided))
        }
        let isIdentity = login.method == .identityToken
        if isIdentity, settings.identityTokenSecrets.isEmpty { return .failure(Rejection(.identityFeatureNotEnabled)) }
        let id = login.userID == "" ? nil : login.userID
        let isSigned =
            switch settings.signedFields {
            case .vendor: true
            case .userId: id != nil
            case .email: login.email != nil && !isPrivate(login)
            case .delimited: id != nil && (login.email != nil || isPrivate(login))
            }
        guard let key = liveKey(of: Fixture.symmetric(secret), login.method), isIdentity || isSigned else {
            return .failure(Rejection(isIdentity ? .invalidIdentityToken : .invalidAuthToken))
        }
        return .success(key)
    }

    /// V51.
    mutating func check(_ login: RandomCommands.Login) -> Answer {
        if case .anonymous(let reason) = who(login) {
            return .succeeded(VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: reason))
        }
        switch vouching(login) {
        case .failure(let problem): return .rejected(problem.reason, with: Self.refused)
        case .success(let key):
            return .succeeded(VerificationResult(state: .verified, mayFileIssues: true, keyId: key.shownID))
        }
    }
}
