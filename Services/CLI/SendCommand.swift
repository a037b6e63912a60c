// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Logging
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

struct SendCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Signs a command and sends it.",
        discussion: """
            With --wait, prints the reply envelope as one JSON line. Exit status: 0 succeeded (or sent), 3 rejected, \
            4 expired or no reply in time, 64 usage.
            """)

    @Argument(help: "The command's type: link.request or, in full, identity.link.request.v1.")
    var type: String

    @Option(help: "The app the command is for.")
    var app: AppID

    @Option(help: "The API key to sign with; `internal` signs as the services do.")
    var keyId: KeyID

    @Option(help: "The command's data, a JSON object.")
    var data: String

    @Option(help: "The command's id; the same id and source again is the same command. Default: a new UUID.")
    var id = CommandID(UUID().uuidString.lowercased())

    @Option(help: "The command's source.")
    var source = "identitybus-cli"

    @Option(help: "Seconds to wait for the reply. Default: not at all; with --dry-run 40.")
    var wait: Double?

    @Flag(help: "Only ask what would happen: nothing is changed, the id is not taken, the reply names the events.")
    var dryRun = false

    @OptionGroup var deployment: Deployment

    private static let rejected = ExitCode(3)
    private static let unanswered = ExitCode(4)

    func run() throws {
        // Longer than services wait for each other before they tell what they know.
        let wait = wait ?? (dryRun ? 40 : nil)
        let (record, digest) = try record()
        let kafka = try deployment.kafka()
        let topic = try deployment.replyTopic(app: app, keyID: keyId)
        let keys = try deployment.keys()
        let tail = try wait.map { _ in
            try ReplyTail(kafka: kafka, topic: topic, keys: keys, topics: deployment.topics)
        }
        defer { tail?.close() }
        try deliver(record, kafka)
        guard let tail, let wait else { return }
        let question = ReplyTail.Question(commandID: id, digest: digest, isDryRun: dryRun)
        guard let (line, status) = tail.reply(to: question, within: .seconds(wait)) else {
            FileHandle.standardError.write(Data("no reply within \(wait) s\n".utf8))
            throw Self.unanswered
        }
        print(line.harmless)
        switch status {
        case .succeeded, .pending: return
        case .rejected: throw Self.rejected
        case .expired: throw Self.unanswered
        }
    }

    /// - Returns: the digest of the command too.
    private func record() throws -> (Record, String) {
        let type = CommandType.fullName(type)
        guard let service = CommandType.service(of: type) else {
            throw ValidationError("\(type) is not a type such as link.request or identity.link.request.v1")
        }
        let value: JSONValue
        do {
            value = try JSONValue(parsing: Array(data.utf8))
        } catch {
            throw ValidationError("--data is not JSON: \(error)")
        }
        let topic = deployment.topics.commands(service)
        let known = services.flatMap { $0.commandTypes }.first { $0.name == type }
        let key = partitionKey(app: app, subject: known?.partitionSubject(of: value) ?? id.text)
        var attributes = EventAttributes(id: id.text, source: source, type: type, appID: app.text)
        attributes.time = Timestamp.now.rfc3339
        attributes.dataContentType = "application/json"
        attributes.partitionKey = key
        if dryRun { attributes.dryRun = "true" }
        let seal = Seal(keyId.text, try deployment.secret(app: app, keyID: keyId))
        let record = try seal.record(to: topic, key: Array(key.utf8), attributes, value)
        return (record, CommandDigest.text(type: type, data: value))
    }

    private func deliver(_ record: Record, _ kafka: KafkaConfiguration) throws {
        let producer = try KafkaProducer(configuration: kafka, logger: .quiet)
        try producer.send(record, token: 1)
        let reports = producer.flush(timeout: .seconds(10))
        producer.close(timeout: .seconds(1))
        guard let report = reports.first else {
            FileHandle.standardError.write(Data("the broker at \(kafka.bootstrapServers) did not answer\n".utf8))
            throw ExitCode.failure
        }
        if let error = report.error {
            FileHandle.standardError.write(Data("the broker refused the command: \(error)\n".utf8))
            throw ExitCode.failure
        }
    }
}

/// Waits for one reply on a reply topic.
final class ReplyTail {
    struct Question {
        var commandID: CommandID
        /// Of the command that was sent.
        var digest: String
        var isDryRun: Bool

        /// Nothing follows the answer to a dry run, so that `pending` is the last word.
        func isAnswered(by reply: ReceivedReply) -> Bool {
            reply.commandId == commandID && reply.commandDigest == digest
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
