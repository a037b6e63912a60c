// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage
import WireJSON

/// A record, read and judged as far as that needs no state.
struct Intake<Command: Sendable> {
    var record: KafkaRecord
    var verdict: Verdict
    /// Whether it may have been decided in a log that is forgotten.
    var isTooOldToTell = false

    enum Verdict {
        /// The sender is known: the record is answered, and its answer is remembered under the command's key.
        case admitted(Admitted<Command>)
        /// Unreadable or not authenticated: set aside, remembered only under the record's coordinates. When the
        /// envelope could be read, its sender is told.
        case refused(reason: String, step: DeadLetter.Step, detail: String, attempts: Int = 1, tell: Notice?)
        /// The sender is known and may not send this: told so, and not remembered. The command's id stays free for
        /// those who may use it.
        case forbidden(Notice)
        /// Of a topic that is subscribed to, and of a type that is not: passed over.
        case ignored
    }

    /// What to tell the sender of a record that is not admitted.
    struct Notice {
        var attributes: EventAttributes
        var digest: [UInt8]
        var rejection: Rejection

        init(_ event: CloudEvent<JSONValue>, _ rejection: Rejection) {
            attributes = event.attributes
            digest = CommandDigest.bytes(type: event.attributes.type, data: event.data)
            self.rejection = rejection
        }

        init(_ command: Admitted<Command>, _ rejection: Rejection) {
            attributes = command.attributes
            digest = command.digest
            self.rejection = rejection
        }
    }
}

/// An authenticated command. A class, because it is handed around a lot and never changes: a copy is one reference
/// instead of some thirty.
final class Admitted<Command: Sendable>: Sendable {
    /// As they were sent, but for `replyto` where the app has a topic of its own (``ReplyRule``).
    let attributes: EventAttributes
    let key: CommandKey
    let digest: [UInt8]
    let app: AppSettings
    let principal: Principal
    let expiry: Timestamp?
    /// False for events and replies that the service subscribes to: nobody waits for an answer to them.
    let isCommand: Bool
    /// The forward that this reply settles: it is the final one.
    let answers: String?
    /// The command, or why it is rejected whatever the state.
    let body: Result<Command, Rejection>

    init(
        attributes: EventAttributes, key: CommandKey, digest: [UInt8], app: AppSettings, principal: Principal,
        expiry: Timestamp?, isCommand: Bool, answers: String?, body: Result<Command, Rejection>
    ) {
        self.attributes = attributes
        self.key = key
        self.digest = digest
        self.app = app
        self.principal = principal
        self.expiry = expiry
        self.isCommand = isCommand
        self.answers = answers
        self.body = body
    }

    /// Decided and told, but nothing is kept of it.
    var isDryRun: Bool { isCommand && attributes.isDryRun }

    func context(now: Timestamp, secrets: DerivedSecrets) -> DecisionContext {
        DecisionContext(command: key, app: app, principal: principal, now: now, expiry: expiry, secrets: secrets)
    }
}

/// Turns records into intakes: envelope, credential, scope, data. Pure.
struct IntakeReader<Service: CommandService> {
    let authenticator: Authenticator
    let topics: Topics
    private let replies: ReplyRule
    /// What is read, by type.
    private let inputs: [String: Input<Service.Command>]
    /// The other topics that are read beside the commands topic.
    private let sources: [String: InputSource]

    init(authenticator: Authenticator, topics: Topics) {
        self.authenticator = authenticator
        self.topics = topics
        replies = ReplyRule(topics: topics, apps: authenticator.apps)
        inputs = Dictionary(Service.inputs.map { ($0.type, $0) }) { first, _ in first }
        let others = Service.sources.filter { $0 != .commands }
        sources = Dictionary(others.map { ($0.topic(topics, of: Service.name), $0) }) { first, _ in first }
    }

    func read(_ record: KafkaRecord, now: Timestamp) -> Intake<Service.Command> {
        Intake(record: record, verdict: verdict(record, now))
    }

