// SPDX-License-Identifier: Apache-2.0

public import Crypto
import WireJSON

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
