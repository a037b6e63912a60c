// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Messaging

/// Tells whether a service of the deployment wrote an event or a reply. Takes no key that signs a command of a service.
public struct Publications: Sendable {
    private let gatewayReplies: String
    private let eventsKeys: [SigningKey]
    private let gatewayKeys: [SigningKey]
    private let internalKeys: [SigningKey]

    public init(_ keys: DeploymentKeys, topics: Topics) {
        gatewayReplies = topics.gatewayReplies
        eventsKeys = keys.checking(.events).map { SigningKey($0) }
        gatewayKeys = keys.checking(.gateway).map { SigningKey($0) }
        internalKeys = keys.internalKeys.map { SigningKey($0) }
    }

    /// Whether there is anything to check records of this topic with.
    public func canCheck(_ topic: String) -> Bool { !keys(topic).isEmpty }

    public func isGenuine(_ record: KafkaRecord) -> Bool {
        do {
            try check(record)
            return true
        } catch {
            return false
        }
    }

    /// - Throws: `AuthenticationFailure` when no service wrote it.
    func check(_ record: KafkaRecord) throws(AuthenticationFailure) {
        let topic = record.topicPartition.topic
        let signature = try Signature.of(record)
        let keys: [SigningKey]
        switch signature.keyID {
        case topic == gatewayReplies ? Signature.gatewayKeyID : Signature.eventsKeyID: keys = self.keys(topic)
        // Versions before the keys by purpose signed everything with the internal key itself.
        case Signature.internalKeyID: keys = internalKeys
        default:
            throw AuthenticationFailure(
                .principalInvalid, "only the deployment's own services write events and replies")
        }
        guard !keys.isEmpty else {
            throw AuthenticationFailure(.keyUnknown, "signed as \(signature.keyID), and no key for that is configured")
        }
        guard keys.contains(where: { signature.isValid($0, record) }) else {
            throw AuthenticationFailure(.signatureInvalid, "the signature of \(signature.keyID) does not match")
        }
    }

    private func keys(_ topic: String) -> [SigningKey] { topic == gatewayReplies ? gatewayKeys : eventsKeys }
}

extension Signature {
    /// The record's signature.
    /// - Throws: `AuthenticationFailure` when there is none that can be read.
    static func of(_ record: KafkaRecord) throws(AuthenticationFailure) -> Signature {
        guard let header = record.header(HeaderName.signature) else {
            throw AuthenticationFailure(.signatureMissing, "no signature header")
        }
        guard let signature = Signature(header: header) else {
            throw AuthenticationFailure(.signatureMalformed, "signature header is not v1;kid=<id>;<base64 of 32 bytes>")
        }
        return signature
    }

    /// Whether the record is signed with this key.
    func isValid(_ key: SigningKey, _ record: KafkaRecord) -> Bool {
        isValid(
            key: key, topic: record.topicPartition.topic, headers: record.headers, value: record.value ?? [])
    }
}
