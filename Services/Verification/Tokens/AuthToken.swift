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

    /// The 32 bytes that a token stands for: base64 with either alphabet, padded or not, or hex of either case.
    /// `nil` for everything else, white space around it included (V10).
    static func code(of token: String) -> [UInt8]? {
        let text = Array(token.utf8)
        switch text.count {
        case 64: return hexDecoded(text)
        case 43: return base64Decoded(text)
        case 44 where text[43] == UInt8(ascii: "="): return base64Decoded(Array(text.dropLast()))
        default: return nil
        }
    }

    static func hexDecoded(_ text: [UInt8]) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        let digits = text.compactMap(hexValue)
        guard digits.count == text.count else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Base64 of either alphabet without its padding. The bits of the last character that stand for nothing must be 0:
    /// a token has one spelling per alphabet.
    static func base64Decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        // The bits that are no whole byte yet.
        var pending: UInt32 = 0
        var count = 0
        for character in text {
            guard let value = base64Value(character) else { return nil }
            pending = pending << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(pending >> count))
            pending &= 1 << count - 1
        }
        // Six are a character too many.
        return count < 6 && pending == 0 ? bytes : nil
    }

    private static func base64Value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
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
