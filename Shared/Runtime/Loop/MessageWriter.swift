// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import WireJSON

/// Writes replies, events, commands and dead letters, signed with the key for what they are. Deterministic: the same
/// command, outcome and instant give the same bytes.
struct MessageWriter {
    let service: String
    let topics: Topics
    private let source: String
    private let eventsTopic: String
    private let ownReplies: String
    private let gatewayReplies: String
    private let commands: Seal
    private let events: Seal
    /// The gateway's replies have its own key, so that it need not hold the one that events are signed with.
    private let toGateway: Seal
    /// The reply topics that apps have for themselves, with prefix. They are the deployment's, so they are waited for.
    var appReplyTopics: Set<String> = []
    /// The commands topics of all services, for the apps that have none of their own.
    private let sharedCommands: Set<String>
    /// The apps that have commands topics of their own.
    private var commandsOwners: Set<AppID> = []
    private let encoder = WireJSONEncoder()
    /// The instant of the batch that is written now, and its text.
    private var instant: (time: Timestamp, text: String)?

    /// The writer for a batch that is decided at this instant, whose text it then makes once.
    func at(_ now: Timestamp) -> MessageWriter {
        var writer = self
        writer.instant = (now, now.rfc3339)
        return writer
    }

    private func text(_ now: Timestamp) -> String {
        if let instant, instant.time == now { instant.text } else { now.rfc3339 }
    }

    init(service: String, topics: Topics, keys: DeploymentKeys) {
        self.service = service
        self.topics = topics
        source = "\(Topics.ownSources)\(service)"
        eventsTopic = topics.events(service)
        ownReplies = topics.replies(to: service)
        sharedCommands = Set(Topics.services.map { topics.commands($0) })
        gatewayReplies = topics.gatewayReplies
        commands = Seal(Signature.internalKeyID, keys.signing(.commands))
        events = Seal(Signature.eventsKeyID, keys.signing(.events))
        toGateway = Seal(Signature.gatewayKeyID, keys.signing(.gateway))
    }

    /// What the apps have for themselves from now on.
    mutating func know(_ apps: AppDirectory) {
        appReplyTopics = Set(apps.replyTopics.keys.map { topics.prefix + $0 })
        commandsOwners = Set(apps.ownersOfCommandsTopics)
    }

    // MARK: Of an authenticated command

    /// - Parameter index: the message's number among all that the command led to; part of its id.
    func event(
        _ event: any EventMessage, of command: AcceptedCommand<some Sendable>, incarnation: Int64, index: Int,
        now: Timestamp
    ) throws -> OutboxRecord {
        func write<Event: EventMessage>(_ event: Event) throws -> OutboxRecord {
            var attributes = follow(command.attributes, type: Event.type, now: now)
            attributes.id = DerivedID.message(of: command.key, index: index)
            attributes.subject = event.subject
            attributes.sequence = sequence(command.record, incarnation, index)
            attributes.partitionKey = partitionKey(app: command.key.app, subject: event.subject)
            (attributes.authType, attributes.authID) = (command.attributes.authType, command.attributes.authID)
            return try message(.event, topic: eventsTopic, attributes, event)
        }
        return try write(event)
    }

    /// A note for a replay, which has the place of the last record that it tells of; `record` is that one's id in notes.
    func note(_ note: Silence.Note, of record: String, incarnation: Int64) throws -> OutboxRecord {
        // No one command is its cause.
        var attributes = EventAttributes(
            id: note.told.last ?? record, source: source, type: DecisionsNoted.type, appID: note.subject.app.text,
            time: text(note.decidedAt))
        attributes.subject = note.told.subject
        attributes.sequence = sequence(note.subject.record, incarnation, 0)
        attributes.partitionKey = partitionKey(app: note.subject.app, subject: note.told.subject)
        return try message(.event, topic: eventsTopic, attributes, note.told)
    }

