// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Logging
import Messaging
import Runtime
import WireJSON

/// Waits for one reply on a reply topic.
final class ReplyTail {
    struct Question {
        var commandID: String
        /// Of the command that was sent.
        var digest: String
        var isDryRun: Bool

        /// Nothing follows the answer to a dry run, so that `pending` is the last word. Services from before replies named
        /// the digest name none.
        func isAnswered(by reply: ReceivedReply) -> Bool {
            reply.commandId == commandID && reply.commandDigest ?? digest == digest
                && reply.isDryRun == isDryRun && (reply.status != .pending || isDryRun)
        }
    }

    private let tail: KafkaTail
    private let topic: String
    private let publications: Publications

    /// Made before the command is sent, so that the reply cannot be missed.
    /// - Parameter keys: with them, only what a service has signed is a reply.
    init(kafka: KafkaConfiguration, topic: String, keys: DeploymentKeys, topics: Topics) throws {
        publications = Publications(keys, topics: topics)
        self.topic = topic
        let admin = try KafkaAdmin(configuration: kafka, logger: .quiet)
        defer { admin.close(timeout: .seconds(1)) }
        let partitions = try admin.existingTopics(timeout: .seconds(10))
        tail = try KafkaTail(
            configuration: kafka, partitions: partitions.filter { $0.key == topic }, from: .end, logger: .quiet)
    }

    /// - Returns: the first reply that answers for good, as it stands on the topic, and its status; `nil` when none came.
    func reply(to question: Question, within timeout: Duration) -> (line: String, status: ReplyStatus)? {
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            for record in tail.poll(maxRecords: 500, timeout: .milliseconds(100)) {
                guard let value = record.value,
                    let envelope = try? JSONValue(parsing: value), envelope["type"]?.stringValue == ReceivedReply.type,
                    let reply = envelope["data"].flatMap({ ReceivedReply($0) }), question.isAnswered(by: reply),
                    !publications.canCheck(topic) || publications.isGenuine(record)
                else { continue }
                return (String(decoding: value, as: UTF8.self), reply.status)
            }
        }
        return nil
    }

    func close() { tail.close() }
}
