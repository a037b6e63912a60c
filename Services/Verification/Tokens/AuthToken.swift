// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
import Foundation
import Runtime

/// `userAuthToken`: HMAC-SHA256 of the signed fields, made by the app's backend (docs/verification.md).
public enum AuthToken {
    public enum Verdict: Sendable, Hashable {
        case valid(keyID: KeyID)
        case notProvided
        case invalid
    }

    /// Pure. Every live key is tried to the end, whether the token's form is right, one has matched, or not, so that
    /// the time taken does not tell (V31).
    public static func verify(
        _ token: String?, of identifiers: Identifiers, _ settings: VerificationSettings, fullPrivacy: Bool,
        now: Timestamp
    ) -> Verdict {
        guard let token, !token.isBlank else { return .notProvided }
        let code = code(of: token)
        let message = SignedMessage.bytes(of: identifiers, settings.signedFields, fullPrivacy: fullPrivacy)
        var match: KeyID?
        for key in settings.keys {
            let isRight = HMAC<SHA256>.isValidAuthenticationCode(
                code ?? noCode, authenticating: message ?? [], using: key.secret)
            let counts = key.isLive(at: now) && code != nil && message != nil
            match = isRight && counts ? key.id : match
        }
        return match.map { .valid(keyID: $0) } ?? .invalid
    }

    /// The token that passes: base64, standard alphabet, padded (V8).
    /// - Returns: `nil` when the policy signs a field that is not there.
    public static func make(
        for identifiers: Identifiers, key: VerificationSettings.Key, _ fields: VerificationSettings.SignedFields,
        fullPrivacy: Bool
    ) -> String? {
        guard let message = SignedMessage.bytes(of: identifiers, fields, fullPrivacy: fullPrivacy) else { return nil }
        return Data(HMAC<SHA256>.authenticationCode(for: message, using: key.secret)).base64EncodedString()
    }

    private static let noCode = [UInt8](repeating: 0, count: SHA256.byteCount)

    /// The 32 bytes that a token stands for: base64 with either alphabet, padded or not, or hex of either case. `nil` for
    /// everything else, white space around it and a second spelling included (V10).
    static func code(of token: String) -> [UInt8]? {
        let text = Array(token.utf8)
        switch text.count {
        case 64: return [UInt8](hex: token)
        case 43: return Base64.bytes(text, .either)
        case 44 where text[43] == UInt8(ascii: "="): return Base64.bytes(text.dropLast(), .either)
        default: return nil
        }
    }
}

/// What the app's backend signs for a login.
public enum SignedMessage {
    /// The bytes that are signed, or `nil` when the app's policy signs a field that is not there.
    ///
    /// `vendor` joins user id and e-mail without a separator, as the vendor's samples do, so that (`1`,
    /// `23a@evil.io`) and (`123`, `a@evil.io`) have the same message.
    public static func bytes(
        of identifiers: Identifiers, _ fields: VerificationSettings.SignedFields, fullPrivacy: Bool
    ) -> [UInt8]? {
        switch (fields, identifiers.userID, identifiers.email) {
        case (.vendor, let userID, let email): Array((userID ?? "").utf8) + Array((email ?? "").utf8)  // V14
        case (.userId, let userID?, _): Array(userID.utf8)  // V12
        case (.email, _, let email?): Array(email.utf8)  // V13
        // V11
        case (.delimited, let userID?, let email?): Array(userID.utf8) + [UInt8(ascii: "\n")] + Array(email.utf8)
        // The vendor signs the user id alone then; it has no line feed, so it is nobody else's message.
        case (.delimited, let userID?, nil): fullPrivacy ? Array(userID.utf8) : nil  // V15
        case (.userId, nil, _), (.email, _, nil), (.delimited, nil, _): nil
        }
    }

    /// The identifiers that the signature covers. The others may not be used (V16).
    public static func covered(
        _ identifiers: Identifiers, _ fields: VerificationSettings.SignedFields
    ) -> Identifiers {
        var covered = identifiers
        if fields == .userId { covered.email = nil }
        if fields == .email { covered.userID = nil }
        return covered
    }
}
