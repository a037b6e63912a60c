// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Supervision

/// What operators do about the dead letters of the services, as the actions topics say it: read from the beginning, and
/// written.
final class HandlingLog {
    private let topics: Topics
    private let services: [String: String]
    private let scan: TopicScan?
    private var handled: [String: HandledLetters] = [:]
    /// The ids of the records of this run that were read.
    private var seen: Set<String> = []
    /// The latest time that each topic's broker has given out, and when that was read.
    private var moments: [String: (time: Int64, read: ContinuousClock.Instant)] = [:]
    /// The topics on which something that this run has just written was read.
    private var timed: Set<String> = []
    let run: String

    /// - Parameter services: those whose actions topic is there.
    init(_ kafka: KafkaAccess, _ admin: KafkaAdmin, _ topics: Topics, services: [String], run: String) throws {
        self.topics = topics
        self.run = run
        self.services = Dictionary(uniqueKeysWithValues: services.map { (topics.deadLetterActions($0), $0) })
        scan =
            services.isEmpty
            ? nil
            : try TopicScan(
                kafka, admin,
                services.map {
                    TopicPartition(topic: topics.deadLetterActions($0), partition: LetterHandling.partition)
                }, from: .beginning)
    }

    subscript(_ letter: Letter) -> HandledLetters.State { handled[letter.id.service]?[letter.place] ?? .init() }

    /// All letters of one service's that are not open any more, or in hand.
    func handled(_ letters: [Letter]) -> [HandledLetter] { letters.map { HandledLetter(letter: $0, state: self[$0]) } }

    /// Reads to the end.
    func catchUp(unless stop: () -> Bool = { false }) throws { try scan?.catchUp(unless: stop) { try take($0) } }

    func poll(_ timeout: Duration) throws { try scan?.poll(timeout).forEach { try take($0) } }

    /// Whether a record that this run wrote was read back: then everybody sees what it led to.
    func hasRead(_ id: String) -> Bool { seen.contains(id) }

    /// What time it is by the broker that dates what is done about the letter, in milliseconds since 1970: so late at least.
    /// No clock of this machine's has a say in it. `nil` before something that this run has written there was read.
    func now(_ letter: Letter) -> Int64? {
        let topic = topics.deadLetterActions(letter.id.service)
        return timed.contains(topic) ? moment(topic) : nil
    }

    private func moment(_ topic: String) -> Int64? {
        moments[topic].map { $0.time + (ContinuousClock.now - $0.read).inMilliseconds }
    }

    private func take(_ record: KafkaRecord) throws {
        let topic = record.topicPartition.topic
        guard let service = services[topic], let handling = LetterHandling(record) else { return }
        if handling.isDated { moments[topic] = (max(handling.time, moment(topic) ?? handling.time), .now) }
        if handling.run == run {
            seen.insert(handling.id)
            if handling.isDated { timed.insert(topic) } else if handling.act == .claimed { throw Self.undated(topic) }
        }
        handled[service, default: HandledLetters()].take(handling)
    }

    private static func undated(_ topic: String) -> Problem {
        Problem(
            .refused, "\(topic) has the times of those who write there: its message.timestamp.type is CreateTime.",
            "Nothing was sent: whose turn it is would depend on the clocks of all operators.",
            "Set it: kafka-configs.sh --alter --topic \(topic) --add-config message.timestamp.type=LogAppendTime")
    }

    func record(_ handling: LetterHandling, of letter: Letter) throws -> Record {
        try handling.record(
            to: topics.deadLetterActions(letter.id.service), service: letter.id.service,
            key: Array("\(letter.id.partition)@\(letter.id.offset)".utf8), now: .now)
    }

}

/// Writes records, and says what became of them.
final class RecordPost {
    /// Where a record stands.
    typealias Place = (partition: TopicPartition, offset: Int64)

    private let kafka: KafkaAccess
    private let producer: KafkaProducer
    private var next = 1
    private var topics: [Int: String] = [:]
    private var done: [Int: Result<Place, any Error>] = [:]

    /// A record that no broker has acknowledged after so long is not sent any more.
    static let timeout: Duration = .seconds(4)

    init(_ kafka: KafkaAccess) throws {
        var configuration = kafka.configuration
        configuration.producer["message.timeout.ms"] = "\(Self.timeout.components.seconds * 1000)"
        self.kafka = kafka
        producer = try KafkaProducer(configuration: configuration, logger: .quiet)
    }

    /// - Returns: the number to ask for it with.
    /// - Throws: `Problem`, or a `Hindrance` that is this record's own: it is too large.
    func send(_ record: Record) throws -> Int {
        let token = next
        next += 1
        do {
            try producer.send(record, token: token)
        } catch {
            _ = producer.poll(timeout: .zero)
            throw refusal(producer.fatalError ?? error, record.topic)
        }
        topics[token] = record.topic
        return token
    }

    func poll() { note(producer.poll(timeout: .zero)) }

    /// Waits until everything has gone.
    func flush() { note(producer.flush(timeout: Self.timeout + .seconds(1))) }

    /// What became of it; `nil` while nobody knows. Told once.
    func outcome(_ token: Int) -> Result<Place, any Error>? { done.removeValue(forKey: token) }

    /// - Throws: the first failure that nobody has asked for.
    func check(_ tokens: inout Set<Int>) throws {
        for token in tokens {
            guard let outcome = outcome(token) else { continue }
            tokens.remove(token)
            _ = try outcome.get()
        }
    }

    private func note(_ reports: [DeliveryReport]) {
        for report in reports {
            let topic = topics.removeValue(forKey: report.token) ?? ""
            if let error = report.error {
                done[report.token] = .failure(refusal(producer.fatalError ?? error, topic))
            } else {
                done[report.token] = .success((report.topicPartition, report.offset))
            }
        }
    }

    private func refusal(_ error: KafkaError, _ topic: String) -> any Error {
        if error.code == KafkaError.Code.messageTooLarge {
            return Hindrance("TOO_LARGE", "Kafka takes no record of this size on \(topic)")
        }
        let rights = [KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.clusterAuthorizationFailed]
        return rights.contains(error.code) ? kafka.noRight(to: "write", "Write", [topic]) : kafka.problem(error)
    }

}
