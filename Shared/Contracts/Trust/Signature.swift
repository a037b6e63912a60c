// SPDX-License-Identifier: Apache-2.0

public import Crypto
import Foundation
import WireJSON

/// The `signature` header: `v1;kid=<api key id>;<base64 HMAC-SHA256(secret, signing string)>`
/// (docs/contracts.md "Signature"). The secret itself never travels.
public struct Signature: Sendable, Hashable {
    public var keyID: String
    public var code: [UInt8]

    /// The id under which the deployment's own services sign commands.
    public static let internalKeyID = "internal"
    /// The id under which services sign events and replies.
    public static let eventsKeyID = "events"
    /// The id under which the gateway signs the commands that it sends for others.
    public static let gatewayKeyID = "gateway"
    /// Ids that no API key may have.
    public static let reservedKeyIDs: Set<String> = [internalKeyID, eventsKeyID, gatewayKeyID]

    /// Reads a header value; `nil` when it does not have the form above.
    public init?(header: [UInt8]) {
        guard let text = String(validating: header, as: UTF8.self) else { return nil }
        let parts = text.split(separator: ";", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "v1", parts[1].hasPrefix("kid="), parts[1].utf8.count <= 4 + 255,
            let code = Data(base64Encoded: String(parts[2])), code.count == SHA256.byteCount
        else { return nil }
        keyID = String(parts[1].dropFirst(4))
        self.code = Array(code)
        guard !keyID.isEmpty else { return nil }
    }

    /// Signs a record.
    public init(keyID: String, secret: SymmetricKey, topic: String, headers: [Header], value: [UInt8]) {
        self.keyID = keyID
        code = Array(
            HMAC<SHA256>.authenticationCode(
                for: Self.signingString(topic: topic, headers: headers, value: value), using: secret))
    }

    public var header: String { "v1;kid=\(keyID);\(Data(code).base64EncodedString())" }

    /// Compares in constant time.
    public func isValid(secret: SymmetricKey, signingString: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signingString, using: secret)
    }

    /// What is signed: the topic, then the `ce_*` headers as `name=value` sorted by their bytes, then the raw value,
    /// joined by newlines. In structured mode there are no such headers and it is the topic, a newline and the value.
    public static func signingString(topic: String, headers: [Header], value: [UInt8]) -> [UInt8] {
        var result = Array(topic.utf8)
        result.reserveCapacity(result.count + value.count + 1)
        let lines = headers.filter { $0.name.hasPrefix(HeaderName.attributePrefix) }
            .map { Array($0.name.utf8) + [UInt8(ascii: "=")] + ($0.value ?? []) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        for line in lines {
            result.append(UInt8(ascii: "\n"))
            result.append(contentsOf: line)
        }
        result.append(UInt8(ascii: "\n"))
        result.append(contentsOf: value)
        return result
    }
}

/// Makes messages into signed records: attributes and data as one envelope, its content type, the signature. Services,
/// gateway and tools all write so. Deterministic: the same message gives the same bytes.
public struct Seal: Sendable {
    private let keyID: String
    private let key: SymmetricKey?

    /// - Parameter key: without one nothing is signed, which is for deployments that believe whoever may write.
    public init(_ keyID: String, _ key: SymmetricKey?) {
        self.keyID = keyID
        self.key = key
    }

    /// - Parameters:
    ///   - key: the record's, which is what the attributes call the partition key, where that is text.
    ///   - headers: beside the ones of the wire form.
    public func record(
        to topic: String, key: [UInt8]?, _ attributes: EventAttributes, _ data: some Encodable, headers: [Header] = []
    ) throws -> Record {
        let value = try WireJSONEncoder().encode(CloudEvent(attributes: attributes, data: data))
        let contentType = Header(HeaderName.contentType, HeaderName.structuredContentType)
        return signed(Record(topic: topic, key: key, value: value, headers: [contentType] + headers))
    }

    /// The same record with this signature, and no other.
    public func signed(_ record: Record) -> Record {
        var record = record
        record.headers.removeAll { $0.name == HeaderName.signature }
        guard let key else { return record }
        let signature = Signature(
            keyID: keyID, secret: key, topic: record.topic, headers: record.headers, value: record.value ?? [])
        record.headers.append(Header(HeaderName.signature, signature.header))
        return record
    }
}
