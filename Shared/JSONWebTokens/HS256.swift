// SPDX-License-Identifier: Apache-2.0

public import Crypto
import Foundation
import JWTKit

/// Signs and checks JSON Web Tokens with HMAC-SHA256, through jwt-kit, from code that cannot await.
public enum HS256 {
    /// Whether the signature is the key's. What header and payload say is for the caller to read.
    public static func isValid(_ token: String, key: SymmetricKey) -> Bool {
        let key = HMACKey(key: filled(key))
        return InlineExecutor.run {
            let keys = await JWTKeyCollection().add(hmac: key, digestAlgorithm: .sha256)
            return (try? await keys.verify(token, as: AnyPayload.self)) != nil
        }
    }

    /// The same payload and key give the same token: members stand in the order of their names.
    /// - Parameter type: the header's `typ`.
    /// - Returns: `nil` when the payload cannot be encoded.
    public static func sign(_ payload: some Codable & Sendable, key: SymmetricKey, type: String = "JWT") -> String? {
        let key = HMACKey(key: filled(key))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let serializer = DefaultJWTSerializer(jsonEncoder: encoder)
        return InlineExecutor.run {
            let keys = await JWTKeyCollection().add(hmac: key, digestAlgorithm: .sha256, serializer: serializer)
            return try? await keys.sign(Payload(claims: payload), header: ["typ": .string(type)])
        }
    }

    /// The payload of a token whose signature was checked.
    static func payload<Claims: Codable & Sendable>(of token: String, as _: Claims.Type) -> Claims? {
        InlineExecutor.run { try? await JWTKeyCollection().unverified(token, as: Payload<Claims>.self).claims }
    }

    /// The key with zeros behind it, to 32 bytes: jwt-kit asserts that length, and HMAC fills every key up to its
    /// block of 64 bytes with zeros itself (RFC 2104), so it is the same key. Vendors' secrets may be shorter.
    private static func filled(_ key: SymmetricKey) -> SymmetricKey {
        let bytes = key.withUnsafeBytes { Array($0) }
        return SymmetricKey(data: bytes + [UInt8](repeating: 0, count: max(0, SHA256.byteCount - bytes.count)))
    }

    private struct Payload<Claims: Codable & Sendable>: JWTPayload {
        var claims: Claims

        init(claims: Claims) { self.claims = claims }
        init(from decoder: any Decoder) throws { claims = try Claims(from: decoder) }
        func encode(to encoder: any Encoder) throws { try claims.encode(to: encoder) }
        func verify(using algorithm: some JWTAlgorithm) {}
    }

    private struct AnyPayload: JWTPayload {
        func verify(using algorithm: some JWTAlgorithm) {}
    }
}
