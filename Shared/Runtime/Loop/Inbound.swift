// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Observability
import Storage
import WireJSON

/// A record, read and judged as far as that needs no state.
enum Inbound<Command: Sendable>: Sendable {
    /// The sender is known: the record is answered, and its answer is remembered under the command's key.
    case accepted(AcceptedCommand<Command>)
    /// Not decided, and remembered only under the record's coordinates. Indirect, because it is large and rare.
    indirect case refused(Refusal)
    /// Of a topic that is subscribed to, and of a type that is not: passed over.
    case skipped

    var accepted: AcceptedCommand<Command>? {
        if case .accepted(let command) = self { command } else { nil }
    }
}

/// An authenticated command. A class, because it is handed around a lot and never changes: a copy is one reference
/// instead of some thirty.
final class AcceptedCommand<Command: Sendable>: Sendable {
    let record: KafkaRecord
    /// As they were sent, but for `traceparent` (``EventAttributes/takeTrace(from:)``, ``RecordSpans``), for `replyto` where the app has a topic of its own
    /// (``ReplyRule``), and for `authtype` and `authid`: they say whose key it is that was proved, of what is done by hand
    /// (``Scope/isByHand``), and nothing otherwise.
    let attributes: EventAttributes
    /// The span that it was sent in, where spans are told.
    let parent: SpanContext?
    let key: CommandKey
    /// What the inbox knows it by.
    let stored: StoredKey
    let digest: [UInt8]
    let app: AppSettings
    let principal: Principal
    let expiry: Timestamp?
    let source: InputSource
    /// The forward that this reply settles: it is the final one.
    let answers: CommandID?
    /// The dry run that this reply is for: to a forward that was itself one.
    let triedFor: DryRunAnswer?
    /// Whether it may have been decided in a log that is forgotten.
    let isTooOldToTell: Bool
    /// The command, or why it is rejected whatever the state.
    let body: Result<Command, Rejection>
    /// Whom a question is about, and what is tried or done by hand, for the log; `nil` of others, of lists, which are about
    /// nobody alone, and when it is rejected. Not the event's `subject`: whoever asks chooses that.
    let isAbout: PersonAsked?
    let isQuestion: Bool
    /// About whom it asks.
    var asksAbout: PersonAsked? { isQuestion ? isAbout : nil }

    init(
        record: KafkaRecord, attributes: EventAttributes, parent: SpanContext?, digest: [UInt8], app: AppSettings,
        principal: Principal, source: InputSource, answers: CommandID?, triedFor: DryRunAnswer?, isTooOldToTell: Bool,
        body: Result<Command, Rejection>, isAbout: PersonAsked?, isQuestion: Bool
    ) {
        self.record = record
        self.attributes = attributes
        self.parent = parent
        key = CommandKey(app: app.id, source: SourceID(attributes.source), id: CommandID(attributes.id))
        stored = StoredKey(key)
        self.digest = digest
        self.app = app
        self.principal = principal
        expiry = source == .commands ? attributes.expiryTime.flatMap(Timestamp.init(rfc3339:)) : nil
        self.source = source
        self.answers = answers
        self.triedFor = triedFor
        self.isTooOldToTell = isTooOldToTell
        self.body = body
        self.isAbout = isAbout
        self.isQuestion = isQuestion
    }

    /// False for events and replies that the service subscribes to: nobody waits for an answer to them.
    var isCommand: Bool { if case .commands = source { true } else { false } }

    /// Decided and told, but nothing is kept of it.
    var isDryRun: Bool { isCommand && attributes.isDryRun }

    /// Under which key it was decided, if it was decided before; `nil` of what takes no id.
    var keyOnce: CommandKey? { isDryRun || triedFor != nil ? nil : key }

    /// - Parameter retention: how long the inbox remembers.
    func context(
        now: Timestamp, secrets: DerivedSecrets, retention: Duration = .zero
    ) -> DecisionContext {
        let told = Moment(of: record, time: attributes.time, now: now)
        var context = DecisionContext(
            command: key, app: app, principal: principal, now: now, moment: told.atMost(now), told: told,
            expiry: expiry, secrets: secrets, retention: retention)
        if record.timestampMs >= 0 {
            context.logged = Moment(milliseconds: record.timestampMs, isBrokers: record.clock == .broker)
        }
        return context
    }
}

