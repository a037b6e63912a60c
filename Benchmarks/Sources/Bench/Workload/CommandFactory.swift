// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Messaging
import Runtime
import WireJSON

/// Makes signed command records, as a producer in front of the platform would.
struct CommandFactory {
    private let topics: Topics
    private let key = SymmetricKey(data: Array(Stage.keySecret.utf8))
    private let internalKey = KeyPurpose.commands.key(
        from: SymmetricKey(data: Array(Stage.internalSecret.utf8)))
    private let encoder = WireJSONEncoder()
    private let time = Timestamp(milliseconds: 1_770_000_000_000).rfc3339

    init(_ stage: Stage) { topics = stage.broker.topics }

    /// The command that the reply to `command-<number>` answers.
    static func id(_ number: Int) -> String { "command-\(number)" }

    static func padded(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, 12 - text.count)) + text
    }

    /// Signed with the app's key, or with the deployment's when only services may send such a command.
    func record<Command: CommandMessage>(_ command: Command, id: String) throws -> ProducerRecord {
        var attributes = EventAttributes(
            id: id, source: "https://shop.example/backend", type: Command.type, appID: Stage.app)
        let key = partitionKey(app: Stage.app, subject: command.partitionSubject)
        attributes.subject = command.partitionSubject
        attributes.time = time
        attributes.dataContentType = "application/json"
        attributes.partitionKey = key
        attributes.traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let value = try encoder.encode(CloudEvent(attributes: attributes, data: command))
        let topic = topics.commands(CommandCatalog.service(of: Command.type) ?? "")
        return ProducerRecord(
            topic: topic, key: Array(key.utf8), value: value,
            headers: [
                KafkaHeader(name: HeaderName.contentType, value: Array(HeaderName.structuredContentType.utf8)),
                signature(value, topic, isInternal: Command.scope == .internal),
            ])
    }

    /// The same record with its signature made for other bytes.
    func withBadSignature(_ record: ProducerRecord) -> ProducerRecord {
        var bad = record
        let header = signature([], record.topic, isInternal: false)
        bad.headers = record.headers.map { $0.name == HeaderName.signature ? header : $0 }
        return bad
    }

    /// The same record cut off in the middle: no JSON.
    func truncated(_ record: ProducerRecord) -> ProducerRecord {
        var bad = record
        bad.value = record.value.map { Array($0.prefix($0.count / 2)) }
        return bad
    }

    private func signature(_ value: [UInt8], _ topic: String, isInternal: Bool) -> KafkaHeader {
        let signature = Signature(
            keyID: isInternal ? Signature.internalKeyID : Stage.keyID, secret: isInternal ? internalKey : key,
            topic: topic, headers: [], value: value)
        return KafkaHeader(name: HeaderName.signature, value: Array(signature.header.utf8))
    }
}
