// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Messaging
import Storage

/// What one record came to: its row in the journal, and the messages in it.
struct Conclusion {
    var position: JournalPosition
    var key: CommandKey?
    var digest: [UInt8]
    var type: String
    var subject: String?
    var outcome: String
    var reason: String?
    var messages: [OutboundMessage]

    func entry(now: Timestamp) -> JournalEntry {
        JournalEntry(
            position: position, key: key, digest: digest, type: type, subject: subject, outcome: outcome,
            reason: reason, messages: OutboxCodec.encode(messages), decidedAt: now.milliseconds)
    }
}

/// Decides a batch inside its transaction: repeated commands get their first answer again, new ones are decided in
/// order, each seeing the changes of those before it.
struct BatchDecider<Service: CommandService> {
    typealias Incoming = Intake<Service.Command>

    var service: Service
    var writer: MessageWriter
    /// The Kafka cluster's id, part of the ids of messages about records.
    var cluster: String
    /// The incarnation of each partition's log.
    var incarnations: [TopicPartition: Int64]

    /// - Returns: a conclusion per intake, in order. The service's state is saved; the journal is not yet written.
    func decide(_ intakes: [Incoming], in transaction: any SQLTransaction, now: Timestamp) throws -> [Conclusion] {
        let admitted = intakes.compactMap { intake in
            if case .admitted(let command) = intake.verdict { command } else { nil }
        }
        let known = try Journal.find(admitted.map(\.key), in: transaction)
        let fresh = admitted.compactMap { command -> (Service.Command, DecisionContext)? in
            guard known[command.key] == nil, case .success(let body) = command.body else { return nil }
            return (body, command.context(now: now))
        }
        var state = try service.load(fresh, in: transaction)
        var seen: [CommandKey: First] = [:]
        for (key, entry) in known {
            seen[key] = First(digest: entry.digest, messages: try OutboxCodec.decode(entry.messages))
        }
        var conclusions: [Conclusion] = []
        conclusions.reserveCapacity(intakes.count)
        for intake in intakes {
            let conclusion = try conclude(intake, &state, &seen, now)
            if let key = conclusion.key { seen[key] = First(digest: conclusion.digest, messages: conclusion.messages) }
            conclusions.append(conclusion)
        }
        try service.save(state, in: transaction)
        return conclusions
    }

    /// How a command was answered the first time.
    private struct First {
        var digest: [UInt8]
        var messages: [OutboundMessage]
    }

    private func conclude(
        _ intake: Incoming, _ state: inout Service.State, _ seen: inout [CommandKey: First], _ now: Timestamp
    ) throws -> Conclusion {
        switch intake.verdict {
        case .refused(let reason, let step, let detail, let attempts, let tell):
            let letter = writer.deadLetter(
                intake.record, reason: reason, step: step, detail: detail, attempts: attempts, now: now)
            let notices = try tell.map { try [notice($0, intake.record, now)] } ?? []
            return conclusion(
                of: intake.record, type: tell?.attributes.type ?? "", outcome: "dead-lettered", reason: reason,
                [letter] + notices)
        case .forbidden(let tell):
            return conclusion(
                of: intake.record, type: tell.attributes.type, outcome: "rejected",
                reason: tell.rejection.reason.rawValue, [try notice(tell, intake.record, now)])
        case .admitted(let command):
            if let first = seen[command.key] { return try repeated(command, intake.record, first, now) }
            return try answer(command, intake.record, &state, now)
        }
    }

    private func answer(
        _ command: Admitted<Service.Command>, _ record: KafkaRecord, _ state: inout Service.State, _ now: Timestamp
    ) throws -> Conclusion {
        let decision: Decision<Service.State.Change>
        if let expiry = command.expiry, expiry <= now {
            decision = Decision(.expired)
        } else {
            switch command.body {
            case .failure(let rejection): decision = Decision(.rejected(rejection))
            case .success(let body): decision = service.decide(body, state, command.context(now: now))
            }
        }
        decision.changes.forEach { state.apply($0) }
        var messages: [OutboundMessage] = []
        for event in decision.events {
            messages.append(try writer.event(event, of: command, index: messages.count, now: now))
        }
        messages.append(
            try writer.reply(decision.outcome, to: command, record: record, index: messages.count, now: now))
        var conclusion = self.conclusion(of: record, type: command.attributes.type, outcome: "succeeded", messages)
        conclusion.key = command.key
        conclusion.digest = command.digest
        conclusion.subject = command.attributes.subject
        switch decision.outcome {
        case .succeeded: break
        case .noted: conclusion.outcome = "noted"
        case .pending: conclusion.outcome = "pending"
        case .expired: conclusion.outcome = "expired"
        case .rejected(let rejection):
            conclusion.outcome = "rejected"
            conclusion.reason = rejection.reason.rawValue
        }
        return conclusion
    }

    /// The same command again: the same reply, to where this one asks for it, and no other effect.
    private func repeated(
        _ command: Admitted<Service.Command>, _ record: KafkaRecord, _ first: First, _ now: Timestamp
    ) throws -> Conclusion {
        guard first.digest == command.digest else {
            let tell = Incoming.Notice(attributes: command.attributes, rejection: Rejection(.idReused))
            return conclusion(
                of: record, type: command.attributes.type, outcome: "rejected", reason: tell.rejection.reason.rawValue,
                [try notice(tell, record, now)])
        }
        let replies = first.messages.filter { $0.role == .reply }.map { reply in
            var reply = reply
            reply.key = record.key
            reply.topic = writer.topics.replyTopic(command.attributes.replyTo) ?? writer.topics.replies
            return reply
        }
        return conclusion(of: record, type: command.attributes.type, outcome: "repeated", replies)
    }

    private func notice(_ tell: Incoming.Notice, _ record: KafkaRecord, _ now: Timestamp) throws -> OutboundMessage {
        try writer.notice(tell.rejection, to: tell.attributes, record: record, cluster: cluster, now: now)
    }

    private func conclusion(
        of record: KafkaRecord, type: String, outcome: String, reason: String? = nil, _ messages: [OutboundMessage]
    ) -> Conclusion {
        let partition = record.topicPartition
        return Conclusion(
            position: JournalPosition(
                topic: partition.topic, partition: partition.partition, incarnation: incarnations[partition] ?? 0,
                offset: record.offset),
            key: nil, digest: [], type: type, subject: nil, outcome: outcome, reason: reason, messages: messages)
    }
}
