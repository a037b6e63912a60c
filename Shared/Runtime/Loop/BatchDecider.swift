// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage

/// Decides a batch inside its transaction: repeated commands get their first answer again, new ones are decided in
/// order, each seeing the changes of those before it.
struct BatchDecider<Service: CommandService> {
    typealias Incoming = Intake<Service.Command>
    typealias Command = Admitted<Service.Command>

    var service: Service
    var writer: MessageWriter
    var vault: OutboxVault
    var secrets: DerivedSecrets
    /// The Kafka cluster's id, part of the ids of messages about records.
    var cluster: String
    /// The incarnation of each partition's log.
    var incarnations: [TopicPartition: Int64]

    /// - Returns: a conclusion per intake, in order, without those that were passed over. The service's state and its
    ///   sagas are saved; the journal is not yet written.
    func decide(_ intakes: [Incoming], in transaction: any SQLTransaction, now: Timestamp) throws -> [Conclusion] {
        let admitted = intakes.compactMap { intake in
            if case .admitted(let command) = intake.verdict { command } else { nil }
        }
        let known = try Journal.find(admitted.map(\.key), in: transaction)
        let fresh = admitted.compactMap { command -> (Service.Command, DecisionContext)? in
            guard known[command.key] == nil, case .success(let body) = command.body else { return nil }
            return (body, command.context(now: now, secrets: secrets))
        }
        var state = try service.load(fresh, in: transaction)
        // By index, because an intake is dear to copy.
        let isDoubtful = intakes.indices.contains { intakes[$0].isTooOldToTell }
        let intakes = isDoubtful ? intakes.map { withoutDoubt($0, known) } : intakes
        let steps = decide(intakes, known, &state, now)
        try service.save(state, in: transaction)
        var book = try AnswerBook(known: known, settled: settled(by: steps), vault: vault, in: transaction)
        var conclusions: [Conclusion] = []
        conclusions.reserveCapacity(intakes.count)
        for (intake, step) in zip(intakes, steps) {
            if let conclusion = try conclude(intake, step, &book, now) { conclusions.append(conclusion) }
        }
        try book.save(in: transaction)
        try keepForwards(book.forwards, admitted, now, in: transaction)
        return conclusions
    }

    /// Every command that is sent on stays here until it is answered (docs/loop.md).
    private func keepForwards(
        _ forwards: [(app: String, id: String, message: OutboundMessage)], _ admitted: [Command], _ now: Timestamp,
        in transaction: any SQLTransaction
    ) throws {
        let sent = try forwards.map { forward in
            UnansweredForward(
                app: forward.app, id: forward.id, message: try vault.close([forward.message]),
                begunAt: now.milliseconds)
        }
        if !sent.isEmpty { try Forwards.save(sent, in: transaction) }
        let answered = admitted.compactMap { command in command.answers.map { (app: command.key.app, id: $0) } }
        if !answered.isEmpty { try Forwards.answered(answered, in: transaction) }
    }

    /// What may have been decided before, in a log whose decisions are forgotten by now, is not decided again.
    private func withoutDoubt(_ intake: Incoming, _ known: [CommandKey: JournalEntry]) -> Incoming {
        guard intake.isTooOldToTell, case .admitted(let command) = intake.verdict, known[command.key] == nil,
            !command.isDryRun
        else { return intake }
        let rejection = Rejection(
            .internalError,
            "The record comes from a log that followed another one, and is older than what is remembered of that one: "
                + "whether it was decided there cannot be told. Send it under a new id if it was not.")
        var intake = intake
        intake.verdict = .refused(
            reason: "TOO_OLD_TO_TELL", step: .decide, detail: rejection.message,
            tell: command.isCommand ? Incoming.Notice(command, rejection) : nil)
        return intake
    }

    // MARK: Deciding

    private enum Step {
        case passOn
        case decided(Command, Decision<Service.State.Change>)
        /// A dry run: what the decision would have been.
        case tried(Command, Decision<Service.State.Change>)
        /// Seen before; with the digest of the first time.
        case repeated(Command, first: [UInt8])
    }

    private func decide(
        _ intakes: [Incoming], _ known: [CommandKey: JournalEntry], _ state: inout Service.State, _ now: Timestamp
    ) -> [Step] {
        var digests = known.mapValues(\.digest)
        return intakes.map { intake in
            guard case .admitted(let command) = intake.verdict else { return .passOn }
            if let first = digests[command.key] { return .repeated(command, first: first) }
            if command.isDryRun { return .tried(command, decide(command, state, now)) }
            digests[command.key] = command.digest
            let decision = decide(command, state, now)
            decision.changes.forEach { state.apply($0) }
            return .decided(command, decision)
        }
    }

    private func decide(
        _ command: Command, _ state: Service.State, _ now: Timestamp
    ) -> Decision<Service.State.Change> {
        if let expiry = command.expiry, expiry <= now { return Decision(.expired) }
        switch command.body {
        case .failure(let rejection): return Decision(.rejected(rejection))
        case .success(let body): return service.decide(body, state, command.context(now: now, secrets: secrets))
        }
    }

    private func settled(by steps: [Step]) -> [CommandKey] {
        steps.flatMap { step -> [CommandKey] in
            if case .decided(_, let decision) = step { decision.settlements.map(\.command) } else { [] }
        }
    }

    // MARK: Concluding

