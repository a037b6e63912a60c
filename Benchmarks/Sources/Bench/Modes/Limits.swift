// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Messaging
import Storage
import WireJSON

/// What the parts of the work could do alone, in the same run and on the same bytes as a drain. Per second.
struct Limits {
    /// Commands consumed, and their replies and events produced, without looking at them.
    var kafka = 0.0
    /// Transactions with one small write.
    var commits = 0.0
    /// Journal rows in transactions of 500.
    var rows = 0.0
    /// HMAC-SHA256 of a command's value.
    var signatures = 0.0
    /// Commands parsed and decoded.
    var decoding = 0.0
    /// Replies encoded.
    var encoding = 0.0

    /// - Parameter drain: was run on the stage just before.
    static func run(_ stage: Stage, _ drain: Drain) throws -> Limits {
        var limits = Limits()
        limits.kafka = try kafka(stage, drain)
        try store(stage, drain, &limits)
        let values = drain.records.prefix(2000).compactMap(\.value)
        let key = SymmetricKey(data: Array(Stage.keySecret.utf8))
        limits.signatures = rate(of: values.count) {
            for value in values { _ = HMAC<SHA256>.authenticationCode(for: value, using: key) }
        }
        let request = CommandType(LinkRequest.self)
        limits.decoding = rate(of: values.count) {
            for value in values {
                // The few that are no JSON are part of the work.
                guard let event = try? EnvelopeReader.read(value: value, headers: []) else { continue }
                _ = request.partitionSubject(of: event.data)
            }
        }
        limits.encoding = try encoding()
        return limits
    }

    private static func kafka(_ stage: Stage, _ drain: Drain) throws -> Double {
        let tail = try stage.broker.tail([stage.commands], from: .beginning, fetchWait: 20)
        defer { tail.close() }
        let producer = try KafkaProducer(configuration: stage.broker.kafka, logger: .quiet)
        defer { producer.close(timeout: .seconds(5)) }
        let topic = stage.commands
        let total = (drain.workload.preparation + drain.records).count { $0.topic == topic }
        let perCommand = Double(drain.events.messages) / Double(max(1, drain.commands))
        let topics = Broker.limitTopics.map { stage.broker.topics.prefix + $0 }
        let source = drain.records.prefix(2000).compactMap(\.value).joined().prefix(1 << 20)
        let reply = Array(source.prefix(drain.replies.meanBytes))
        let event = Array(source.prefix(drain.events.meanBytes))
        var consumed = 0
        var owed = 0.0
        var start = ContinuousClock.now
        while consumed < total {
            let records = tail.poll(maxRecords: 500, timeout: .seconds(5))
            guard !records.isEmpty else { throw BenchError("only \(consumed) of \(total) records could be read again") }
            // Connecting is not part of it.
            if consumed == 0 { start = .now }
            for record in records {
                consumed += 1
                try producer.send(Record(topic: topics[0], key: record.key, value: reply), token: 0)
                owed += perCommand
                while owed >= 1 {
                    try producer.send(Record(topic: topics[1], key: record.key, value: event), token: 0)
                    owed -= 1
                }
            }
            _ = producer.poll(timeout: .zero)
        }
        while producer.outstanding > 0 { _ = producer.poll(timeout: .seconds(1)) }
        return Double(total) / (ContinuousClock.now - start).inSeconds
    }

    private static func store(_ stage: Stage, _ drain: Drain, _ limits: inout Limits) throws {
        let database = try stage.store(of: Stage.scratchStore)
        defer { database.close() }
        try Migrator(StorageSchema.migrations + [counter]).run(on: database)
        let commits = 500
        limits.commits = try rate(of: commits) {
            for _ in 0..<commits {
                _ = try database.transaction { try $0.execute("UPDATE counter SET n = n + 1 WHERE id = $1", [1]) }
            }
        }
        let digest = [UInt8](repeating: 7, count: 32)
        let perCommand = (drain.replies.bytes + drain.events.bytes) / max(1, drain.commands)
        let messages = [UInt8](repeating: UInt8(ascii: "m"), count: perCommand)
        var offset: Int64 = 0
        limits.rows = try rate(of: 500) {
            let entries = (0..<500).map { _ in
                offset += 1
                return JournalEntry(
                    position: JournalPosition(
                        topic: "commands", partition: Int32(offset % 12), incarnation: 1, offset: offset),
                    key: CommandKey(app: Stage.app, source: "https://shop.example/backend", id: "command-\(offset)"),
                    digest: digest, type: LinkRequest.type, subject: "customer-\(offset)", outcome: "succeeded",
                    reason: nil, messages: messages, loggedAt: 1_770_000_000_000,
                    decidedAt: 1_770_000_000_000)
            }
            _ = try database.transaction { try Journal.append(entries, in: $0) }
        }
    }

    private static let counter = Migration(
        number: 900, name: "counter of the benchmark",
        statements: [
            "CREATE TABLE counter (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)",
            "INSERT INTO counter (id, n) VALUES (1, 0)",
        ])

    private static func encoding() throws -> Double {
        let encoder = WireJSONEncoder()
        var attributes = EventAttributes(
            id: "8e0c5f52-1b6d-4a3e-9a57-2f60d17c4388", source: "identitybus/link", type: "identity.reply.v1",
            appID: Stage.app)
        attributes.time = "2026-01-02T03:04:05.678Z"
        attributes.dataContentType = "application/json"
        attributes.correlationID = "command-1"
        attributes.causationID = "command-1"
        let result = LinkResult(
            userId: "0123456789abcdef01234567", installId: UserWorkload.installID(1), isActive: true,
            personCreated: true, version: 1)
        return try rate(of: 1000) {
            for _ in 0..<1000 {
                let reply = Reply<RawJSON>(
                    commandId: "command-1", commandType: LinkRequest.type, status: .succeeded,
                    result: RawJSON(try encoder.encode(result)))
                _ = try CloudEvent(attributes: attributes, data: reply).encoded()
            }
        }
    }

    func report(_ drain: Drain) -> String {
        var table = Table("limits, \(drain.engine.name), one thread", "per second", "drain is")
        func add(_ name: String, _ limit: Double) { table.add(name, limit.shown, (drain.rate / limit).percent) }
        add("Kafka: consume, produce the same bytes", kafka)
        add("store: journal rows, 500 a transaction", rows)
        table.add("store: transactions of one write", commits.shown)
        add("HMAC-SHA256 of a command", signatures)
        add("JSON: parse and decode a command", decoding)
        add("JSON: encode a reply", encoding)
        let sum = 1 / kafka + 1 / rows + 1 / signatures + 1 / decoding + 1 / encoding
        add("all of these, one after the other", 1 / sum)
        return table.text
    }
}
