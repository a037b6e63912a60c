// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Crypto
public import WireJSON

/// JSON Web Tokens (RFC 7519) in the compact form, signed with HMAC-SHA256 and nothing else.
///
/// By hand, because it is one HMAC of bytes that are read here in any case: a library for all of JOSE brings X.509 and a
/// second crypto library into every build (docs/dependencies.md).
public enum HS256 {
    /// The same claims and key give the same text.
    /// - Parameters:
    ///   - claims: an object; its members are written in their order.
    ///   - type: the header's `typ`.
    public static func sign(_ claims: JSONValue, key: SymmetricKey, type: String = "JWT") -> String {
        let input = header(type: type) + Base64.url(claims.serialized())
        return "\(input).\(Base64.url(HMAC<SHA256>.authenticationCode(for: Array(input.utf8), using: key)))"
    }

    /// What every token of this type that ``sign(_:key:type:)`` makes begins with, the dot included.
    static func header(type: String) -> String { Base64.url(#"{"alg":"HS256","typ":"\#(type)"}"#.utf8) + "." }

    /// A token that was read and not yet believed.
    struct Unverified {
        let claims: JSONObject
        private let input: ArraySlice<UInt8>
        private let signature: [UInt8]

        /// - Parameter header: of the kind that is wanted, to the letter: there is no other algorithm to be talked into.
        /// - Returns: `nil` for everything else, and for another spelling of a token.
        init?(_ text: String, header: String) {
            let bytes = Array(text.utf8)
            let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard parts.count == 3, bytes.starts(with: header.utf8),
                let payload = Base64.bytes(parts[1], .url), let signature = Base64.bytes(parts[2], .url),
                let claims = try? JSONValue(parsing: payload, limits: JSONLimits(maxDepth: 8)).objectValue
            else { return nil }
            (self.claims, self.signature) = (claims, signature)
            input = bytes[..<(parts[2].startIndex - 1)]
        }

        func isSigned(with key: SymmetricKey) -> Bool {
            HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: input, using: key)
        }
    }
}