    private func conclude(
        _ intake: Incoming, _ step: Step, _ book: inout AnswerBook, _ now: Timestamp
    ) throws -> Conclusion? {
        let record = intake.record
        switch (intake.verdict, step) {
        case (_, .decided(let command, let decision)):
            return try conclude(command, decision, record, &book, now)
        case (_, .tried(let command, let decision)):
            return try conclude(tried: command, decision, record, now)
        case (_, .repeated(let command, let first)):
            return try conclude(repeated: command, first, record, book, now)
        case (.refused(let reason, let step, let detail, let attempts, let tell), _):
            let letter = writer.deadLetter(
                record, reason: reason, step: step, detail: detail, attempts: attempts, now: now)
            let notices = try tell.map { try [notice($0, record, now)] } ?? []
            return Conclusion(
                record, incarnation: incarnation(of: record), type: tell?.attributes.type ?? "",
                outcome: "dead-lettered", reason: reason,
                [letter] + notices)
        case (.forbidden(let tell), _):
            return Conclusion(
                record, incarnation: incarnation(of: record), type: tell.attributes.type, outcome: "rejected",
                reason: tell.rejection.reason.rawValue, [try notice(tell, record, now)])
        case (.ignored, _), (.admitted, .passOn):
            return nil
        }
    }

    private func conclude(
        _ command: Command, _ decision: Decision<Service.State.Change>, _ record: KafkaRecord,
        _ book: inout AnswerBook, _ now: Timestamp
    ) throws -> Conclusion {
        switch decision.outcome {
        case .pending, .begun: book.begin(try writer.saga(of: command, record: record, now: now))
        case .succeeded, .rejected, .expired, .noted: break
        }
        var messages: [OutboundMessage] = []
        for event in decision.events {
            messages.append(
                try writer.event(
                    event, of: command, record: record, incarnation: incarnation(of: record), index: messages.count,
                    now: now))
        }
        for forward in decision.forwards {
            let message = try writer.forward(forward, of: command, now: now)
            book.forwards.append((command.key.app, forward.id, message))
            messages.append(message)
        }
        for settlement in decision.settlements {
            guard let saga = book.unsettledSaga(settlement.command) else { continue }
            let reply = try writer.settlement(settlement.outcome, of: saga, now: now)
            messages.append(reply)
            try book.settle(saga, with: reply, isFinal: settlement.outcome.isFinal)
        }
        let answer =
            command.isCommand
            ? try writer.reply(decision.outcome, to: command, record: record, index: messages.count, now: now) : nil
        if let answer { messages.append(answer) }
        book.note(command.key, answer)
        var conclusion = Conclusion(
            record, incarnation: incarnation(of: record), type: command.attributes.type, outcome: decision.outcome.name,
            messages)
        conclusion.key = command.key
        conclusion.digest = command.digest
        conclusion.subject = command.attributes.subject
        if case .rejected(let rejection) = decision.outcome { conclusion.reason = rejection.reason.rawValue }
        return conclusion
    }

    /// A reply, and nothing else: not even the command's id is taken.
    private func conclude(
        tried command: Command, _ decision: Decision<Service.State.Change>, _ record: KafkaRecord, _ now: Timestamp
    ) throws -> Conclusion {
        let reply = try writer.preview(
            decision.outcome, decision.events, of: command, record: record, cluster: cluster, now: now)
        var conclusion = Conclusion(
            record, incarnation: incarnation(of: record), type: command.attributes.type, outcome: "dry-run", [reply])
        if case .rejected(let rejection) = decision.outcome { conclusion.reason = rejection.reason.rawValue }
        return conclusion
    }

    /// The same command again: the same reply, to where this one asks for it, and no other effect.
    private func conclude(
        repeated command: Command, _ digest: [UInt8], _ record: KafkaRecord, _ book: AnswerBook, _ now: Timestamp
    ) throws -> Conclusion {
        let type = command.attributes.type
        guard digest == command.digest else {
            guard command.isCommand else {
                let letter = writer.deadLetter(
                    record, reason: ReasonCode.idReused.rawValue, step: .decide,
                    detail: "an event with this source and id but other content was read before", now: now)
                return Conclusion(
                    record, incarnation: incarnation(of: record), type: type, outcome: "dead-lettered",
                    reason: ReasonCode.idReused.rawValue,
                    [letter])
            }
            return try refuse(command, Rejection(.idReused), record, now)
        }
        guard command.isCommand else {
            return Conclusion(record, incarnation: incarnation(of: record), type: type, outcome: "repeated", [])
        }
        if let answer = try book.answer(to: command.key) {
            let reply = writer.again(answer, to: command, record: record, cluster: cluster)
            return Conclusion(record, incarnation: incarnation(of: record), type: type, outcome: "repeated", [reply])
        }
        if book.isSilent(command.key),
            let reply = try writer.reply(.pending(nil), to: command, record: record, index: -1, now: now)
        {
            return Conclusion(record, incarnation: incarnation(of: record), type: type, outcome: "repeated", [reply])
        }
        guard book.owesAnswer(to: command.key) else {
            return Conclusion(record, incarnation: incarnation(of: record), type: type, outcome: "repeated", [])
        }
        let lost = Rejection(
            .internalError, "The first answer can no longer be read: it was stored under another internal key.")
        return try refuse(command, lost, record, now)
    }

    private func refuse(
        _ command: Command, _ rejection: Rejection, _ record: KafkaRecord, _ now: Timestamp
    ) throws -> Conclusion {
        let tell = Incoming.Notice(command, rejection)
        return Conclusion(
            record, incarnation: incarnation(of: record), type: command.attributes.type, outcome: "rejected",
            reason: rejection.reason.rawValue, [try notice(tell, record, now)])
    }

    private func notice(_ tell: Incoming.Notice, _ record: KafkaRecord, _ now: Timestamp) throws -> OutboundMessage {
        try writer.notice(
            tell.rejection, to: tell.attributes, digest: tell.digest, record: record, cluster: cluster, now: now)
    }

    private func incarnation(of record: KafkaRecord) -> Int64 { incarnations[record.topicPartition] ?? 0 }
}
