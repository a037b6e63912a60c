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
    }

    /// What is said to this from now on is kept.
    func listen(for question: ReplyTail.Question) { asked[question] = asked[question] ?? [] }

    /// The same; what was said before does not count.
    func expect(_ question: ReplyTail.Question) { asked[question] = [] }

    /// The last word; `nil` while there is none.
    /// - Parameter time: what was said before, in milliseconds since 1970, was said to something else.
    func answer(_ question: ReplyTail.Question, after time: Int64 = .min) -> ReceivedReply? {
        asked[question]?.first { $0.time >= time && question.isAnswered(by: $0.reply) }?.reply
    }

    /// Whether the matter goes on somewhere.
    func isPending(_ question: ReplyTail.Question, after time: Int64) -> Bool {
        asked[question]?.contains { $0.time >= time && $0.reply.status == .pending } ?? false
    }

    func poll(_ timeout: Duration) throws { try scan?.poll(timeout).forEach { take($0) } }

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

/// Looks on a commands topic for what was sent again by somebody who has not said so.
final class ReplayTrace {
    private let scan: TopicScan
    private var found: [String: (TopicPartition, Int64)] = [:]

    /// - Parameter since: nothing was sent before.
    init(_ kafka: KafkaAccess, _ admin: KafkaAdmin, topic: String, partitions: Int, since: Timestamp) throws {
        scan = try TopicScan(kafka, admin, TopicScan.partitions([topic: partitions]), from: .time(since))
    }

    /// Where the command of the letter stands, if it stands there at this moment.
    func find(_ letter: Letter) throws -> (TopicPartition, Int64)? {
        try scan.catchUp { record in
            guard let mark = record.header(Letter.replayHeader) else { return }
            let name = String(decoding: mark, as: UTF8.self)
            // The first one counts.
            if found[name] == nil { found[name] = (record.topicPartition, record.offset) }
        }
        return found[letter.replayMark]
    }

}
