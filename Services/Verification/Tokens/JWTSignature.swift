// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Crypto
import JWTKit

/// The signature of an identity token: HS256 and nothing else.
enum JWTSignature {
    /// - Parameter token: has three parts and a header whose `alg` is `HS256`; see ``IdentityToken``.
    static func isValid(_ token: String, secret: SymmetricKey) -> Bool {
        let key = HMACKey(key: filled(secret))
        return InlineExecutor.run {
            let keys = await JWTKeyCollection().add(hmac: key, digestAlgorithm: .sha256)
            return (try? await keys.verify(token, as: AnyPayload.self)) != nil
        }
    }

    static func sign(_ identities: [(identifier: String, value: String)], issuedAt: Int64, secret: SymmetricKey)
        -> String?
    {
        let key = HMACKey(key: filled(secret))
        let payload = Payload(
            identities: identities.map { Payload.Identity(identifier: $0.identifier, value: $0.value) }, iat: issuedAt)
        return InlineExecutor.run {
            let keys = await JWTKeyCollection().add(hmac: key, digestAlgorithm: .sha256)
            return try? await keys.sign(payload)
        }
    }

    /// The secret with zeros behind it, to 32 bytes: jwt-kit asserts that length, and HMAC fills every key up to its
    /// block of 64 bytes with zeros itself (RFC 2104), so it is the same key. The vendor's secrets may be shorter.
    private static func filled(_ secret: SymmetricKey) -> SymmetricKey {
        let bytes = secret.withUnsafeBytes { Array($0) }
        return SymmetricKey(data: bytes + [UInt8](repeating: 0, count: max(0, SHA256.byteCount - bytes.count)))
    }

    private struct Payload: JWTPayload {
        struct Identity: Codable, Sendable {
            var identifier: String
            var value: String
        }

        var identities: [Identity]
        var iat: Int64

        func verify(using algorithm: some JWTAlgorithm) {}
    }

    /// What the payload says is read elsewhere, by the parser that has limits.
    private struct AnyPayload: JWTPayload {
        func verify(using algorithm: some JWTAlgorithm) {}
    }
}
