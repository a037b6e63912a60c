// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import WireJSON

/// What a record is and what it is about, as far as it tells. What stands in it was written by others.
package struct RecordFacts {
    package enum Kind: Sendable, Hashable {
        case event, command
        case reply(ReplyStatus, isDryRun: Bool)
        /// With the reason and the step at which it was set aside.
        case deadLetter(reason: String, step: String)
        case unreadable
    }

    package private(set) var kind = Kind.unreadable
    /// Of the event or the command; of a reply, what it answers.
    package private(set) var type: String?
    package private(set) var app: String?
    package private(set) var key: String?
    /// The command that it is, answers, or follows from.
    package private(set) var commandID: String?
    /// Every id that leads to it.
    package private(set) var ids: Set<String> = []
    /// In words: why a reply is a refusal, or what is wrong with a dead letter.
    package private(set) var message: String?
    package private(set) var data: JSONValue?

    package init(_ record: KafkaRecord) {
        key = record.key.map { String(decoding: $0, as: UTF8.self) }
        if let event = try? EnvelopeReader.read(value: record.value, headers: record.headers) { read(event, record) }
        if let reason = record.header("dlq_reason") {
            kind = .deadLetter(reason: Self.text(reason), step: Self.text(record.header("dlq_step") ?? []))
            message = Self.text(record.header("dlq_error") ?? [])
            data = nil
        }
        app = app ?? key.flatMap { key in key.firstIndex(of: "/").map { String(key[..<$0]) } }
    }

    private mutating func read(_ event: CloudEvent<JSONValue>, _ record: KafkaRecord) {
        let attributes = event.attributes
        app = attributes.appID
        ids = Set([attributes.id, attributes.correlationID, attributes.causationID].compactMap(\.self))
        if attributes.type == ReceivedReply.type, let reply = ReceivedReply(event.data) {
            kind = .reply(reply.status, isDryRun: reply.isDryRun)
            type = reply.commandType
            commandID = reply.commandId.text
            ids.insert(reply.commandId.text)
            message =
                reply.reason.map { "\($0): \(reply.message ?? "")" } ?? (reply.result == nil ? reply.message : nil)
            data = reply.result
        } else {
            let isCommand = Topics.isOfCommands(record.topicPartition.topic)
            kind = isCommand ? .command : .event
            type = attributes.type
            commandID = isCommand ? attributes.id : attributes.correlationID ?? attributes.id
            data = event.data
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
