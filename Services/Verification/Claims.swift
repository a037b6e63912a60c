// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Runtime

/// A login's claim and what speaks for it, before the app's mode says what that is worth.
struct Claim {
    var method: VerificationMethod
    /// Whom the login is about, or why that cannot be read.
    var claimant: Result<Claimant, Rejection>
    /// Why mode `enforce` refuses it. Always there when it cannot be read.
    var problem: Rejection?
    /// The key that vouches.
    var key: VerificationSettings.Key?
    /// The key of an identity token whose signature is right, whatever else is wrong with it.
    var signer: VerificationSettings.Key?

    var keyID: KeyID? { key?.shownID }

    /// What the session will rest on, if the login is let through.
    func standing(_ mode: VerificationSettings.Mode, since now: Timestamp) -> Standing {
        switch (mode, problem, key) {
        case (.off, _, _): Standing(.unchecked, since: now)  // V23
        case (_, nil, let key?): Standing(.key(mark: key.mark(method)), keyID: key.shownID, since: now)
        default: Standing(.unverified, since: now)
        }
    }

    static func of(_ login: VerificationLogin, _ settings: VerificationSettings, now: Timestamp) -> Claim {
        let fullPrivacy = settings.fullPrivacy || login.fullPrivacy == true
        let claimant = Claimant(
            userID: login.userId, email: login.userEmail, name: login.userName, fullPrivacy: fullPrivacy,
            nobody: settings.nobody)
        var claim = Claim(method: .authToken, claimant: .success(claimant))
        guard settings.mode != .off, case .user(let identifiers) = claimant else { return claim }
        let verdict = AuthToken.verify(
            login.userAuthToken, of: identifiers, settings, fullPrivacy: fullPrivacy, now: now)
        switch verdict {
        case .valid(let keyID):
            claim.key = settings.keys.first { $0.id == keyID }
            // Only where nobody gets in otherwise: mode `report` takes everybody for whom `off` would take them.
            // V24, V26, V30.
            if settings.mode == .enforce {
                claim.claimant = .success(.user(SignedMessage.covered(identifiers, settings.signedFields)))
            }
        case .notProvided: claim.problem = Rejection(.authTokenNotProvided)  // V27
        case .invalid: claim.problem = Rejection(.invalidAuthToken)  // V28
        }
        return claim
    }

    static func of(_ login: VerificationLoginIdentity, _ settings: VerificationSettings, now: Timestamp) -> Claim {
        var claim = Claim(method: .identityToken, claimant: .success(.anonymous(.noIdentifier)))
        guard !login.identityToken.isBlank else { return claim }
        do throws(Rejection) {
            let token = try IdentityToken(reading: login.identityToken)
            if settings.mode != .off { claim.check(token, settings, now) }
            claim.claimant = .success(
                try token.claimant(
                    fullPrivacy: settings.fullPrivacy || login.fullPrivacy == true, nobody: settings.nobody))
        } catch {
            let problem = claim.problem ?? error  // V20
            (claim.claimant, claim.problem, claim.key) = (.failure(problem), problem, nil)
        }
        return claim
    }

    private mutating func check(_ token: IdentityToken, _ settings: VerificationSettings, _ now: Timestamp) {
        do throws(Rejection) {
            signer = try token.signer(settings, now: now)
            try token.check(settings, now: now)
            key = signer
        } catch {
            problem = error
        }
    }
}

// MARK: Claimants

/// The identifiers of a login, as they count: at least a user id or an e-mail.
public struct Identifiers: Sendable, Hashable {
    public var userID: String?
    public var email: String?
    /// Vouched for by nobody, and never used to find anybody.
    public var name: String?

    public init(userID: String? = nil, email: String? = nil, name: String? = nil) {
        self.userID = userID
        self.email = email
        self.name = name
    }
}

/// Who somebody says they are.
public enum Claimant: Sendable, Hashable {
    case anonymous(AnonymousReason)
    case user(Identifiers)

    /// Applies the vendor's rules (docs/verification.md "Results of a login"): what is empty after trimming is absent;
    /// an identifier that is not valid makes the login an anonymous one, also when the other would do.
    public init(
        userID: String?, email: String?, name: String? = nil, fullPrivacy: Bool, nobody: NobodyValues = .standard
    ) {
        let userID = userID.flatMap { $0.isBlank ? nil : $0 }
        let email = fullPrivacy ? nil : email.flatMap { $0.isBlank ? nil : $0 }
        if let problem = userID.flatMap({ Self.problem(ofUserID: $0, nobody) })
            ?? email.flatMap({ Self.problem(ofEmail: $0, nobody) })
        {
            self = .anonymous(problem)
        } else if userID == nil, email == nil {
            self = .anonymous(fullPrivacy ? .fullPrivacyWithoutUserId : .noIdentifier)  // V5
        } else {
            let name = fullPrivacy ? nil : name.flatMap(Self.shortened)
            self = .user(Identifiers(userID: userID, email: email, name: name))
        }
    }

    /// V3.
    static func problem(ofUserID text: String, _ nobody: NobodyValues) -> AnonymousReason? {
        if text.hasOuterWhiteSpace { return .userIdOuterWhiteSpace }
        if text.unicodeScalars.count > 750 { return .userIdTooLong }
        // Also what keeps `delimited` unambiguous: no user id has a line feed.
        if text.hasControlCharacter { return .userIdControlCharacter }
        return nobody.contains(text) ? .userIdNamesNobody : nil
    }

    private static func problem(ofEmail text: String, _ nobody: NobodyValues) -> AnonymousReason? {
        if text.hasOuterWhiteSpace { return .userEmailOuterWhiteSpace }
        return EmailAddress.isValid(text) && !nobody.contains(email: text) ? nil : .userEmailInvalid
    }

    /// At most 255 code points, no character torn apart, no control characters (V4).
    private static func shortened(_ name: String) -> String? {
        var short = ""
        var length = 0
        for character in name where !String(character).hasControlCharacter {
            length += character.unicodeScalars.count
            guard length <= 255 else { break }
            short.append(character)
        }
        return short.isBlank ? nil : short
    }
}

extension String {
    /// Empty after trimming (V2).
    var isBlank: Bool { unicodeScalars.allSatisfy(\.properties.isWhitespace) }

    var hasOuterWhiteSpace: Bool {
        unicodeScalars.first?.properties.isWhitespace == true || unicodeScalars.last?.properties.isWhitespace == true
    }
}

/// Whether a text has the form of an e-mail address, such as `my@email.com`. A check of form only: quoted
/// local parts and addresses without a dot in the domain are not taken.
enum EmailAddress {
    static func isValid(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars)
        guard scalars.count <= 320, let at = scalars.lastIndex(of: "@") else { return false }
        let local = scalars[..<at]
        let labels = scalars[(at + 1)...].split(separator: ".", omittingEmptySubsequences: false)
        return (1...64).contains(local.count) && local.allSatisfy(isLocal) && labels.count >= 2
            && labels.allSatisfy { label in
                (1...63).contains(label.count) && label.first != "-" && label.last != "-" && label.allSatisfy(isDomain)
            }
    }

    private static func isLocal(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.value > 0x20 && scalar.value < 0x7F && !#"@"(),:;<>[\]"#.unicodeScalars.contains(scalar)
        }
        return isLetterElsewhere(scalar)
    }

    private static func isDomain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar == "-" || scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) }
        return isLetterElsewhere(scalar)
    }

    /// Beyond ASCII all that is neither white space nor a control character.
    private static func isLetterElsewhere(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value > 0x9F && !scalar.properties.isWhitespace
    }
}