/// An answer to a forward of a dry run. It is told apart from one of a saga by its mark, so the two may have one id.
struct DryRunAnswer: Sendable {
    /// The dry run's, see `DryRuns`.
    var id: String
    var forward: CommandID
    /// What it would have told others.
    var events: [ReplyEvent]
    var status: ReplyStatus
    /// Why it did not tell all.
    var note: String?
}

/// Why a record is not decided.
struct Refusal: Sendable {
    /// What its dead letter says.
    struct Cause: Sendable {
        var reason: String
        var step: DeadLetter.Step
        var detail: String
        var attempts = 1
    }

    /// What its sender is told.
    struct Answer: Sendable {
        var attributes: EventAttributes
        var digest: [UInt8]
        var rejection: Rejection

        init(_ event: CloudEvent<JSONView>, _ rejection: Rejection) {
            attributes = event.attributes
            digest = CommandDigest.bytes(type: event.attributes.type, data: event.data)
            self.rejection = rejection
        }

        /// - Returns: `nil` to an event or a reply, which nobody waits for an answer to.
        init?(_ command: AcceptedCommand<some Sendable>?, _ rejection: Rejection) {
            guard let command, command.isCommand else { return nil }
            attributes = command.attributes
            digest = command.digest
            self.rejection = rejection
        }
    }

    var record: KafkaRecord
    /// The span that it was sent in, where spans are told.
    var parent: SpanContext?
    /// `nil` when the sender is known and may not send this: there is no dead letter then, the sender is told, and the
    /// command's id stays free for those who may use it.
    var deadLetter: Cause?
    /// `nil` when nobody is told: what cannot be read names no sender.
    var answer: Answer?
}

/// Reads and judges records: envelope, credential, scope, data. Pure.
struct InboundReader<Service: CommandService> {
    private typealias Command = Service.Command

    private let authenticator: Authenticator
    private let topics: Topics
    private let replies: ReplyRule
    /// What is read, by type.
    private let inputs: [String: Input<Service.Command>]
    /// The other topics that are read beside the commands topic.
    private let sources: [String: InputSource]
    /// `nil` when nobody is told of any.
    private let spans: RecordSpans?

    init(authenticator: Authenticator, topics: Topics, spans: RecordSpans? = nil) {
        self.spans = spans
        self.authenticator = authenticator
        self.topics = topics
        replies = ReplyRule(topics: topics, apps: authenticator.apps)
        inputs = Dictionary(Service.inputs.map { ($0.type, $0) }) { first, _ in first }
        let others = Service.sources.filter { $0 != .commands }
        sources = Dictionary(others.map { ($0.topic(topics, of: Service.name), $0) }) { first, _ in first }
    }

    /// - Parameter isTooOldToTell: whether the record may have been decided in a log that is forgotten.
    func read(_ record: KafkaRecord, now: Timestamp, isTooOldToTell: Bool = false) -> Inbound<Service.Command> {
        var event: CloudEvent<JSONView>
        do {
            event = try EnvelopeReader.open(value: record.value, headers: record.headers)
        } catch {
            return .refused(dead(record, error.reason.rawValue, .decode, error.detail))
        }
        event.attributes.takeTrace(from: record.headers)
        let parent = spans.flatMap { $0.mark(&event.attributes, of: record) }
        let input = inputs[event.attributes.type]
        var inbound: Inbound<Command>
        if let source = sources[record.topicPartition.topic] {
            guard let input, input.source == source else { return .skipped }
            inbound = publication(event, input, record, parent, isTooOldToTell)
        } else {
            inbound = command(event, input, record, parent, now, isTooOldToTell)
        }
        if let parent, case .refused(var refusal) = inbound {
            refusal.parent = parent
            inbound = .refused(refusal)
        }
        return inbound
    }

    private func command(
        _ event: CloudEvent<JSONView>, _ input: Input<Command>?, _ record: KafkaRecord, _ parent: SpanContext?,
        _ now: Timestamp, _ isTooOldToTell: Bool
    ) -> Inbound<Command> {
        var event = event
        do {
            let (app, principal) = try authenticator.authenticate(record, event.attributes, now: now)
            let misdirection = replies.direct(&event.attributes, app, principal)
            guard let input, let type = input.command else {
                if let input, isTried(event, by: principal, input) {
                    event.attributes.name(principal, if: false)
                    return .accepted(accept(event, input, record, parent, app, principal, isTooOldToTell, .commands))
                }
                return .refused(unknownType(event, record))
            }
            do throws(Rejection) {
                try principal.authorize(type)
                if let misdirection { throw misdirection }
                try checkDryRun(event.attributes)
            } catch {
                return .refused(Refusal(record: record, answer: Refusal.Answer(event, error)))
            }
            event.attributes.name(principal, if: type.scope.isByHand)
            return .accepted(accept(event, input, record, parent, app, principal, isTooOldToTell, .commands))
        } catch {
            if !error.isOfOurs { replies.directUnknown(&event.attributes) }
            let answer = Refusal.Answer(event, Rejection(.unauthenticated, error.messageForSender))  // L1
            return .refused(dead(record, error.reason.rawValue, .authenticate, error.detail, answer))
        }
    }

