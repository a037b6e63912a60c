// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Supervision
import WireJSON

/// The answers to many commands, as they come on reply topics.
final class AnswerBoard {
    private let scan: TopicScan?
    /// Reads the same topics from a time on.
    private let scanAgain: (Timestamp) throws -> TopicScan
    private let publications: Publications
    /// What is waited for, and what was said of it and when, in milliseconds since 1970.
    private var asked: [ReplyTail.Question: [(time: Int64, reply: ReceivedReply)]] = [:]

    /// Made before anything is sent, so that no answer is missed.
    /// - Parameter topics: with their numbers of partitions.
    init(
        _ kafka: KafkaAccess, _ admin: KafkaAdmin, _ topics: [String: Int], from start: KafkaTail.Start,
        _ publications: Publications
    ) throws {
        self.publications = publications
        let partitions = TopicScan.partitions(topics)
        scan = partitions.isEmpty ? nil : try TopicScan(kafka, admin, partitions, from: start)
        scanAgain = { try TopicScan(kafka, admin, partitions, from: .time($0)) }
    }

    /// What is said to this from now on is kept.
    func listen(for question: ReplyTail.Question) { asked[question] = asked[question] ?? [] }

    /// The same, and what was said since that time.
    func listen(for question: ReplyTail.Question, since time: Int64, unless stop: () -> Bool) throws {
        guard asked[question] == nil, scan != nil else { return }
        asked[question] = []
        try scanAgain(Timestamp(milliseconds: time)).catchUp(unless: stop) { take($0) }
    }

    /// The same; what was said before does not count.
    func expect(_ question: ReplyTail.Question) { asked[question] = [] }

    /// The last word; `nil` while there is none.
    /// - Parameter time: what was said before, in milliseconds since 1970, was said to something else.
    func answer(_ question: ReplyTail.Question, after time: Int64 = .min) -> ReceivedReply? {
        asked[question]?.first { $0.time >= time && question.isAnswered(by: $0.reply) }?.reply
    }

    /// Nothing is said to this any more.
    func forget(_ question: ReplyTail.Question) { asked[question] = nil }

    /// Whether the matter goes on somewhere.
    func isPending(_ question: ReplyTail.Question, after time: Int64) -> Bool {
        asked[question]?.contains { $0.time >= time && $0.reply.status == .pending } ?? false
    }

    func poll(_ timeout: Duration) throws { try scan?.poll(timeout).forEach { take($0) } }

    /// Reads what was answered up to this moment.
    func catchUp(unless stop: () -> Bool) throws { try scan?.catchUp(unless: stop) { take($0) } }

    private func take(_ record: KafkaRecord) {
        guard let value = record.value, let envelope = try? JSONValue(parsing: value),
            envelope["type"]?.stringValue == ReceivedReply.type, let data = envelope["data"],
            let reply = ReceivedReply(data)
        else { return }
        let question = ReplyTail.Question(
            commandID: reply.commandId, digest: reply.commandDigest, isDryRun: reply.isDryRun)
        guard asked[question] != nil else { return }
        let topic = record.topicPartition.topic
        guard !publications.canCheck(topic) || publications.isGenuine(record) else { return }
        asked[question, default: []].append((record.timestampMs, reply))
    }

}

/// Looks on a commands topic for what was sent again by somebody who has not said so. Anybody who may write commands can
/// name a letter in a header: only the very record that a run has claimed the letter for is its replay.
final class ReplayTrace {
    private let scan: TopicScan
    private var found: [String: [KafkaRecord]] = [:]

    /// - Parameter since: nothing was sent before.
    init(_ kafka: KafkaAccess, _ admin: KafkaAdmin, topic: String, partitions: Int, since: Timestamp) throws {
        scan = try TopicScan(kafka, admin, TopicScan.partitions([topic: partitions]), from: .time(since))
    }

    /// The letter's record, if it stands there at this moment; of several the first one.
    /// - Parameter digests: of the records that were to be sent.
    func find(_ letter: Letter, _ digests: Set<String>) throws -> KafkaRecord? {
        try scan.catchUp { record in
            guard let mark = record.header(Letter.replayHeader) else { return }
            found[String(decoding: mark, as: UTF8.self), default: []].append(record)
        }
        return found[letter.replayMark]?.first {
            digests.contains(RecordDigest.text(key: $0.key, value: $0.value, headers: $0.headers))
        }
    }

}
