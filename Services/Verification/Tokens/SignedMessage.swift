// SPDX-License-Identifier: Apache-2.0

public import Runtime

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
        case (.vendor, let userID, let email): Array((userID ?? "").utf8) + Array((email ?? "").utf8)
        case (.userId, let userID?, _): Array(userID.utf8)
        case (.email, _, let email?): Array(email.utf8)
        case (.delimited, let userID?, let email?): Array(userID.utf8) + [UInt8(ascii: "\n")] + Array(email.utf8)
        // The vendor signs the user id alone then; it has no line feed, so it is nobody else's message.
        case (.delimited, let userID?, nil): fullPrivacy ? Array(userID.utf8) : nil
        case (.userId, nil, _), (.email, _, nil), (.delimited, nil, _): nil
        }
    }

    /// The identifiers that the signature covers. The others may not be used.
    public static func covered(
        _ identifiers: Identifiers, _ fields: VerificationSettings.SignedFields
    ) -> Identifiers {
        var covered = identifiers
        if fields == .userId { covered.email = nil }
        if fields == .email { covered.userID = nil }
        return covered
    }
}
