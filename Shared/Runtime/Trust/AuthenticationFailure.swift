// SPDX-License-Identifier: Apache-2.0

/// Why a credential did not check out. Operators see `reason` in the dead letter.
///
/// The sender sees `messageForSender`, which tells expired and revoked keys apart only after the signature proved that
/// the sender holds the key; otherwise nobody could be told more than that it did not check out.
public struct AuthenticationFailure: Error, Sendable, Hashable {
    public enum Reason: String, Sendable, CaseIterable {
        case signatureMissing = "SIGNATURE_MISSING"
        case signatureMalformed = "SIGNATURE_MALFORMED"
        case signatureInvalid = "SIGNATURE_INVALID"
        case appUnknown = "APP_UNKNOWN"
        case keyUnknown = "KEY_UNKNOWN"
        /// The key exists but belongs to another app.
        case keyOfOtherApp = "KEY_OF_OTHER_APP"
        case keyExpired = "KEY_EXPIRED"
        case keyRevoked = "KEY_REVOKED"
        /// `authtype` or `authid` that cannot be believed.
        case principalInvalid = "PRINCIPAL_INVALID"
    }

    public var reason: Reason
    /// For operators; names key ids and apps, never secrets.
    public var detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var messageForSender: String {
        switch reason {
        case .signatureMissing:
            "The record has no signature header; send v1;kid=<api key id>;<base64 HMAC-SHA256>."
        case .signatureMalformed:
            "The signature header is malformed; send v1;kid=<api key id>;<base64 HMAC-SHA256>."
        case .keyExpired: "The API key has expired."
        case .keyRevoked: "The API key is revoked."
        case .signatureInvalid, .appUnknown, .keyUnknown, .keyOfOtherApp, .principalInvalid:
            "The signature does not check out for this app: unknown app or key id, a key of another app, or a "
                + "signature over other bytes."
        }
    }
}
