// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Logging
import Messaging
import Observability
import Runtime
import WireJSON

struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows events, replies and dead letters as they come, until Ctrl-C.",
        discussion: """
            Where the internal key or IDENTITYBUS_EVENTS_KEYS is known, a line about an event or a reply that no service \
            has signed says so.
            """)

    @Option(help: "Topics to watch; * stands for anything. Default: all events, replies and dead letters.")
    var topic: [String] = []

    @Flag(help: "Print each record as one JSON line.")
    var json = false

    @Flag(help: "Print authentication codes, tokens and the like too, in place of \u{2039}hidden\u{203A}.")
    var showSecrets = false

    @Flag(help: "Start with the records that are there already.")
    var fromBeginning = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let kafka = try deployment.kafka()
        let publications = Publications(try deployment.keys(), topics: deployment.topics)
        let admin = try KafkaAdmin(configuration: kafka, logger: .quiet)
        let existing = try admin.existingTopics(timeout: .seconds(10))
        admin.close(timeout: .seconds(1))
        let prefix = deployment.topics.prefix
        let patterns = topic.isEmpty ? ["*.events.v1", "identity.replies.*", "*.dlq.v1"] : topic
        let watched = existing.filter { name, _ in
            name.hasPrefix(prefix)
                && patterns.contains {
                    Self.matches(name, $0) || Self.matches(String(name.dropFirst(prefix.count)), $0)
                }
        }
        guard !watched.isEmpty else {
            throw ValidationError("no topic matches \(patterns.joined(separator: ", ")) at \(kafka.bootstrapServers)")
        }
        let tail = try KafkaTail(
            configuration: kafka, partitions: watched, from: fromBeginning ? .beginning : .end, logger: .quiet)
        FileHandle.standardError.write(
            Data("watching \(watched.keys.sorted().joined(separator: ", "))\n".utf8))
        let line = RecordLine(showsSecrets: showSecrets)
        let interruption = Interruption()
        while !interruption.isRequested {
            for record in tail.poll(maxRecords: 500, timeout: .milliseconds(200)) {
                if json {
                    print(line.json(record))
                } else {
                    print((isForged(record, publications) ? "NOT SIGNED BY A SERVICE  " : "") + line.text(record))
                }
            }
            fflush(nil)
        }
        tail.close()
    }

    private static func matches(_ name: String, _ pattern: String) -> Bool { fnmatch(pattern, name, 0) == 0 }

    private func isForged(_ record: KafkaRecord, _ publications: Publications) -> Bool {
        let topic = record.topicPartition.topic
        let isPublication = Self.matches(topic, "*.events.v1") || Self.matches(topic, "*identity.replies.*")
        return isPublication && publications.canCheck(topic) && !publications.isGenuine(record)
    }
}

/// One record as one line. What stands in records was written by others: nothing of it reaches the terminal but text.
struct RecordLine {
    var showsSecrets = false

    private static let hidden = JSONValue.string("\u{2039}hidden\u{203A}")

    private func shown(_ value: JSONValue) -> JSONValue {
        showsSecrets ? value : SecretMembers.replaced(in: value, by: Self.hidden)
    }

    /// For programs: coordinates, key, headers, and the value as JSON (or as text when it is not JSON).
    func json(_ record: KafkaRecord) -> String {
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
    func text(_ record: KafkaRecord) -> String { line(record).harmless }

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

    static func short(_ type: String) -> String {
        type.hasPrefix("identity.") && type.hasSuffix(".v1") ? String(type.dropFirst(9).dropLast(3)) : type
    }

    /// `a=1 b=[..]`: an object's members on one line.
    func pairs(_ value: JSONValue) -> String {
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
