// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Supervision
import WireJSON

/// Waits for one reply on a reply topic.
final class ReplyTail {
    struct Question: Hashable {
        var commandID: CommandID
        /// Of the command that was sent.
        var digest: String
        var isDryRun: Bool

        func isAbout(_ reply: ReceivedReply) -> Bool {
            reply.commandId == commandID && reply.commandDigest == digest && reply.isDryRun == isDryRun
        }

        /// Nothing follows the answer to a dry run, so that `pending` is the last word.
        func isAnswered(by reply: ReceivedReply) -> Bool { reply.status != .pending || isDryRun }
    }

    private let kafka: KafkaAccess
    private let tail: KafkaTail
    private let topic: String
    private let publications: Publications
    /// What was said of the command while it is not answered for good.
    private(set) var pending: String?

    /// Made before the command is sent, so that the reply cannot be missed.
    /// - Parameter keys: with them, only what a service has signed is a reply.
    init(_ kafka: KafkaAccess, topic: String, partitions: Int, keys: DeploymentKeys, topics: Topics) throws {
        publications = Publications(keys, topics: topics)
        self.topic = topic
        self.kafka = kafka
        do {
            tail = try KafkaTail(
                configuration: kafka.configuration, partitions: [topic: partitions], from: .end, logger: .quiet)
        } catch let error as KafkaError {
            throw kafka.problem(error)
        }
    }

    /// - Parameter stop: asked ten times a second.
    /// - Returns: the first reply that answers for good, as it stands on the topic, and its status; `nil` when none came.
    /// - Throws: when there is no right to read it.
    func reply(
        to question: Question, within timeout: Duration, unless stop: () -> Bool
    ) throws(Problem) -> (line: String, status: ReplyStatus)? {
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline, !stop() {
            let records = tail.poll(maxRecords: 500, timeout: .milliseconds(100))
            if tail.unreadable[topic]?.code == KafkaError.Code.topicAuthorizationFailed {
                throw kafka.noRight(to: "read", "Read", [topic])
            }
            for record in records {
                guard let value = record.value,
                    let envelope = try? JSONValue(parsing: value), envelope["type"]?.stringValue == ReceivedReply.type,
                    let reply = envelope["data"].flatMap({ ReceivedReply($0) }), question.isAbout(reply),
                    !publications.canCheck(topic) || publications.isGenuine(record)
                else { continue }
                guard question.isAnswered(by: reply) else {
                    pending = reply.message ?? ""
                    continue
                }
                return (String(decoding: value, as: UTF8.self), reply.status)
            }
        }
        return nil
    }

    func close() { tail.close() }
}
