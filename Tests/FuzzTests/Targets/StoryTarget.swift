// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Link
import Storage
import Sync
import User
import Verification
import WireJSON

@testable import Runtime

/// Input: envelopes, one a line. All services decide them one after the other, and read what they tell each other. Their
/// state is in memory, and nobody's rights are checked but those that the envelopes name.
enum StoryTarget {
    static func run(_ bytes: [UInt8]) throws {
        var listeners: [any Listener] = [
            ServiceListener(LinkService(), state: LinkState()), ServiceListener(UserService(), state: UserState()),
            ServiceListener(SyncService(aliasDelay: .seconds(1)), state: SyncState()),
            ServiceListener(VerificationService(counterShard: 0), state: SessionState()),
        ]
        var offset: Int64 = 0
        for line in bytes.split(separator: UInt8(ascii: "\n")).prefix(16) {
            var queue = records(Array(line))
            // Services that answer each other for ever would be a defect; a story is over after some time.
            var left = 64
            while !queue.isEmpty {
                let record = queue.removeFirst()
                left -= 1
                offset += 1
                try hold(left > 0, "one command leads to more and more")
                let read = KafkaRecord(
                    topicPartition: TopicPartition(topic: record.topic, partition: 0), offset: offset, timestampMs: 1,
                    key: record.key, value: record.value, headers: record.headers)
                for index in listeners.indices { queue += try listeners[index].hear(read) }
            }
        }
    }

    /// Where a message of this type can stand.
    private static func records(_ line: [UInt8]) -> [Record] {
        guard let event = try? EnvelopeReader.open(value: line, headers: []) else { return [] }
        let type = event.attributes.type
        let topics = FuzzWorld.topics
        let places =
            type == ReceivedReply.type
            ? ["link", "user", "sync", "verification"].map(topics.replies(to:))
            : CommandType.service(of: type).map { [topics.commands($0), topics.events($0)] } ?? []
        return places.map { Record(topic: $0, key: event.attributes.partitionKey.map { Array($0.utf8) }, value: line) }
    }
}

private protocol Listener {
    /// - Returns: what is said about it.
    mutating func hear(_ record: KafkaRecord) throws -> [Record]
}

private struct ServiceListener<Service: CommandService>: Listener {
    private let service: Service
    private var state: Service.State
    private let reader: InboundReader<Service>
    private let writer = MessageWriter(service: Service.name, topics: FuzzWorld.topics, keys: FuzzWorld.keys)
    private let places: Set<String>
    private var decided: Set<CommandKey> = []
    private var sagas: [CommandKey: Saga] = [:]

    init(_ service: Service, state: Service.State) {
        self.service = service
        self.state = state
        let authenticator = Authenticator(
            trust: .cluster, apps: FuzzWorld.apps, keys: FuzzWorld.keys, topics: FuzzWorld.topics)
        reader = InboundReader(authenticator: authenticator, topics: FuzzWorld.topics)
        places = Set(Service.sources.map { $0.topic(FuzzWorld.topics, of: Service.name) })
    }

    mutating func hear(_ record: KafkaRecord) throws -> [Record] {
        guard places.contains(record.topicPartition.topic),
            let command = reader.read(record, now: FuzzWorld.now).accepted,
            decided.insert(command.key).inserted, case .success(let body) = command.body
        else { return [] }
        let context = command.context(now: FuzzWorld.now, secrets: FuzzWorld.secrets)
        let decision = service.decide(body, state, context)
        let messages = try write(decision, command)
        // Deciding is pure: what is decided again, after a conflict or a crash, comes to the same.
        let again = try write(service.decide(body, state, context), command)
        try hold(messages == again, "deciding twice tells two things")
        if command.isDryRun {
            let log = MessageWriter.Log(cluster: "cluster", incarnation: 0)
            let preview = try writer.preview(
                decision.outcome, try decision.events.map(writer.preview), of: command,
                id: MessageWriter.id(of: command.record, log), now: FuzzWorld.now)
            try FuzzMessages.check([preview])
            return []
        }
        try keep(decision, command, messages)
        return messages.map(\.record)
    }

    private mutating func keep(
        _ decision: Decision<Service.State.Change>, _ command: AcceptedCommand<Service.Command>,
        _ messages: [OutboxRecord]
    ) throws {
        try FuzzMessages.check(messages)
        switch decision.outcome {
        case .pending, .begun: sagas[command.key] = try writer.saga(of: command, now: FuzzWorld.now)
        case .succeeded, .rejected, .expired, .noted: break
        }
        for settlement in decision.settlements where settlement.outcome.isFinal { sagas[settlement.command] = nil }
        decision.changes.forEach { state.apply($0) }
        let answer = messages.last.flatMap { $0.isReply && command.isCommand ? messages.count - 1 : nil }
        try ReceiptTarget.keep(messages, of: command.attributes, command.key, command.digest, replyIndex: answer)
    }

    private func write(
        _ decision: Decision<Service.State.Change>, _ command: AcceptedCommand<Service.Command>
    ) throws -> [OutboxRecord] {
        let now = FuzzWorld.now
        var messages: [OutboxRecord] = []
        for event in decision.events {
            messages.append(
                try writer.event(event, of: command, incarnation: 0, index: messages.count, now: now))
        }
        for forward in decision.forwards { messages.append(try writer.forward(forward, of: command, now: now)) }
        for due in decision.due { messages.append(try writer.due(due)) }
        for settlement in decision.settlements {
            guard let saga = sagas[settlement.command] else { continue }
            messages.append(try writer.settlement(settlement.outcome, of: saga, now: now))
        }
        if command.isCommand {
            if let answer = try writer.reply(decision.outcome, to: command, index: messages.count, now: now) {
                messages.append(answer.reply)
            }
        }
        return messages
    }
}