    /// What a service would make of an event is asked like a command, by other services, and is never more than a dry run.
    private func isTried(_ event: CloudEvent<JSONView>, by principal: Principal, _ input: Input<Command>) -> Bool {
        principal.kind == .service && event.attributes.isDryRun && input.source.isOfEvents
    }

    /// An event or a reply that is subscribed to: only the deployment's own services write those.
    private func publication(
        _ event: CloudEvent<JSONView>, _ input: Input<Command>, _ record: KafkaRecord, _ parent: SpanContext?,
        _ isTooOldToTell: Bool
    ) -> Inbound<Command> {
        do {
            let (app, principal) = try authenticator.authenticate(publication: record, event.attributes)
            var event = event
            event.attributes.name(principal, if: false)
            let publication = accept(event, input, record, parent, app, principal, isTooOldToTell, input.source)
            if case .failure(let rejection) = publication.body {
                return .refused(dead(record, rejection.reason.rawValue, .decode, rejection.message))
            }
            return .accepted(publication)
        } catch {
            return .refused(dead(record, error.reason.rawValue, .authenticate, error.detail))
        }
    }

    private func dead(
        _ record: KafkaRecord, _ reason: String, _ step: DeadLetter.Step, _ detail: String,
        _ answer: Refusal.Answer? = nil
    ) -> Refusal {
        Refusal(record: record, deadLetter: .init(reason: reason, step: step, detail: detail), answer: answer)
    }

    /// Not remembered under the command's key: a later version may know the type, and the record may be sent again.
    private func unknownType(_ event: CloudEvent<JSONView>, _ record: KafkaRecord) -> Refusal {
        let rejection = Rejection(.unknownType, "The \(Service.name) service knows no command of this type.")
        let answer = Refusal.Answer(event, rejection)
        if event.attributes.isDryRun { return Refusal(record: record, answer: answer) }
        return dead(record, rejection.reason.rawValue, .decode, rejection.message, answer)
    }

    private func checkDryRun(_ attributes: EventAttributes) throws(Rejection) {
        switch attributes.dryRun {
        case nil, "true", "false": return
        default: throw Rejection(.invalidRequest, "dryrun is neither \"true\" nor \"false\".")
        }
    }

    private func accept(
        _ event: CloudEvent<JSONView>, _ input: Input<Command>, _ record: KafkaRecord, _ parent: SpanContext?,
        _ app: AppSettings, _ principal: Principal, _ isTooOldToTell: Bool, _ source: InputSource
    ) -> AcceptedCommand<Command> {
        let body = body(event, input)
        let isByHand = event.attributes.isDryRun || event.attributes.authID != nil
        let ask = (input.isQuestion || isByHand) && (try? body.get()) != nil ? input.isAbout : nil
        // Of many people, whom the command names; to read it once more would cost as much as the first time.
        let list = input.isList ? PersonAsked(kind: "list", name: event.attributes.id) : nil
        return AcceptedCommand(
            record: record, attributes: event.attributes, parent: parent,
            digest: CommandDigest.bytes(type: event.attributes.type, data: event.data), app: app, principal: principal,
            source: source, answers: answers(event), triedFor: triedFor(event),
            isTooOldToTell: isTooOldToTell, body: body,
            isAbout: list ?? ask?(event.data), isQuestion: input.isQuestion)
    }

    /// The forward that is settled by this message: by a reply that is the last one.
    private func answers(_ event: CloudEvent<JSONView>) -> CommandID? {
        guard event.attributes.type == ReceivedReply.type else { return nil }
        // The rest of the reply is read with its command.
        let members = event.data.members(settling)
        guard let id = members[0]?.stringValue, let status = members[1]?.stringValue,
            status != ReplyStatus.pending.rawValue, members[2]?.boolValue != true
        else { return nil }
        return CommandID(id)
    }

