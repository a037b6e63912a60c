// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage

/// Decides a batch inside its transaction: repeated commands get their first answer again, new ones are decided in
/// order, each seeing the changes of those before it.
///
/// It is not specialised for a service, so its loops go by index: `zip`, `enumerated()` and key paths over generic elements
/// look their types up for each of them, which was a fiftieth of what a link request costs.
struct BatchDecider<Service: CommandService> {
    typealias Command = AcceptedCommand<Service.Command>
    typealias Decided = Decision<Service.State.Change>

    var service: Service
    var reader: InboundReader<Service>
    var writer: MessageWriter
    var vault: OutboxVault
    var secrets: DerivedSecrets
    /// The Kafka cluster's id, part of the ids of messages about records.
    var cluster: String
    /// The incarnation of each partition's log.
    var incarnations: [TopicPartition: Int64]
    /// The number of who decides, see ``Deciders``.
    var number: Int64 = 0
    /// How long the inbox remembers.
    var retention = Duration.zero
    /// By which time a record of the past is decided.
    var pastTimes = PastTimes()

    /// - Returns: an entry for each record, in order, without those that were passed over. All is saved: the service's
    ///   state, its sagas, inbox and outbox.
    func decide(
        _ batch: [Inbound<Service.Command>], in transaction: any SQLTransaction, now: Timestamp
    ) throws -> [Entry] {
        guard pastTimes.end != nil else { return try decideAll(batch, in: transaction, now: now) }
        var decider = self
        decider.pastTimes = try past(of: batch.compactMap(\.accepted), in: transaction)
        return try decider.decideAll(batch, in: transaction, now: now)
    }

    /// The times of the past, with what is told of these commands.
    func past(of commands: [Command], in transaction: any SQLTransaction) throws(StorageError) -> PastTimes {
        var past = pastTimes
        try past.learn(of: commands, in: transaction) { notes(of: $0.record) }
        return past
    }

    /// The id by which a note names a record.
    private func noted(_ record: KafkaRecord) -> String {
        MessageWriter.noted(record.topicPartition, record.offset, log(of: record))
    }

    /// The ids by which notes may name it. A store that is new does not know how often the topic was made anew before.
    private func notes(of record: KafkaRecord) -> [String] {
        let known = log(of: record)
        return ([known.incarnation] + (0..<4)).map { incarnation in
            var log = known
            log.incarnation = incarnation
            return MessageWriter.noted(record.topicPartition, record.offset, log)
        }
    }

    /// The id of the reply about its record, where there is one.
    private func messageID(_ command: Command) -> String {
        MessageWriter.id(of: command.record, log(of: command.record))
    }

    private func decideAll(
        _ batch: [Inbound<Service.Command>], in transaction: any SQLTransaction, now: Timestamp
    ) throws -> [Entry] {
        let accepted = batch.compactMap { $0.accepted }
        let found = try Inbox.find(accepted.map { ($0.key, $0.stored) }, in: transaction)
        let known = found.commands
        var fresh: [(Service.Command, DecisionContext)] = []
        // By record: which of these it is. Its time is read from the record's, which costs something.
        var places = [Int?](repeating: nil, count: batch.count)
        for place in batch.indices {
            guard let command = batch[place].accepted, known[command.key] == nil, command.triedFor == nil,
                case .success(let body) = command.body
            else { continue }
            places[place] = fresh.count
            fresh.append((body, context(of: command, now)))
        }
        var state = try service.load(fresh, in: transaction)
        let isInDoubt = accepted.contains { $0.isTooOldToTell }
        let batch = isInDoubt ? batch.map { withoutDoubt($0, known) } : batch
        let again = repeatedKeys(accepted)
        var chains = Chains(count: batch.count)
        let facts = try facts(fresh, in: transaction)
        let decisions = decide(batch, known, again, { places[$0].map { fresh[$0].1 } }, facts, &state, &chains, now)
        try service.save(state, in: transaction)
        try Mentions.append(
            chains.mentions(secrets, now), generation: found.generation, in: transaction)
        let dryRuns = try dryRuns(batch, decisions, in: transaction, now)
        var settled: [CommandKey] = []
        for place in batch.indices {
            guard let decision = decisions[place], !decision.settlements.isEmpty,
                batch[place].accepted?.isDryRun != true
            else { continue }
            settled += decision.settlements.map(\.command)
        }
        var replies = try Replies(known: known, settled: settled, vault: vault, in: transaction)
        let entries = try write(batch, decisions, chains, dryRuns, known, again, &replies, now) { entries in
            let rows = try entries.map { try $0.inboxRow(now: now, decider: number, vault: vault) }
            try Inbox.append(rows, generation: found.generation, in: transaction)
            try Outbox.append(try entries.compactMap { try $0.outboxRow(vault: vault) }, in: transaction)
        }
        try replies.save(in: transaction)
        try keepForwards(replies, now, in: transaction)
        return entries
    }

