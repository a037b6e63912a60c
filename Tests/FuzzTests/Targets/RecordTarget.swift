// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Link
import Sync
import User
import Verification
import WireJSON

@testable import Runtime

/// Input: ``RecordText``. A header `sign` names the key that signs the record, `key` is its Kafka key, and `topic` where it
/// stands, if not among the commands.
enum RecordTarget {
    static func run(_ bytes: [UInt8]) throws {
        try read(bytes, LinkService.self)
        try read(bytes, UserService.self)
        try read(bytes, SyncService.self)
        try read(bytes, VerificationService.self)
    }

    private static func read<Service: CommandService>(_ bytes: [UInt8], _: Service.Type) throws {
        var text = RecordText(bytes)
        let (signer, key, topic) = (text.take("sign"), text.take("key"), text.take("topic"))
        var record = KafkaRecord(
            topicPartition: TopicPartition(topic: topic ?? FuzzWorld.topics.commands(Service.name), partition: 3),
            offset: 7, timestampMs: 1, key: key.map { Array($0.utf8) }, value: text.value, headers: text.headers)
        if let signer {
            let signature = Signature(
                keyID: signer, secret: FuzzWorld.secret(signer), topic: record.topicPartition.topic,
                headers: record.headers, value: record.value ?? [])
            record.headers.append(Header(HeaderName.signature, signature.header))
        }
        for trust in Authenticator.Trust.allCases {
            let authenticator = Authenticator(
                trust: trust, apps: FuzzWorld.apps, keys: FuzzWorld.keys, topics: FuzzWorld.topics)
            let reader = InboundReader<Service>(authenticator: authenticator, topics: FuzzWorld.topics)
            try check(reader.read(record, now: FuzzWorld.now), Service.name)
        }
    }

    private static func check(_ inbound: Inbound<some Sendable>, _ service: String) throws {
        let writer = MessageWriter(service: service, topics: FuzzWorld.topics, keys: FuzzWorld.keys)
        var messages: [OutboxRecord] = []
        switch inbound {
        case .skipped: return
        case .accepted(let command):
            try hold(command.digest.count == 32, "a digest of \(command.digest.count) bytes")
            if case .failure(let rejection) = command.body {
                try hold(!rejection.message.isEmpty, "rejected without a word")
                let outcome = Outcome.rejected(rejection)
                if let answer = try writer.reply(outcome, to: command, index: 0, now: FuzzWorld.now) {
                    messages.append(answer.reply)
                }
            }
        case .refused(let refusal):
            try hold(refusal.deadLetter != nil || refusal.answer != nil, "nobody is told")
            if let cause = refusal.deadLetter {
                try hold(
                    !cause.detail.hasControlCharacter && !cause.detail.isEmpty, "a dead letter says: \(cause.detail)")
                messages.append(writer.deadLetter(refusal.record, cause, now: FuzzWorld.now))
            }
            let log = MessageWriter.Log(cluster: "cluster", incarnation: 0)
            if let answer = refusal.answer {
                messages.append(try writer.notice(answer, of: refusal.record, in: log, now: FuzzWorld.now))
            }
        }
        try FuzzMessages.check(messages)
    }
}

/// What the product writes.
enum FuzzMessages {
    /// Everybody can read it, and the store keeps it as it is.
    static func check(_ messages: [OutboxRecord]) throws {
        try hold(try OutboxCodec.decode(OutboxCodec.encode(messages)) == messages, "the outbox changes a message")
        for message in messages where message.role != .deadLetter {
            let event: CloudEvent<JSONValue>
            do throws(EnvelopeError) {
                event = try EnvelopeReader.read(value: message.value, headers: message.headers)
            } catch {
                let text = (message.value ?? []).text
                throw Broken("a message that is written cannot be read: \(error.detail) in \(text)")
            }
            guard message.isReply else { continue }
            try hold(ReceivedReply(event.data) != nil, "a reply is none")
        }
    }
}
