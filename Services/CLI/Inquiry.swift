// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Crypto
import Foundation
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

/// The options of the commands that ask about people.
struct InquiryOptions: ParsableArguments {
    @Option(help: "The app.")
    var app: AppID

    @Option(
        help: """
            The API key to ask with. Default: the app's first one with the scope `support`, else `internal`, which signs as \
            the services do.
            """)
    var keyId: KeyID?

    @Option(
        parsing: .unconditional, help: "Seconds to wait for each of the services' answers.", transform: parsedSeconds)
    var wait = 10.0

    @OptionGroup var deployment: Deployment

    /// - Throws: `Problem`, also for an app that there is not: a mistyped one is no unknown person.
    func inquiry(unless stop: @escaping () -> Bool) throws -> Inquiry {
        try deployment.refuseUnknown(app)
        return try Inquiry(
            deployment, app: app, keyID: keyId ?? deployment.supportKey(of: app), patience: .seconds(wait), unless: stop
        )
    }

    /// - Parameter consequence: what that means for what is told.
    func unanswered(_ services: Set<String>, _ consequence: String) -> Problem {
        Problem(
            .unanswered,
            "no answer within \(wait.formatted()) s from: \(services.sorted().joined(separator: ", ")). \(consequence)",
            "Do they run? identitybus doctor")
    }
}

/// Asks services about people, over Kafka.
final class Inquiry {
    /// One question to one service.
    struct Question: Hashable {
        let service: String
        /// In full.
        let type: String
        /// The second half of the Kafka key.
        let subject: String
        let data: JSONValue
        /// When its producer says that it was made; now, if it does not say.
        var time: Timestamp?

        /// Any command, which is carried out.
        init(type: String, subject: String, data: JSONValue, time: Timestamp? = nil) {
            self.type = type
            service = CommandType.service(of: type) ?? ""
            self.subject = subject
            self.data = data
            self.time = time
        }

        init<Query: PersonQuery>(_ query: Query) {
            type = Query.type
            service = String(type.split(separator: ".")[1])
            subject = query.partitionSubject
            // What was read can be written.
            data = (try? JSONValue(parsing: WireJSONEncoder().encode(query))) ?? [:]
        }

        /// What `service` knows about an id.
        init(_ query: FactsQuery, of service: String) {
            self.service = service
            type = CommandType.fullName("\(service).facts")
            subject = query.id
            data = (try? JSONValue(parsing: WireJSONEncoder().encode(query))) ?? [:]
        }
    }

    private let deployment: Deployment
    private let app: AppID
    private let seal: Seal
    private let patience: Duration
    private let stop: () -> Bool
    private let admin: KafkaAdmin
    private let topics: [String: Int]
    private let answers: AnswerBoard
    private let records: RecordPost

    init(
        _ deployment: Deployment, app: AppID, keyID: KeyID, patience: Duration, unless stop: @escaping () -> Bool
    ) throws {
        self.deployment = deployment
        self.app = app
        self.patience = patience
        self.stop = stop
        seal = Seal(keyID.text, try deployment.secret(app: app, keyID: keyID))
        var kafka = try deployment.kafka()
        // Whoever waits for an answer on a partition that is not in the request which is under way waits for its end.
        if kafka.configuration.consumer["fetch.wait.max.ms"] == nil {
            kafka.configuration.consumer["fetch.wait.max.ms"] = "10"
        }
        let reached = try kafka.reach(unless: stop)
        (admin, topics) = (reached.admin, reached.topics)
        let replies = try deployment.replyTopic(app: app, keyID: keyID)
        guard let partitions = reached.topics[replies] else {
            throw Problem(
                .refused, "Kafka at \(kafka.configuration.bootstrapServers) has no topic \(replies), or hides it.",
                "Services make their topics when they start; TOPIC_PREFIX must be theirs.")
        }
        answers = try AnswerBoard(
            kafka, admin, [replies: partitions], from: .end,
            Publications(try deployment.keys(), topics: deployment.topics))
        records = try RecordPost(kafka)
    }

    func close() { admin.close(timeout: .seconds(1)) }

    /// - Returns: the answers that came, refusals too.
    func ask(_ questions: [Question]) throws -> [Question: ReceivedReply] {
        var waiting: [ReplyTail.Question: Question] = [:]
        var tokens: Set<Int> = []
        for question in questions {
            guard let (record, asked) = try record(question) else { continue }
            answers.expect(asked)
            waiting[asked] = question
            tokens.insert(try records.send(record))
        }
        var found: [Question: ReceivedReply] = [:]
        let deadline = ContinuousClock.now + patience
        while !waiting.isEmpty, .now < deadline {
            if stop() { throw Problem(.interrupted, "interrupted; only questions were asked") }
            records.poll()
            try records.check(&tokens)
            try answers.poll(.milliseconds(20))
            for (asked, question) in waiting {
                guard let reply = answers.answer(asked) else { continue }
                waiting[asked] = nil
                found[question] = reply
            }
        }
        return found
    }

    /// - Parameter advice: what to do beside asking with another key.
    static func refusal(_ reply: ReceivedReply, of question: Question, _ advice: String = "") -> Problem {
        Problem(
            .refused,
            "the \(question.service) service refused: \(reply.reason ?? "?")\(reply.message.map { ", \($0)" } ?? "")",
            "A key with the scope `support` may ask: --key-id\(advice)")
    }

    /// - Returns: `nil` when the service has no topic, so that nobody is there to ask.
    private func record(_ question: Question) throws -> (Record, ReplyTail.Question)? {
        let settings = try? deployment.appDirectory()[app]
        let topic =
            settings?.commandsTopic(of: question.service, deployment.topics, among: Set(topics.keys))
            ?? deployment.topics.commands(question.service)
        guard topics[topic] != nil else { return nil }
        let id = CommandID(UUID().uuidString.lowercased())
        var attributes = EventAttributes(
            id: id.text, source: Topics.toolSource, type: question.type, appID: app.text,
            time: (question.time ?? .now).rfc3339)
        attributes.traceParent = SpanContext.random(isSampled: true).traceParent
        let record = try seal.command(to: topic, of: app, about: question.subject, attributes, question.data)
        let asked = ReplyTail.Question(
            commandID: id, digest: CommandDigest.text(type: question.type, data: question.data), isDryRun: false)
        return (record, asked)
    }
}
