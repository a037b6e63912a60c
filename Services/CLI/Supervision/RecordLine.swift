// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Observability
package import WireJSON

/// One record as one line. What stands in records was written by others: nothing of it reaches the terminal but text.
package struct RecordLine {
    private let showsSecrets: Bool

    package init(showsSecrets: Bool = false) { self.showsSecrets = showsSecrets }

    private static let hidden = JSONValue.string("\u{2039}hidden\u{203A}")

    private func shown(_ value: JSONValue) -> JSONValue {
        showsSecrets ? value : SecretMembers.replaced(in: value, by: Self.hidden)
    }

    /// For programs: coordinates, key, headers, and the value as JSON (or as text when it is not JSON).
    package func json(_ record: KafkaRecord) -> String {
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
            (try? JSONValue(parsing: bytes)).map(shown) ?? .string(String(decoding: bytes, as: UTF8.self))
        }
        members.append(("value", value ?? .null))
        return String(decoding: JSONValue.object(JSONObject(members)).serialized(), as: UTF8.self).harmless
    }

    /// For people: time, what, app, about what, and the data.
    package func text(_ record: KafkaRecord) -> String { line(record).harmless }

    private func line(_ record: KafkaRecord) -> String {
        if let reason = record.header("dlq_reason") {
            let step = record.header("dlq_step") ?? []
            return "dead letter  \(Self.text(reason)) (\(Self.text(step)))  \(record.topicPartition)@\(record.offset)  "
                + Self.text(record.header("dlq_error") ?? [])
        }
        guard let event = try? EnvelopeReader.read(value: record.value, headers: record.headers) else {
            return "?  \(record.topicPartition)@\(record.offset)  not an envelope"
        }
        let attributes = event.attributes
        let time = attributes.time.map { String($0.dropFirst(11).prefix(12)) } ?? "-"
        if attributes.type == ReceivedReply.type, let reply = ReceivedReply(event.data) {
            let detail =
                reply.reason.map { "\($0): \(reply.message ?? "")" }
                ?? reply.result.map { pairs($0) } ?? reply.message ?? ""
            let what = (reply.isDryRun ? "dry run " : "reply ") + reply.status.rawValue
            return "\(time)  \(Self.pad(what, 32))  \(attributes.appID ?? "-")  "
                + "\(Self.short(reply.commandType))  \(detail)"
        }
        let name = Self.pad(Self.short(attributes.type), 32)
        return "\(time)  \(name)  \(attributes.appID ?? "-")  \(pairs(event.data))"
    }

    package static func short(_ type: String) -> String {
        type.hasPrefix("identity.") && type.hasSuffix(".v1") ? String(type.dropFirst(9).dropLast(3)) : type
    }

    /// `a=1 b=[..]`: an object's members on one line.
    package func pairs(_ value: JSONValue) -> String {
        let value = shown(value)
        guard let object = value.objectValue else { return Self.text(value.serialized()) }
        return object.members.map { "\($0.name)=\($0.value.stringValue ?? Self.text($0.value.serialized()))" }
            .joined(separator: " ")
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
