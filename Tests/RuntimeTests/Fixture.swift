// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Testing
import WireJSON

@testable import Runtime

/// Apps, keys and signed records for the tests of this target.
enum Fixture {
    static let topic = "identity.fake.commands.v1"
    static let internalKey = SymmetricKey(data: Array("the-internal-key-of-the-tests".utf8))
    static let now = Timestamp(milliseconds: 1_800_000_000_000)

    static func key(
        _ id: String, _ scopes: Set<Scope>, expires: Timestamp? = nil, isRevoked: Bool = false
    ) -> APIKey {
        APIKey(id: KeyID(id), secret: secret(id), scopes: scopes, expires: expires, isRevoked: isRevoked)
    }

    static func secret(_ id: String) -> SymmetricKey { SymmetricKey(data: Array("demo-secret-\(id)".utf8)) }

    static let apps = AppDirectory([
        app(
            "demo",
            [
                key("demo-backend", [.userLink, .userDelete]), key("demo-sdk", [.sdk]),
                key("demo-expired", [.userLink], expires: Timestamp(milliseconds: 0)),
                key("demo-now", [.userLink], expires: now),
                key("demo-soon", [.userLink], expires: Timestamp(milliseconds: now.milliseconds + 1)),
                key("demo-revoked", [.userLink], isRevoked: true),
                key("demo-both", [.userLink], expires: Timestamp(milliseconds: 0), isRevoked: true),
            ]),
        app("other", [key("other-backend", [.userLink])]),
    ])

    private static func app(_ id: String, _ keys: [APIKey]) -> AppSettings {
        AppSettings(id: AppID(id), keys: Dictionary(uniqueKeysWithValues: keys.map { ($0.id, $0) }))
    }

    static let keys = DeploymentKeys(internalKeys: [internalKey])

    static func authenticator(_ trust: Authenticator.Trust = .signed, keys: DeploymentKeys = keys) -> Authenticator {
        Authenticator(trust: trust, apps: apps, keys: keys, topics: Topics())
    }

    /// What the deployment signs with under one of its own ids, or the secret of an API key.
    static func signingKey(_ id: String) -> SymmetricKey {
        switch id {
        case Signature.internalKeyID: KeyPurpose.commands.key(from: internalKey)
        case Signature.gatewayKeyID: KeyPurpose.gateway.key(from: internalKey)
        case Signature.eventsKeyID: KeyPurpose.events.key(from: internalKey)
        default: secret(id)
        }
    }

    /// An envelope about `data`.
    static func attributes(_ type: String = FakeService.put, id: String = "c1", app: String = "demo") -> EventAttributes
    {
        var attributes = EventAttributes(id: id, source: "test", type: type, appID: app)
        attributes.subject = "s1"
        return attributes
    }

    /// A reply as it stands on its topic.
    static func reply(_ value: [UInt8]) throws -> CloudEvent<ReceivedReply> {
        let event = try EnvelopeReader.read(value: value, headers: [])
        return CloudEvent(attributes: event.attributes, data: try #require(ReceivedReply(event.data)))
    }

    /// A signed record as producers write it.
    static func record(
        _ attributes: EventAttributes = attributes(), _ data: JSONValue = ["key": "k", "value": "v"],
        signedBy keyID: String? = "demo-backend", secret: SymmetricKey? = nil, offset: Int64 = 0, partition: Int32 = 0,
        key: String = "demo/k", topic: String = Fixture.topic
    ) throws -> KafkaRecord {
        let value = try CloudEvent(attributes: attributes, data: data).encoded()
        var headers = [Header(HeaderName.contentType, HeaderName.structuredContentType)]
        if let keyID {
            let signature = Signature(
                keyID: keyID, secret: secret ?? signingKey(keyID), topic: topic, headers: headers, value: value)
            headers.append(Header(HeaderName.signature, signature.header))
        }
        return KafkaRecord(
            topicPartition: TopicPartition(topic: topic, partition: partition), offset: offset, timestampMs: 1,
            key: Array(key.utf8), value: value, headers: headers)
    }
}

extension Entry {
    /// Without the notes for a replay.
    var told: [OutboxRecord] { messages.filter { !Self.isNote($0) } }

    func notes() throws -> [CloudEvent<DecisionsNoted>] {
        try messages.filter(Self.isNote).map { message in
            let event = try EnvelopeReader.read(value: message.value, headers: message.headers)
            return CloudEvent(
                attributes: event.attributes, data: try WireJSONDecoder().decode(DecisionsNoted.self, from: event.data))
        }
    }

    private static func isNote(_ message: OutboxRecord) -> Bool {
        let event = try? EnvelopeReader.read(value: message.value, headers: message.headers)
        return event?.attributes.type == DecisionsNoted.type
    }
}