    /// What may have been decided before, in a log whose decisions are forgotten by now, is not decided again.
    private func withoutDoubt(
        _ inbound: Inbound<Service.Command>, _ known: [CommandKey: KnownCommand]
    ) -> Inbound<Service.Command> {
        guard let command = inbound.accepted, command.isTooOldToTell, known[command.key] == nil, !command.isDryRun,
            command.triedFor == nil
        else { return inbound }
        let rejection = Rejection(
            .internalError,
            "The record comes from a log that followed another one, and is older than what is remembered of that one: "
                + "whether it was decided there cannot be told. Send it under a new id if it was not.")
        return .refused(
            Refusal(
                record: command.record,
                deadLetter: .init(reason: "TOO_OLD_TO_TELL", step: .decide, detail: rejection.message),
                answer: Refusal.Answer(command, rejection)))
    }

    /// What is asked about ids, answered from the store as it is before the batch.
    private func facts(
        _ fresh: [(Service.Command, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> [CommandKey: Result<FactsResult, Rejection>] {
        var facts: [CommandKey: Result<FactsResult, Rejection>] = [:]
        // By index: a pair that is taken apart is copied, all that the two hold.
        for place in fresh.indices {
            guard let query = Service.question(fresh[place].0) else { continue }
            let (app, command) = (fresh[place].1.app, fresh[place].1.command)
            let subject = try service.facts(about: query.id, of: app, in: transaction)
            let reader = FactsReader(service: Service.name, app: app.id, secrets: secrets, transaction: transaction)
            facts[command] = try reader.read(query, subject)
        }
        return facts
    }

    // MARK: Deciding

    /// The commands that stand in the batch more than once, which few do: nothing has to be noted for the others.
    private func repeatedKeys(_ accepted: [Command]) -> Set<CommandKey> {
        var once = Set<CommandKey>(minimumCapacity: accepted.count)
        var again: Set<CommandKey> = []
        for command in accepted where !once.insert(command.key).inserted { again.insert(command.key) }
        return again
    }

    /// - Returns: for each record its decision; none for what is refused or skipped, and for commands that were decided
    ///   before.
    private func decide(
        _ batch: [Inbound<Service.Command>], _ known: [CommandKey: KnownCommand], _ again: Set<CommandKey>,
        _ contexts: (Int) -> DecisionContext?, _ facts: [CommandKey: Result<FactsResult, Rejection>],
        _ state: inout Service.State, _ chains: inout Chains, _ now: Timestamp
    ) -> [Decided?] {
        var decided = Set(known.keys)
        return batch.indices.map { place in
            guard let command = batch[place].accepted, command.triedFor == nil, !decided.contains(command.key),
                !pastTimes.wasRefused(command)
            else { return nil }
            var context = contexts(place) ?? context(of: command, now)
            if !facts.isEmpty { context.facts = facts[command.key] }
            let decision = decide(command, state, context)
            if command.isDryRun { return decision }
            if again.contains(command.key) { decided.insert(command.key) }
            var chain = DecisionChain(command.stored)
            for change in decision.changes {
                state.chain(change, &chain)
                state.apply(change)
            }
            if chain.isEmpty { mention(command, decision, state, &chain) }
            chains.note(chain, at: place, of: command.key.app)
            return decision
        }
    }

    /// A refusal changes nothing: it is found from what the command names, whether that is known or not. Of a question
    /// about a person nothing is told: whoever asks for an id that nobody has would make it known.
    private func mention(
        _ command: Command, _ decision: Decided, _ state: Service.State, _ chain: inout DecisionChain
    ) {
        guard decision.outcome.isRefusal, command.isCommand, command.asksAbout == nil else { return }
        if let subject = command.attributes.subject { chain.mention(subject) }
        guard case .success(let body) = command.body else { return }
        service.ids(in: body, of: command.key.app, state).forEach { chain.mention($0) }
    }

    func decide(_ command: Command, _ state: Service.State, _ context: DecisionContext) -> Decided {
        if let expiry = command.expiry, !pastTimes.wasRepeated(command), expiry <= context.now {
            return Decision(.expired)
        }
        switch command.body {
        case .failure(let rejection): return Decision(.rejected(rejection))
        case .success(let body):
            let decision = service.decide(body, state, context)
            return pastTimes.rejection(of: command, now: decision.outcome)
                .map { Decision(.rejected($0)) } ?? decision
        }
    }

    // MARK: Writing down

    /// How many entries are stored at once.
    private static var piece: Int { 100 }

    /// - Parameter store: is given the entries in pieces, so that PostgreSQL stores one while the next is written.
    private func write(
        _ batch: [Inbound<Service.Command>], _ decisions: [Decided?], _ chains: Chains, _ dryRuns: [Int: Entry],
        _ known: [CommandKey: KnownCommand], _ again: Set<CommandKey>, _ replies: inout Replies, _ now: Timestamp,
        store: (ArraySlice<Entry>) throws -> Void
    ) throws -> [Entry] {
        var holders = known.mapValues { IDHolder($0) }
        var entries: [Entry] = []
        entries.reserveCapacity(batch.count)
        var silence = Silence()
        var stored = 0
        for place in batch.indices {
            let (inbound, decision) = (batch[place], decisions[place])
            if let command = inbound.accepted, let forward = command.answers {
                replies.read(answerTo: forward, of: command.key.app)
            }
            switch (inbound, decision) {
            case (.accepted(let command), let decision?) where command.isDryRun:
                entries.append(try dryRuns[place] ?? entry(tried: command, decision, now))
            case (.accepted(let command), nil) where command.triedFor != nil:
                if let entry = dryRuns[place] { entries.append(entry) }
            case (.accepted(let command), let decision?) where isOfNoConsequence(command, decision):
                break
            case (.accepted(let command), let decision?):
                let (entry, answer) = try entry(command, decision, &replies, now)
                entry.before = chains.before[place]
                entries.append(entry)
                note(decision, of: command, entry, answer, in: &silence, now)
                if again.contains(command.key) {
                    holders[command.key] = IDHolder(command, entry.outcome)
                    replies.remember(answer, to: command.key)
                }
            case (.accepted(let command), nil):
                entries.append(try entry(undecided: command, holders[command.key], replies, &silence, now))
            case (.refused(let refusal), _):
                let entry = try entry(refusal, now)
                entries.append(entry)
                // What a replay refuses by the apps file of now, the next one may allow again.
                if let answer = refusal.answer, !answer.attributes.isDryRun, !pastTimes.isPast(refusal.record) {
                    silence.add(.init(answer, of: refusal.record), entry, at: now) {
                        $0.refuse(noted(refusal.record))
                    }
                }
            case (.skipped, _):
                break
            }
            if entries.count - stored == Self.piece {
                try note(&silence)
                try store(entries[stored...])
                stored = entries.count
            }
        }
        try note(&silence)
        try store(entries[stored...])
        return entries
    }

    /// Notes a decision that no message of its own tells of: the first one is no event and no reply. And a refusal that nobody
    /// takes, perhaps: an event tells when it was, and not that it was one. And a refusal that is a replay's own.
    private func note(
        _ decision: Decided, of command: Command, _ entry: Entry, _ answer: OutboxRecord?, in silence: inout Silence,
        _ now: Timestamp
    ) {
        if decision.events.isEmpty, answer == nil || entry.messages.count > 1 {
            silence.add(.init(command), entry, at: time(of: command, now)) {
                $0.decisions.append(DerivedID.message(of: command.key, index: 0))
            }
        } else if let answer, answer.mayBeGivenUp, decision.outcome.isRefusal, decision.changes.isEmpty {
            silence.add(.init(command), entry, at: time(of: command, now)) { $0.refuse(noted(command.record)) }
        }
        if answer != nil, pastTimes.refusesAnew(command, decision.outcome) {
            let reply = DerivedID.message(of: command.key, index: entry.messages.count - 1)
            silence.add(.init(command), entry, at: time(of: command, now)) { $0.refuseInReplay(reply) }
        }
    }

    /// A record whose id is taken, or that was refused once. One that repeats a refusal counts as refused.
    private func entry(
        undecided command: Command, _ holder: IDHolder?, _ replies: Replies, _ silence: inout Silence, _ now: Timestamp
    ) throws -> Entry {
        let entry =
            if pastTimes.wasRefused(command) {
                entry(command, .rejected, nil, [])
            } else if holder?.isRepeated(by: command) == true {
                try entry(repeated: command, replies, now)
            } else {
                try entry(reusedBy: command, now)
            }
        if command.isCommand, !command.isDryRun {
            let isRepeated = entry.outcome == .repeated && holder?.isRefused == false
            silence.add(.init(command), entry, at: time(of: command, now)) {
                if isRepeated { $0.repeat(noted(command.record)) } else { $0.refuse(noted(command.record)) }
            }
        }
        return entry
    }

    /// Tells of what no message of its own tells of: with the messages of the last one, whose reply stays the last of them.
    private func note(_ silence: inout Silence) throws {
        for note in silence.take() {
            let record = note.subject.record
            let message = try writer.note(note, of: noted(record), incarnation: incarnation(of: record))
            note.entry.messages.insert(message, at: 0)
        }
    }

    /// An event that nothing comes of, whenever it is read again: so nobody need know that it was read.
    private func isOfNoConsequence(_ command: Command, _ decision: Decided) -> Bool {
        Service.eventsCommute && command.source.isOfEvents && decision.isEmpty
    }

    private func entry(
        _ command: Command, _ decision: Decided, _ replies: inout Replies, _ now: Timestamp
    ) throws -> (Entry, answer: OutboxRecord?) {
        switch decision.outcome {
        case .pending, .begun: replies.begin(try writer.saga(of: command, now: now))
        case .succeeded, .rejected, .expired, .noted: break
        }
        let incarnation = incarnation(of: command.record)
        // What a replay tells has the time of then: the next one goes by it.
        let decidedAt = time(of: command, now)
        var messages: [OutboxRecord] = []
        for event in decision.events {
            messages.append(
                try writer.event(event, of: command, incarnation: incarnation, index: messages.count, now: decidedAt))
        }
        for forward in decision.forwards {
            let message = try writer.forward(forward, of: command, now: now)
            replies.forward(forward.id, of: command.key.app, message)
            messages.append(message)
        }
        for due in decision.due { messages.append(try writer.due(due)) }
        for settlement in decision.settlements {
            guard let saga = replies.unsettledSaga(settlement.command) else { continue }
            let reply = try writer.settlement(settlement.outcome, of: saga, now: now)
            messages.append(reply)
            try replies.settle(saga, with: reply, isFinal: settlement.outcome.isFinal)
        }
        let answer =
            command.isCommand
            ? try writer.reply(
                decision.outcome, to: command, index: messages.count, now: decidedAt, storedAt: now) : nil
        if let answer { messages.append(answer.reply) }
        let entry = entry(command, decision.outcome.verdict, decision.outcome.reason, messages)
        // An answer that nobody waits for: in a store that was put back, who asks may be decided behind it, and is
        // answered the same, by the same id.
        if command.answers == nil || !decision.changes.isEmpty {
            (entry.key, entry.stored) = (command.key, command.stored)
        }
        entry.digest = command.digest
        entry.receipt = Receipt(
            of: command.attributes, app: command.key.app.text, reason: entry.reason, messages: messages,
            replyIndex: answer == nil ? nil : messages.count - 1)
        entry.replyParts = answer?.parts
        return (entry, answer?.reply)
    }

    /// A reply, and nothing else: not even the command's id is taken.
    func entry(
        tried command: Command, _ decision: Decided, note: String? = nil, _ now: Timestamp
    ) throws -> Entry {
        let reply = try writer.preview(
            decision.outcome, try decision.events.map(writer.preview), of: command,
            id: messageID(command), note: note, now: now)
        return entry(command, .dryRun, decision.outcome.reason, [reply])
    }

    /// The same command again: the same reply, to where this one asks for it, and no other effect (S14).
    private func entry(repeated command: Command, _ replies: Replies, _ now: Timestamp) throws -> Entry {
        guard command.isCommand else { return entry(command, .repeated, nil, []) }
        if let answer = try replies.answer(to: command.key, digest: command.digest) {
            return entry(command, .repeated, nil, [writer.again(answer, to: command, in: log(of: command.record))])
        }
        if replies.isSilent(command.key),
            let answer = try writer.reply(.pending(nil), to: command, index: -1, now: now)
        {
            return entry(command, .repeated, nil, [answer.reply])
        }
        guard replies.owesAnswer(to: command.key) else { return entry(command, .repeated, nil, []) }
        let lost = Rejection(
            .internalError, "The first answer can no longer be read: it was stored under another internal key.")
        return try entry(Refusal(record: command.record, answer: Refusal.Answer(command, lost)), now)
    }

    /// Another one under an id that is taken.
    private func entry(reusedBy command: Command, _ now: Timestamp) throws -> Entry {
        var refusal = Refusal(record: command.record, answer: Refusal.Answer(command, Rejection(.idReused)))
        if refusal.answer == nil {
            refusal.deadLetter = .init(
                reason: ReasonCode.idReused.rawValue, step: .decide,
                detail: "an event with this source and id but other content was read before")
        }
        let entry = try entry(refusal, now)
        entry.type = command.attributes.type
        return entry
    }

    private func entry(_ refusal: Refusal, _ now: Timestamp) throws -> Entry {
        let told = try refusal.answer.map {
            try writer.notice($0, of: refusal.record, in: log(of: refusal.record), now: now)
        }
        var messages = told.map { [$0] } ?? []
        if let cause = refusal.deadLetter {
            messages.insert(writer.deadLetter(refusal.record, cause, now: now), at: 0)
        }
        return Entry(
            refusal.record, incarnation: incarnation(of: refusal.record), type: refusal.answer?.attributes.type ?? "",
            outcome: refusal.deadLetter == nil ? .rejected : .deadLettered,
            reason: refusal.deadLetter?.reason ?? refusal.answer?.rejection.reason.rawValue, messages)
    }

    func entry(
        _ command: Command, _ outcome: Verdict, _ reason: String?, _ messages: [OutboxRecord]
    ) -> Entry {
        Entry(
            command.record, incarnation: incarnation(of: command.record), type: command.attributes.type,
            outcome: outcome, reason: reason, messages)
    }

    func context(of command: Command, _ now: Timestamp) -> DecisionContext {
        command.context(now: time(of: command, now), secrets: secrets, retention: retention)
    }

    /// As of when it is decided.
    private func time(of command: Command, _ now: Timestamp) -> Timestamp {
        pastTimes.time(of: command, now: now)
    }

    func incarnation(of record: KafkaRecord) -> Int64 { incarnations[record.topicPartition] ?? 0 }

    func log(of record: KafkaRecord) -> MessageWriter.Log {
        MessageWriter.Log(cluster: cluster, incarnation: incarnation(of: record))
    }

    /// Every command that is sent on stays here until it is answered (docs/loop.md).
    private func keepForwards(_ replies: Replies, _ now: Timestamp, in transaction: any SQLTransaction) throws {
        let sent = try replies.forwards.map { forward in
            UnansweredForward(
                app: forward.app, id: forward.id, message: try vault.close([forward.message]),
                begunAt: now.milliseconds)
        }
        if !sent.isEmpty { try Forwards.save(sent, in: transaction) }
        if !replies.answered.isEmpty { try Forwards.answered(replies.answered, in: transaction) }
    }
}