    /// The dry run that the forward is of stands in the key that its answer was asked for under.
    private func triedFor(_ event: CloudEvent<JSONView>) -> DryRunAnswer? {
        guard event.attributes.type == ReceivedReply.type, let id = event.attributes.partitionKey,
            event.data.members(settling)[2]?.boolValue == true, let reply = ReceivedReply(event.data.value)
        else { return nil }
        let events = reply.events?.compactMap { event in
            event["type"]?.stringValue.map { ReplyEvent(type: $0, data: event["data"] ?? .null) }
        }
        return DryRunAnswer(
            id: id, forward: reply.commandId, events: events ?? [], status: reply.status,
            note: reply.status == .succeeded ? reply.message : nil)
    }

    private func body(_ event: CloudEvent<JSONView>, _ input: Input<Command>) -> Result<Command, Rejection> {
        guard topics.replyTopic(event.attributes.replyTo) != nil else {
            return .failure(Rejection(.invalidRequest, "replyto is not a topic named identity.replies.<name>."))
        }
        do {
            return .success(try input.read(event.data))
        } catch let rejection as Rejection {
            return .failure(rejection)
        } catch {
            let problem = WireJSONError.explain(error)
            return .failure(
                Rejection(.invalidRequest, problem.contains(": ") ? "data.\(problem)" : "data: \(problem)"))
        }
    }
}

extension EventAttributes {
    /// Says whose key it was that was proved, and nothing of what the sender claims.
    fileprivate mutating func name(_ principal: Principal, if isWanted: Bool) {
        if isWanted, case .apiKey(let id) = principal.kind {
            (authType, authID) = ("api_key", id.text)
        } else {
            (authType, authID) = (nil, nil)
        }
    }
}

/// What says which command a reply answers, whether for good, and whether it was only tried.
private let settling = JSONNames(["commandId", "status", "dryRun"])

/// Where replies may be sent. An app that has a reply topic of its own gets the answers to its API keys there and
/// nowhere else; nobody else may name it. Replies hold authentication codes and tokens, and a topic is all that Kafka
/// keeps apart.
struct ReplyRule: Sendable {
    private let topics: Topics
    /// By topic, with prefix: the app that has it.
    private let owners: [String: AppID]

    init(topics: Topics, apps: AppDirectory) {
        self.topics = topics
        owners = Dictionary(
            apps.replyTopics.map { (topics.prefix + $0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// Directs the reply of a command whose sender is known. The gateway and the services have topics of their own.
    /// - Returns: why the command is refused; the refusal is directed already.
    func direct(_ attributes: inout EventAttributes, _ app: AppSettings, _ principal: Principal) -> Rejection? {
        guard principal.kind != .service, !attributes.source.hasPrefix(Topics.ownSources) else { return nil }
        let named = attributes.replyTo.map { topics.replyTopic($0) }
        guard let own = app.replies else {
            guard case .some(.some(let topic)) = named, owners[topic] != nil || topics.isOwn(replyTopic: topic) else {
                return nil
            }
            attributes.replyTo = nil
            return Rejection(.invalidRequest, "replyto is not a topic that this app may have answers sent to.")
        }
        let isOther = named.map { $0 != topics.prefix + own } ?? false
        attributes.replyTo = topics.prefix + own
        return isOther
            ? Rejection(.invalidRequest, "replyto is not \(own), which this app's answers are sent to; leave it away.")
            : nil
    }

    /// Directs the answer to somebody who is not known: to the topic of the app that the record names, or to the common one.
    /// Anybody can make up others, and each new one costs the producer memory and requests. And what a service or the
    /// gateway reads on its own topic answers its own commands, which are signed: a copy of one without the signature
    /// would be answered there, and the refusal taken for the answer.
    func directUnknown(_ attributes: inout EventAttributes) {
        let appID = attributes.appID.map { AppID($0) }
        if attributes.replyTo == nil, !attributes.source.hasPrefix(Topics.ownSources) {
            attributes.replyTo = appID.flatMap { appID in owners.first { $0.value == appID }?.key }
        } else if let topic = topics.replyTopic(attributes.replyTo), !isDeclared(topic, by: appID) {
            attributes.replyTo = nil
        }
    }

    private func isDeclared(_ topic: String, by appID: AppID?) -> Bool {
        topic == topics.replies || appID != nil && owners[topic] == appID
    }
}
