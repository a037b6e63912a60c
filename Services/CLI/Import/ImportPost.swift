// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Supervision
import WireJSON

/// Whom an import gives its lists.
protocol ImportSender: AnyObject {
    /// - Parameter subject: the second half of the Kafka key.
    func send(_ data: JSONValue, of type: String, _ id: CommandID, subject: String) throws
    /// Hears what has come, waiting a little for something.
    func listen() throws
    /// - Returns: the answer, which is told once; `nil` while there is none.
    /// - Throws: when there will be none, as it seems.
    func answer(to id: CommandID) throws -> ReceivedReply?
}

/// Sends lists and hears what became of them. A list is sent again, which never does it twice, until it is answered: brokers
/// and services may be away for a while.
final class ImportPost: ImportSender {
    private struct Sent {
        var question: ReplyTail.Question
        var record: Record
        var token: Int?
        var first: ContinuousClock.Instant
        var last: ContinuousClock.Instant
    }

    /// What is not answered.
    private var waiting: [CommandID: Sent] = [:]

    private let app: AppID
    private let isDryRun: Bool
    private let patience: Duration
    private let seal: Seal
    private let topics: [String: String]
    private let admin: KafkaAdmin
    private let answers: AnswerBoard
    private let records: RecordPost

    /// Sent again when it was not answered for so long.
    private static let pause: Duration = .seconds(10)

    init(
        _ deployment: Deployment, app: AppID, keyID: KeyID, isDryRun: Bool, patience: Duration,
        unless stop: @escaping () -> Bool
    ) throws {
        self.app = app
        self.isDryRun = isDryRun
        self.patience = patience
        seal = Seal(keyID.text, try deployment.secret(app: app, keyID: keyID))
        var kafka = try deployment.kafka()
        if kafka.configuration.consumer["fetch.wait.max.ms"] == nil {
            kafka.configuration.consumer["fetch.wait.max.ms"] = "10"
        }
        let reached = try kafka.reach(unless: stop)
        admin = reached.admin
        let replies = try deployment.replyTopic(app: app, keyID: keyID)
        let settings = try? deployment.appDirectory()[app]
        var topics: [String: String] = [:]
        for service in ["link", "sync"] {
            topics[service] =
                settings?.commandsTopic(of: service, deployment.topics, among: Set(reached.topics.keys))
                ?? deployment.topics.commands(service)
        }
        self.topics = topics
        for topic in topics.values.sorted() + [replies] where reached.topics[topic] == nil {
            throw Problem(
                .refused, "Kafka at \(kafka.configuration.bootstrapServers) has no topic \(topic), or hides it.",
                "Nothing was sent. Services make their topics when they start; TOPIC_PREFIX must be theirs.")
        }
        answers = try AnswerBoard(
            kafka, admin, [replies: reached.topics[replies] ?? 0], from: .end,
            Publications(try deployment.keys(), topics: deployment.topics))
        records = try RecordPost(kafka)
    }

    func close() { admin.close(timeout: .seconds(1)) }

    func send(_ data: JSONValue, of type: String, _ id: CommandID, subject: String) throws {
        var attributes = EventAttributes(
            id: id.text, source: Topics.toolSource, type: type, appID: app.text, time: Timestamp.now.rfc3339)
        if isDryRun { attributes.dryRun = "true" }
        let topic = topics[CommandType.service(of: type) ?? ""] ?? ""
        let record = try seal.command(to: topic, of: app, about: subject, attributes, data)
        let question = ReplyTail.Question(
            commandID: id, digest: CommandDigest.text(type: type, data: data), isDryRun: isDryRun)
        answers.expect(question)
        waiting[id] = Sent(
            question: question, record: record, token: try records.send(record), first: .now, last: .now)
    }

    func listen() throws {
        records.poll()
        try answers.poll(.milliseconds(20))
    }

    func answer(to id: CommandID) throws -> ReceivedReply? {
        guard var sent = waiting[id] else { return nil }
        if let reply = answers.answer(sent.question) {
            answers.forget(sent.question)
            waiting[id] = nil
            return reply
        }
        if let token = sent.token, case .failure(let error)? = records.outcome(token) {
            sent.token = nil
            waiting[id] = sent
            guard (error as? Problem)?.status == .away else { throw error }
        }
        guard .now - sent.first < patience else {
            throw Problem(
                .unanswered, "no answer within \(Int(patience.inSeconds)) s to the list \(id).",
                "Do the services run? identitybus doctor")
        }
        if .now - sent.last > Self.pause {
            sent.last = .now
            sent.token = try records.send(sent.record)
            waiting[id] = sent
        }
        return nil
    }
}