    /// Two sequences that are equal up to the closing bracket compare as text: the greater one is the later event.
    private func sequence(_ record: KafkaRecord, _ incarnation: Int64, _ index: Int) -> String {
        let partition = record.topicPartition
        var text: [UInt8] = []
        text.reserveCapacity(partition.topic.utf8.count + 45)
        func append(_ mark: Unicode.Scalar) { text.append(UInt8(ascii: mark)) }
        func append(_ number: Int64, digits: Int) {
            let start = text.count
            var rest = number
            while rest > 0 || text.count < start + digits {
                text.append(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
            }
            text[start...].reverse()
        }
        text.append(contentsOf: partition.topic.utf8)
        append("[")
        append(Int64(partition.partition), digits: 1)
        append("]")
        append(incarnation, digits: 6)
        append(".")
        append(record.offset, digits: 19)
        append(".")
        append(Int64(index), digits: 4)
        return String(decoding: text, as: UTF8.self)
    }

    /// - Parameter dryRun: the dry run that it is of: it is one itself then, and answered under that key.
    /// - Throws: `NoSuchService` for a command type that names no service.
    func forward(
        _ forward: Forward, of command: AcceptedCommand<some Sendable>, dryRun: String? = nil, now: Timestamp
    ) throws -> OutboxRecord {
        var attributes = follow(command.attributes, type: "", now: now)
        attributes.id = forward.id.text
        attributes.replyTo = ownReplies
        attributes.expiryTime = forward.expiry?.rfc3339
        if let dryRun { (attributes.dryRun, attributes.replyKey) = ("true", dryRun) }
        return try self.command(forward.command, app: command.key.app, attributes)
    }

    /// An event that a service is to try: what it would make of it is told under the key of the dry run.
    func tried(
        _ event: any EventMessage, by service: String, _ id: CommandID, of command: AcceptedCommand<some Sendable>,
        dryRun: String, now: Timestamp
    ) throws -> OutboxRecord {
        var attributes = follow(command.attributes, type: type(of: event).type, now: now)
        attributes.id = id.text
        attributes.replyTo = ownReplies
        (attributes.dryRun, attributes.replyKey) = ("true", dryRun)
        attributes.subject = event.subject
        attributes.partitionKey = partitionKey(app: command.key.app, subject: event.subject)
        func write<Event: EventMessage>(_ event: Event) throws -> OutboxRecord {
            try message(.command, topic: commandsTopic(of: service, command.key.app), attributes, event)
        }
        return try write(event)
    }

    /// A command to the service itself that nobody else sent: it is due.
    func due(_ due: DueCommand) throws -> OutboxRecord {
        let attributes = EventAttributes(
            id: due.id.text, source: source, type: "", appID: due.app.text, time: text(due.dueAt))
        return try command(due.command, app: due.app, attributes)
    }

    /// - Parameter storedAt: what the inbox has for the time of the decision; in a replay it is not that of the reply.
    /// - Returns: the reply, and what of it follows from the command; `nil` when nobody waits for an answer.
    func reply(
        _ outcome: Outcome, to command: AcceptedCommand<some Sendable>, index: Int, now: Timestamp,
        storedAt: Timestamp? = nil
    ) throws -> (reply: OutboxRecord, parts: ReplyParts)? {
        switch outcome {
        case .noted, .begun: return nil
        case .succeeded, .rejected, .expired, .pending: break
        }
        var attributes = follow(command.attributes, type: ReceivedReply.type, now: now)
        attributes.id = DerivedID.message(of: command.key, index: index)
        (attributes.authType, attributes.authID) = (command.attributes.authType, command.attributes.authID)
        let digest = CommandDigest.text(command.digest)
        let parts = ReplyParts(
            replyID: attributes.id, digest: digest, time: text(storedAt ?? now), id: command.attributes.id,
            subject: command.attributes.subject)
        let reply = try reply(outcome, attributes, to: command.attributes, digest: digest, key: command.record.key)
        return (reply, parts)
    }

    // MARK: Of a saga

    /// What the final reply will be written from.
    func saga(of command: AcceptedCommand<some Sendable>, now: Timestamp) throws -> Saga {
        Saga(
            key: command.key,
            origin: try encoder.encode(
                SagaOrigin(attributes: command.attributes, digest: CommandDigest.text(command.digest))),
            recordKey: command.record.key, begunAt: now.milliseconds)
    }

    func settlement(_ outcome: Outcome, of saga: Saga, now: Timestamp) throws -> OutboxRecord {
        let origin = try WireJSONDecoder().decode(SagaOrigin.self, from: saga.origin)
        var attributes = follow(origin.attributes, type: ReceivedReply.type, now: now)
        attributes.id = DerivedID.settlement(of: saga.key, isFinal: outcome.isFinal)
        (attributes.authType, attributes.authID) = (origin.attributes.authType, origin.attributes.authID)
        return try reply(outcome, attributes, to: origin.attributes, digest: origin.digest, key: saga.recordKey)
    }

    // MARK: Of a record

    /// A reply whose id comes from the record's coordinates: its sender is not known, or its id is taken.
    func notice(
        _ answer: Refusal.Answer, of record: KafkaRecord, in log: Log, now: Timestamp
    ) throws -> OutboxRecord {
        var attributes = follow(answer.attributes, type: ReceivedReply.type, now: now)
        attributes.id = Self.id(of: record, log)
        var notice = try reply(
            .rejected(answer.rejection), attributes, to: answer.attributes, digest: CommandDigest.text(answer.digest),
            key: record.key)
        // Who sent the record is not known for sure, so nobody waits for the topic that it names.
        notice.mayBeGivenUp = !isOurs(notice.topic)
        return notice
    }

    /// The reply to a dry run: what would have been answered, without secrets, and what would have been told.
    /// - Parameters:
    ///   - id: from the record's coordinates (``id(of:_:)``), so that the command's own stays free.
    ///   - note: why not all could be told.
    func preview(
        _ outcome: Outcome, _ events: [ReplyEvent], of command: AcceptedCommand<some Sendable>, id: String,
        note: String? = nil, now: Timestamp
    ) throws -> OutboxRecord {
        var attributes = follow(command.attributes, type: ReceivedReply.type, now: now)
        attributes.id = id
        (attributes.authType, attributes.authID) = (command.attributes.authType, command.attributes.authID)
        var (reply, isConfidential) = body(
            outcome, of: command.attributes, digest: CommandDigest.text(command.digest))
        if isConfidential { reply.result = try reply.result.flatMap { try withoutSecrets($0).map { .text($0) } } }
        reply.events = events
        reply.message = reply.message ?? note
        return try message(of: reply, .reply, attributes, to: command.attributes, key: command.record.key)
    }

    /// What a dry run tells of an event.
    func preview(_ event: any EventMessage) throws -> ReplyEvent {
        func read<Event: EventMessage>(_ event: Event) throws -> ReplyEvent {
            ReplyEvent(type: Event.type, data: try JSONValue(parsing: try encoder.encode(event)))
        }
        return try read(event)
    }

    /// - Returns: `nil` when it is not known which of the members are the secret.
    private func withoutSecrets(_ result: ReplyResult) throws -> RawJSON? {
        let value = try JSONValue(parsing: try encoder.encode(result))
        let open = SecretMembers.replaced(in: value, by: nil)
        return open == value ? nil : RawJSON(open)
    }

    /// Which log a record stands in: its topic's name and partition may have another later.
    struct Log {
        var cluster: String
        var incarnation: Int64
    }

    /// The id of a reply about a record; of a dry run's answer too, and of the dry run while it waits.
    static func id(of record: KafkaRecord, _ log: Log) -> String {
        DerivedID.message(
            cluster: log.cluster, topic: record.topicPartition.topic, partition: record.topicPartition.partition,
            incarnation: log.incarnation, offset: record.offset, index: 0)
    }

    /// The id by which a note names a record. No reply has it.
    static func noted(_ partition: TopicPartition, _ offset: Int64, _ log: Log) -> String {
        DerivedID.message(
            cluster: log.cluster, topic: partition.topic, partition: partition.partition, incarnation: log.incarnation,
            offset: offset, index: 1)
    }

    // MARK: Parts

    private func follow(_ command: EventAttributes, type: String, now: Timestamp) -> EventAttributes {
        var attributes = EventAttributes(id: "", source: source, type: type, appID: command.appID, time: text(now))
        attributes.correlationID = command.correlationID ?? command.id
        attributes.causationID = command.id
        attributes.traceParent = command.traceParent
        attributes.traceState = command.traceState
        return attributes
    }

    private func reply(
        _ outcome: Outcome, _ attributes: EventAttributes, to command: EventAttributes, digest: String, key: [UInt8]?
    ) throws -> OutboxRecord {
        let (reply, isConfidential) = body(outcome, of: command, digest: digest)
        return try message(
            of: reply, isConfidential ? .confidentialReply : .reply, attributes, to: command, key: key)
    }

    private func body(
        _ outcome: Outcome, of command: EventAttributes, digest: String
    ) -> (Reply<ReplyResult>, isConfidential: Bool) {
        var reply = Reply<ReplyResult>(
            commandId: CommandID(command.id), commandType: command.type, commandDigest: digest, status: outcome.status,
            dryRun: command.isDryRun ? true : nil)
        var isConfidential = false
        switch outcome {
        case .noted, .begun: break
        case .pending(let result):
            reply.result = result.map { .value($0) }
            isConfidential = result.map { type(of: $0).isConfidential } ?? false
        case .succeeded(let result):
            reply.result = .value(result)
            isConfidential = type(of: result).isConfidential
        case .rejected(let rejection):
            reply.reason = rejection.reason
            reply.message = rejection.message
            reply.result = rejection.result.map { .text($0) }
        case .expired:
            reply.message = "The command's expirytime had passed before it could be decided."
        }
        return (reply, isConfidential)
    }

    private func message(
        of reply: Reply<ReplyResult>, _ role: OutboxRecord.Role, _ attributes: EventAttributes,
        to command: EventAttributes, key: [UInt8]?
    ) throws -> OutboxRecord {
        var attributes = attributes
        let key = replyKey(of: command, or: key)
        attributes.subject = command.subject
        attributes.partitionKey = key.flatMap { key in
            // Nearly always the command says it itself.
            if let named = command.replyKey ?? command.partitionKey, named.utf8.elementsEqual(key) { return named }
            // Kafka takes any bytes for a key.
            guard let text = String(validating: key, as: UTF8.self),
                EnvelopeReader.canBeAttribute(text, atMost: EnvelopeReader.maxPartitionKeyBytes)
            else { return nil }
            return text
        }
        var message = try message(
            role, topic: topics.replyTopic(command.replyTo) ?? topics.replies, attributes, reply, key: key)
        message.mayBeGivenUp = isOutside(message.topic, command)
        return message
    }

    /// The key that an answer goes under: the one that is asked for, otherwise the command's own.
    private func replyKey(of command: EventAttributes, or own: [UInt8]?) -> [UInt8]? {
        command.replyKey.map { Array($0.utf8) } ?? own
    }

    /// Whether a reply goes to a topic that an outsider named: not one of the deployment's own services, whose commands
    /// nobody else can write (``Authenticator``).
    private func isOutside(_ topic: String, _ command: EventAttributes) -> Bool {
        !isOurs(topic) && !command.source.hasPrefix(Topics.ownSources)
    }

    private func isOurs(_ topic: String) -> Bool { topic == topics.replies || appReplyTopics.contains(topic) }

    struct NoSuchService: Error, CustomStringConvertible {
        var description: String
    }

    private func command(
        _ command: any CommandMessage, app: AppID, _ attributes: EventAttributes
    ) throws -> OutboxRecord {
        func write<Command: CommandMessage>(_ command: Command) throws -> OutboxRecord {
            guard let service = CommandType.service(of: Command.type) else {
                throw NoSuchService(description: "the type \(Command.type) names no service")
            }
            var attributes = attributes
            attributes.type = Command.type
            attributes.subject = command.partitionSubject
            let record = try commands.command(
                to: commandsTopic(of: service, app), of: app, about: command.partitionSubject, attributes, command,
                traceParent: attributes.traceParent)
            return OutboxRecord(.command, record)
        }
        return try write(command)
    }

    private func commandsTopic(of service: String, _ app: AppID) -> String {
        commandsOwners.contains(app) ? topics.commands(service, of: app) : topics.commands(service)
    }

    /// Where a command that was written before goes now.
    private func commandsTopic(of message: OutboxRecord) -> String {
        // As mostly: nobody has topics of its own, so what is in a shared one stays there, unopened.
        if commandsOwners.isEmpty, sharedCommands.contains(message.topic) { return message.topic }
        guard let event = try? EnvelopeReader.open(value: message.value, headers: message.headers),
            let service = CommandType.service(of: event.attributes.type), let app = event.attributes.appID
        else { return message.topic }
        return commandsTopic(of: service, AppID(app))
    }

    /// The same reply, for where a repetition of its command asks for it. A dry run is told what the reply says, and
    /// not its secrets.
    func again(
        _ reply: OutboxRecord, to command: AcceptedCommand<some Sendable>, in log: Log
    ) -> OutboxRecord {
        var message = reply
        message.record.topic = topics.replyTopic(command.attributes.replyTo) ?? topics.replies
        message.record.key = replyKey(of: command.attributes, or: command.record.key)
        message.mayBeGivenUp = isOutside(message.topic, command.attributes)
        if command.isDryRun {
            message.record.value = message.value.map {
                preview($0, id: Self.id(of: command.record, log), isConfidential: reply.role == .confidentialReply)
            }
            message.role = .reply
        }
        message.record = seal(message.role, message.topic).signed(message.record)
        return message
    }

    /// What a dry run is told of a reply.
    private func preview(_ reply: [UInt8], id: String, isConfidential: Bool) -> [UInt8] {
        guard var envelope = (try? JSONValue(parsing: reply))?.objectValue, var data = envelope["data"]?.objectValue
        else { return reply }
        envelope["id"] = .string(id)
        data["dryRun"] = true
        data["events"] = []
        if isConfidential, let result = data["result"] {
            let open = SecretMembers.replaced(in: result, by: nil)
            data["result"] = open == result ? nil : open
        }
        envelope["data"] = .object(data)
        return JSONValue.object(envelope).serialized()
    }

    /// The same message, signed with the key of now: the one it was signed with may have gone, and so may its app's own
    /// commands topics.
    func signedAgain(_ message: OutboxRecord) -> OutboxRecord {
        guard message.role != .deadLetter, message.headers.contains(where: { $0.name == HeaderName.signature }) else {
            return message
        }
        var message = message
        if message.role == .command { message.record.topic = commandsTopic(of: message) }
        message.record = seal(message.role, message.topic).signed(message.record)
        return message
    }

    private func message(
        _ role: OutboxRecord.Role, topic: String, _ attributes: EventAttributes, _ data: some WireWritable,
        key: [UInt8]?
    ) throws -> OutboxRecord {
        let record = try seal(role, topic).record(
            to: topic, key: key, attributes, data, traceParent: attributes.traceParent)
        return OutboxRecord(role, record)
    }

    private func message(
        _ role: OutboxRecord.Role, topic: String, _ attributes: EventAttributes, _ data: some WireWritable
    ) throws -> OutboxRecord {
        try message(role, topic: topic, attributes, data, key: attributes.partitionKey.map { Array($0.utf8) })
    }

    private func seal(_ role: OutboxRecord.Role, _ topic: String) -> Seal {
        if role == .command { return commands }
        return topic == gatewayReplies ? toGateway : events
    }
}
