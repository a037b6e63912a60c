// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Messaging
import WireJSON

/// One record as one line.
enum RecordLine {
    /// For programs: coordinates, key, headers, and the value as JSON (or as text when it is not JSON).
    static func json(_ record: KafkaRecord) -> String {
        var members: [(String, JSONValue)] = [
            ("topic", .string(record.topicPartition.topic)),
            ("partition", .number(JSONNumber(record.topicPartition.partition))),
            ("offset", .number(JSONNumber(record.offset))),
            ("key", record.key.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null),
            (
                "headers",
                .object(
                    JSONObject(
                        record.headers.map { header in
                            (header.name, header.value.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null)
                        }))
            ),
        ]
        let value = record.value.map { bytes in
            (try? JSONValue(parsing: bytes)) ?? .string(String(decoding: bytes, as: UTF8.self))
        }
        members.append(("value", value ?? .null))
        return String(decoding: JSONValue.object(JSONObject(members)).serialized(), as: UTF8.self)
    }

    /// For people: time, what, app, about what, and the data.
    static func text(_ record: KafkaRecord) -> String {
        let headers = record.headers.map { WireHeader($0.name, $0.value) }
        if let reason = record.header("dlq_reason") {
            let step = record.header("dlq_step") ?? []
            return "dead letter  \(text(reason)) (\(text(step)))  \(record.topicPartition)@\(record.offset)  "
                + text(record.header("dlq_error") ?? [])
        }
        guard let event = try? EnvelopeReader.read(value: record.value, headers: headers) else {
            return "?  \(record.topicPartition)@\(record.offset)  not an envelope"
        }
        let attributes = event.attributes
        let time = attributes.time.map { String($0.dropFirst(11).prefix(12)) } ?? "-"
        if let reply = try? WireJSONDecoder().decode(Reply<JSONValue>.self, from: event.data) {
            let detail =
                reply.reason.map { "\($0.rawValue): \(reply.message ?? "")" }
                ?? reply.result.map { pairs($0) } ?? reply.message ?? ""
            return "\(time)  \(pad("reply \(reply.status.rawValue)", 32))  \(attributes.appID ?? "-")  "
                + "\(short(reply.commandType))  \(detail)"
        }
        return "\(time)  \(pad(short(attributes.type), 32))  \(attributes.appID ?? "-")  \(pairs(event.data))"
    }

    private static func short(_ type: String) -> String {
        type.hasPrefix("identity.") && type.hasSuffix(".v1") ? String(type.dropFirst(9).dropLast(3)) : type
    }

    private static func pairs(_ value: JSONValue) -> String {
        guard let object = value.objectValue else { return text(value.serialized()) }
        return object.members.map { "\($0.name)=\($0.value.stringValue ?? text($0.value.serialized()))" }
            .joined(separator: " ")
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
