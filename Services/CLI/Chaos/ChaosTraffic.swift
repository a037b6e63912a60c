// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

/// Sends the commands of the stories at a steady rate, reads everything that the services publish, and writes the
/// history. Used by one thread.
final class ChaosTraffic {
    private(set) var history = ChaosHistory()
    private(set) var stories: ChaosStories
    private let ground: ChaosGround
    private let producer: KafkaProducer
    private let tail: KafkaTail
    private let publications: Publications
    private let services: [String: String]
    private let rate: Double
    private let start = ContinuousClock.now
    /// Sent, by what the answer names; with what follows it.
    private var open: [ChaosHistory.CommandKey: ChaosMessage] = [:]
    private var underWay: [Int: ChaosMessage] = [:]
    private var sendings = 0
    private var nextSending = 0.0
    private(set) var lastRecord = 0.0

    /// Nobody waits for more than that: an outage must not fill the topics.
    private static let mostUnanswered = 5000

    init(_ ground: ChaosGround, seed: UInt64, rate: Double) throws {
        self.ground = ground
        self.rate = rate
        stories = ChaosStories(seed: seed, keys: ground.keys, topics: ground.topics)
        publications = Publications(ground.keys.deployment, topics: ground.topics)
        producer = try KafkaProducer(configuration: ground.kafka, logger: .quiet)
        services = Dictionary(
            uniqueKeysWithValues: serviceNames.flatMap {
                [(ground.topics.events($0), $0), (ground.topics.deadLetters($0), $0)]
            })
        let names = services.keys + [ground.topics.replies]
        // The topics are new: their beginning needs no broker to know their ends yet.
        tail = try KafkaTail(
            configuration: ground.kafka,
            partitions: Dictionary(uniqueKeysWithValues: names.map { ($0, ground.partitions) }), from: .beginning,
            logger: .quiet)
    }

    /// Seconds since the start.
    var now: Double { (ContinuousClock.now - start).inSeconds }
    var unanswered: Int { open.count }
    /// Whether all is answered and nothing follows from it: an answer may be the last one and have its story go on.
    var isAtRest: Bool { open.isEmpty && stories.isAtRest }
    /// When the command was sent that waits for its final answer the longest.
    var oldestUnanswered: Double? { open.keys.compactMap { history.commands[$0]?.sentAt.first }.min() }
    var sent: Int { sendings }

    func note(_ change: (inout ChaosHistory) -> Void) { change(&history) }

    /// Sends what is due, and reads what is there. New stories begin only while it `isSending`; the others come to an end.
    func step(isSending: Bool) throws {
        while !isSending, let command = stories.nextDue() { try send(command) }
        while isSending, nextSending <= now, open.count < Self.mostUnanswered {
            nextSending = max(nextSending + 1 / rate, now - 1)
            try send(try stories.next())
        }
        try checkDeliveries()
        for record in tail.poll(maxRecords: 500, timeout: .milliseconds(10)) {
            lastRecord = now
            try read(record)
        }
    }

    func ask(atMost limit: Int) throws {
        for (question, command) in try stories.questions(atMost: limit) {
            history.questions.append(question)
            try send(command)
        }
    }

    func close() {
        producer.close(timeout: .seconds(1))
        tail.close()
    }

    // MARK: Sending

    private func send(_ command: ChaosMessage) throws {
        let key = command.sent.key
        if history.commands[key] == nil {
            history.commands[key] = command.sent
            open[key] = command
        }
        history.commands[key]?.sentAt.append(now)
        try produce(command)
    }

    private func produce(_ command: ChaosMessage) throws {
        sendings += 1
        underWay[sendings] = command
        try producer.send(command.record, token: sendings)
    }

    /// What Kafka did not take is sent again, as any producer would.
    private func checkDeliveries() throws {
        for report in producer.poll(timeout: .zero) {
            guard let command = underWay.removeValue(forKey: report.token), report.error != nil else { continue }
            try produce(command)
        }
    }

    // MARK: Reading

    private func read(_ record: KafkaRecord) throws {
        let topic = record.topicPartition.topic
        let place = "\(record.topicPartition)@\(record.offset)"
        if let service = services[topic], topic == ground.topics.deadLetters(service) {
            func text(_ header: String) -> String { String(decoding: record.header(header) ?? [], as: UTF8.self) }
            let what = "\(text("dlq_reason")) (\(text("dlq_step"))) \(text("dlq_error"))".harmless
            return history.deadLetters.append(.init(place: place, what: what))
        }
        guard publications.isGenuine(record), let value = record.value,
            let event = try? EnvelopeReader.read(value: value, headers: record.headers)
        else {
            return history.unsigned.append(.init(place: place, what: RecordLine().text(record)))
        }
        let fingerprint = SHA256.hash(data: value).hex
        if let service = services[topic] {
            // A note is of no one command.
            if event.attributes.type == DecisionsNoted.type { return }
            // The reader of envelopes leaves it out: services do not need it.
            let sequence = (try? JSONValue(parsing: value))?["sequence"]?.stringValue
            return history.events.append(
                .init(
                    service: service, id: event.attributes.id, type: RecordLine.short(event.attributes.type),
                    subject: event.attributes.subject ?? "", causation: event.attributes.causationID ?? "",
                    sequence: sequence ?? "", data: event.data, fingerprint: fingerprint))
        }
        guard let reply = ReceivedReply(event.data) else { return }
        try take(reply, id: event.attributes.id, fingerprint)
    }

    private func take(_ reply: ReceivedReply, id: String, _ fingerprint: String) throws {
        let key = ChaosHistory.CommandKey(id: reply.commandId.text, digest: reply.commandDigest)
        let isFinal = reply.status != .pending
        history.answers[key, default: []].append(
            .init(
                command: key, id: id, outcome: reply.reason ?? reply.status.rawValue, isFinal: isFinal,
                result: reply.result, fingerprint: fingerprint, at: now))
        guard isFinal, let command = open.removeValue(forKey: key) else { return }
        if reply.status == .succeeded { try stories.goOn(command, result: reply.result) }
    }
}