    private func verdict(_ record: KafkaRecord, _ now: Timestamp) -> Intake<Service.Command>.Verdict {
        var event: CloudEvent<JSONValue>
        do {
            event = try EnvelopeReader.read(
                value: record.value, headers: record.headers.map { WireHeader($0.name, $0.value) })
        } catch {
            return .refused(reason: error.reason.rawValue, step: .decode, detail: error.detail, tell: nil)
        }
        let input = inputs[event.attributes.type]
        if let source = sources[record.topicPartition.topic] {
            guard let input, input.source == source else { return .ignored }
            return notification(event, input, record, now)
        }
        do {
            let (app, principal) = try authenticator.authenticate(record, event.attributes, now: now)
            let misdirection = replies.direct(&event.attributes, app, principal)
            guard let input, let scope = input.scope else { return unknownType(event) }
            do throws(Rejection) {
                try principal.authorize(scope)
                if let misdirection { throw misdirection }
                try checkDryRun(event.attributes)
            } catch {
                return .forbidden(Intake.Notice(event, error))
            }
            return .admitted(admit(event, input, app, principal))
        } catch {
            replies.directUnknown(&event.attributes)
            let notice = Intake<Service.Command>.Notice(event, Rejection(.unauthenticated, error.messageForSender))
            return .refused(reason: error.reason.rawValue, step: .authenticate, detail: error.detail, tell: notice)
        }
    }

    /// An event or a reply that is subscribed to: only the deployment's own services write those.
    private func notification(
        _ event: CloudEvent<JSONValue>, _ input: Input<Service.Command>, _ record: KafkaRecord, _ now: Timestamp
    ) -> Intake<Service.Command>.Verdict {
        let refuse = { (reason: String, step: DeadLetter.Step, detail: String) in
            Intake<Service.Command>.Verdict.refused(reason: reason, step: step, detail: detail, tell: nil)
        }
        do {
            let (app, principal) = try authenticator.authenticate(publication: record, event.attributes, now: now)
            let command = admit(event, input, app, principal)
            if case .failure(let rejection) = command.body {
                return refuse(rejection.reason.rawValue, .decode, rejection.message)
            }
            return .admitted(command)
        } catch {
            return refuse(error.reason.rawValue, .authenticate, error.detail)
        }
    }

    /// Not remembered under the command's key: a later version may know the type, and the record may be sent again.
    private func unknownType(_ event: CloudEvent<JSONValue>) -> Intake<Service.Command>.Verdict {
        let rejection = Rejection(.unknownType, "The \(Service.name) service knows no command of this type.")
        let notice = Intake<Service.Command>.Notice(event, rejection)
        if event.attributes.isDryRun { return .forbidden(notice) }
        return .refused(
            reason: ReasonCode.unknownType.rawValue, step: .decode, detail: rejection.message, tell: notice)
    }

    private func checkDryRun(_ attributes: EventAttributes) throws(Rejection) {
        switch attributes.dryRun {
        case nil, "true", "false": return
        default: throw Rejection(.invalidRequest, "dryrun is neither \"true\" nor \"false\".")
        }
    }

    private func admit(
        _ event: CloudEvent<JSONValue>, _ input: Input<Service.Command>, _ app: AppSettings, _ principal: Principal
    ) -> Admitted<Service.Command> {
        let attributes = event.attributes
        let isCommand = input.source == .commands
        return Admitted(
            attributes: attributes,
            key: CommandKey(app: app.id, source: attributes.source, id: attributes.id),
            digest: CommandDigest.bytes(type: attributes.type, data: event.data), app: app, principal: principal,
            expiry: isCommand ? attributes.expiryTime.flatMap(Timestamp.init(rfc3339:)) : nil, isCommand: isCommand,
            answers: answers(event), body: body(event, input))
    }

    /// The forward that is settled by this message: by a reply that is the last one.
    private func answers(_ event: CloudEvent<JSONValue>) -> String? {
        guard event.attributes.type == ReceivedReply.type, let reply = ReceivedReply(event.data),
            reply.status != .pending
        else { return nil }
        return reply.commandId
    }

    private func body(
        _ event: CloudEvent<JSONValue>, _ input: Input<Service.Command>
    ) -> Result<Service.Command, Rejection> {
        guard topics.replyTopic(event.attributes.replyTo) != nil else {
            return .failure(Rejection(.invalidRequest, "replyto is not a topic named identity.replies.<name>."))
        }
        do {
            return .success(try input.read(event.data))
        } catch let rejection as Rejection {
            return .failure(rejection)
        } catch {
            let problem = WireJSONError.explain(error)
            return .failure(Rejection(.invalidRequest, problem.contains(": ") ? "data.\(problem)" : "data: \(problem)"))
        }
    }
}
