// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Crypto
import Runtime
import WireJSON

/// An identity token (JWT) of the vendor's identity system (F59): read, not yet
/// believed.
public struct IdentityToken: Sendable {
    let payload: JSONObject
    /// What was signed, and the signature.
    private let input: [UInt8]
    private let signature: [UInt8]

    /// Reads the form. Nothing of it is believed before ``verify(_:now:)``.
    /// - Throws: `INVALID_IDENTITY_TOKEN`.
    public init(reading text: String) throws(Rejection) {
        guard text.utf8.count <= 65_536 else { throw Self.malformed("has more than 65536 bytes") }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Self.malformed("must have three parts") }
        let header = try Self.object(parts[0], "header")
        guard header["alg"]?.stringValue == "HS256" else { throw Self.malformed("has an alg other than HS256") }  // V17
        if let type = header["typ"], type.stringValue?.uppercased() != "JWT" {
            throw Self.malformed("has a typ other than JWT")
        }
        guard header["crit"] == nil else { throw Self.malformed("has critical extensions") }
        payload = try Self.object(parts[1], "payload")
        guard let signature = Base64.bytes(parts[2], .either), signature.count == SHA256.byteCount else {
            throw Self.malformed("has a signature that is not HS256's")
        }
        input = Array(text.utf8.prefix(upTo: parts[2].startIndex).dropLast())
        self.signature = signature
    }

    /// Checks signature, age, and whom it is from and for. Every secret is tried to the end, so that the time taken does not tell which one it was.
    /// - Returns: the secret that the token was made with.
    /// - Throws: `IDENTITY_FEATURE_NOT_ENABLED`, `INVALID_IDENTITY_TOKEN`, `IAT_IS_MANDATORY`.
    public func verify(
        _ settings: VerificationSettings, now: Timestamp
    ) throws(Rejection) -> VerificationSettings.Key {
        let signer = try signer(settings, now: now)
        try check(settings, now: now)
        return signer
    }

    /// The secret that the token was made with.
    /// - Throws: `IDENTITY_FEATURE_NOT_ENABLED`, `INVALID_IDENTITY_TOKEN`.
    func signer(_ settings: VerificationSettings, now: Timestamp) throws(Rejection) -> VerificationSettings.Key {
        let secrets = settings.identityTokenSecrets
        guard !secrets.isEmpty else { throw Rejection(.identityFeatureNotEnabled) }
        var match: VerificationSettings.Key?
        for key in secrets {
            let isRight = HMAC<SHA256>.isValidAuthenticationCode(
                signature, authenticating: input, using: key.secret)
            match = isRight && key.isLive(at: now) ? key : match
        }
        guard let match else { throw Rejection(.invalidIdentityToken) }
        return match
    }

    /// Age, and whom it is from and for.
    /// - Throws: `INVALID_IDENTITY_TOKEN`, `IAT_IS_MANDATORY`.
    func check(_ settings: VerificationSettings, now: Timestamp) throws(Rejection) {
        try checkAge(now)
        try checkParties(settings)
    }

    /// V18.
    private func checkAge(_ now: Timestamp) throws(Rejection) {
        guard let issued = payload["iat"]?.int64Value else { throw Rejection(.iatIsMandatory) }
        let seconds = now.milliseconds / 1000
        guard issued >= seconds - Self.maximumAge else { throw Self.malformed("is more than 24 hours old") }
        guard issued <= seconds + Self.allowedSkew else { throw Self.malformed("has an iat in the future") }
        if let expiry = payload["exp"] {
            // The vendor has no exp; a backend that sets one means it.
            guard let end = expiry.int64Value, end > seconds else { throw Self.malformed("is past its exp") }
        }
        if let start = payload["nbf"] {  // V90
            guard let start = start.int64Value, start <= seconds + Self.allowedSkew else {
                throw Self.malformed("is not valid before its nbf")
            }
        }
    }

    /// Backends that share a secret, or an issuer of tokens for several apps, are told apart by these only.
    private func checkParties(_ settings: VerificationSettings) throws(Rejection) {
        if let audience = settings.identityTokenAudience.map(JSONValue.string) {  // V91
            guard let named = payload["aud"], named == audience || named.arrayValue?.contains(audience) == true else {
                throw Self.malformed("has an aud that does not name this app")
            }
        }
        if let issuer = settings.identityTokenIssuer {  // V92
            guard payload["iss"]?.stringValue == issuer else {
                throw Self.malformed("has an iss other than this app's")
            }
        }
    }

    /// Whom the token is about. With full privacy a token without a uid is about nobody.
    /// - Throws: `IDENTITIES_DATA_INVALID`, `IDENTITIES_SIZE_LIMIT_EXCEEDED`, `UID_OR_EMAIL_IS_MANDATORY`.
    public func claimant(
        fullPrivacy: Bool, nobody: NobodyValues = .standard
    ) throws(Rejection) -> Claimant {
        let identities = try TokenIdentities(payload["identities"])
        guard let uid = identities[.uid] else {
            if fullPrivacy { return .anonymous(.fullPrivacyWithoutUserId) }
            guard let email = identities[.email] else { throw Rejection(.uidOrEmailIsMandatory) }
            return .user(Identifiers(email: email))
        }
        guard !nobody.contains(uid) else {
            throw Rejection(.identitiesDataInvalid, "The uid is a value that names nobody.")
        }
        return .user(Identifiers(userID: uid, email: fullPrivacy ? nil : identities[.email]))
    }

    /// A token for these identifiers, as an app's backend makes it.
    public static func make(for identifiers: Identifiers, secret: SymmetricKey, issuedAt: Timestamp) -> String {
        let identities = [("uid", identifiers.userID), ("email", identifiers.email)].compactMap { name, value in
            value.map { JSONValue.object(["identifier": .string(name), "value": .string($0)]) }
        }
        return HS256.sign(
            ["iat": .number(JSONNumber(issuedAt.milliseconds / 1000)), "identities": .array(identities)], key: secret)
    }

    static let maximumAge: Int64 = 24 * 3600
    static let allowedSkew: Int64 = 5 * 60

    private static func object(_ part: Substring.UTF8View, _ name: String) throws(Rejection) -> JSONObject {
        guard let bytes = Base64.bytes(part, .url) else { throw malformed("has a \(name) that is not base64url") }
        guard let value = try? JSONValue(parsing: bytes, limits: JSONLimits(maxDepth: 8)),
            let object = value.objectValue
        else { throw malformed("has a \(name) that is not a JSON object") }
        return object
    }

    private static func malformed(_ what: String) -> Rejection {
        Rejection(.invalidIdentityToken, "The identity token \(what).")
    }
}
