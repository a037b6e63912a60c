// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

/// Dry runs that would send commands to other services, or tell them what is news to them: these are asked to try it, and
/// what they answer is decided like the answers of a saga, on a state that is taken back (docs/loop.md "Dry runs").
extension BatchDecider {
    typealias Accepted = AcceptedCommand<Service.Command>

    /// How many of an app may wait in one service.
    static var maxWaiting: Int { 100 }

    /// - Parameter decisions: of the batch's records, by their place.
    /// - Returns: the entries of dry runs that begin to wait, and of what is answered to those that do.
    func dryRuns(
        _ batch: [Inbound<Service.Command>], _ decisions: [Decided?], in transaction: any SQLTransaction,
        _ now: Timestamp
    ) throws -> [Int: Entry] {
        var entries: [Int: Entry] = [:]
        var waiting: [AppID: Int] = [:]
        for place in batch.indices {
            guard let command = batch[place].accepted else { continue }
            if let answer = command.triedFor {
                entries[place] = try take(answer, command, in: transaction, now)
            } else if command.isDryRun, let decision = decisions[place] {
                var so = Rehearsal(of: command)
                try so.take(decision, questions(of: decision, on: command), isFirst: true, of: command.key, writer)
                if !so.questions.isEmpty {
                    entries[place] = try begin(command, so.questions, &waiting, in: transaction, now)
                } else if let note = so.note {
                    entries[place] = try entry(tried: command, decision, note: note, now)
                }
            }
        }
        return entries
    }

    /// Ends dry runs that have waited for too long: their replies tell what is known. Of what has waited for twice as
    /// long, whatever kept it, that is nothing.
    func endOverdueDryRuns(limit: Int, in transaction: any SQLTransaction, now: Timestamp) throws {
        for (app, id) in try DryRuns.overdue(now: now.milliseconds, limit: limit, in: transaction) {
            let records = try DryRuns.find(app: app, id: id, in: transaction)
            guard let first = records.first, let run = try waiting(records) else {
                try DryRuns.remove(app: app, id: id, in: transaction)
                continue
            }
            let isLate = abs(now.milliseconds - first.begunAt) >= 2 * DryRuns.patience
            var end =
                isLate
                ? Rehearsal(outcome: .pending(nil))
                : try transaction.undoing { try rehearse(run, in: transaction) }
            if !end.open.isEmpty, case .succeeded(let result) = end.outcome { end.outcome = .pending(result) }
            let services = Set(end.open.values).sorted().joined(separator: ", ")
            let note = "Not every service answered within \(DryRuns.patience / 1000) s"
            let reply = try reply(end, to: run, note: services.isEmpty ? "\(note)." : "\(note): \(services).", now)
            try DryRuns.end(first, with: try vault.close([reply]), in: transaction)
        }
    }

    // MARK: One dry run

    /// What another service is to try.
    enum Question {
        case command(Forward)
        case event(any EventMessage, service: String, id: CommandID)

        fileprivate var id: CommandID {
            switch self {
            case .command(let forward): forward.id
            case .event(_, _, let id): id
            }
        }

        fileprivate var isEvent: Bool { if case .event = self { true } else { false } }

        fileprivate var service: String {
            switch self {
            case .command(let forward): CommandType.service(of: type(of: forward.command).type) ?? ""
            case .event(_, let service, _): service
            }
        }
    }

    /// - Parameter command: what is decided, or what it is decided for.
    private func questions(of decision: Decided, on command: Accepted) -> [Question] {
        let heard = decision.events.flatMap { event in Service.listeners(to: event).map { (event, $0) } }
        return decision.forwards.map { .command($0) }
            + heard.indices.map { place in
                // No command that the saga sends has such a number.
                let id = DerivedID.forward(of: command.key, number: -1 - place)
                return .event(heard[place].0, service: heard[place].1, id: id)
            }
    }

    private func message(_ question: Question, of command: Accepted, dryRun id: String, _ now: Timestamp) throws
        -> OutboxRecord
    {
        switch question {
        case .command(let forward): try writer.forward(forward, of: command, dryRun: id, now: now)
        case .event(let event, let service, let forward):
            try writer.tried(event, by: service, forward, of: command, dryRun: id, now: now)
        }
    }

    /// One that waits: its records in their order, the command first.
    fileprivate struct Waiting {
        var id: String
        var records: [(command: Accepted, decidedAt: Timestamp)]
    }

    /// What it has come to.
    fileprivate struct Rehearsal {
        var outcome = Outcome.noted
        var events: [ReplyEvent] = []
        /// The services of the forwards that are not answered.
        var open: [CommandID: String] = [:]
        /// Those that would have done something by now, as far as is known.
        var changed: Set<String> = []
        /// What the newest record leads to, as far as it can be asked.
        var questions: [Question] = []
        /// Why not all can be told.
        var note: String?

        var isOver: Bool { open.isEmpty }

        /// The service that asks for it has left something undone.
        init(of command: Accepted) {
            let source = command.attributes.source
            if source.hasPrefix(Topics.ownSources) { changed = [String(source.dropFirst(Topics.ownSources.count))] }
        }

        init(outcome: Outcome) { self.outcome = outcome }
    }

    private func begin(
        _ command: Accepted, _ questions: [Question], _ waiting: inout [AppID: Int], in transaction: any SQLTransaction,
        _ now: Timestamp
    ) throws -> Entry {
        let id = MessageWriter.id(of: command.record, log(of: command.record))
        // What services ask for comes of what they let in.
        if command.principal.kind != .service {
            let app = command.key.app
            let count = try waiting[app] ?? DryRuns.count(of: app, limit: Self.maxWaiting, in: transaction)
            guard count < Self.maxWaiting else {
                let rejection = Rejection(
                    .limitExceeded,
                    "\(Self.maxWaiting) dry runs of this app wait for other services. Send this one again when some are "
                        + "answered.")
                let reply = try writer.preview(.rejected(rejection), [], of: command, id: id, now: now)
                return entry(command, .dryRun, rejection.reason.rawValue, [reply])
            }
            waiting[app] = count + 1
        }
        try DryRuns.append([try row(of: command, id: id, number: 0, begunAt: now, now)], in: transaction)
        return entry(
            command, .dryRun, nil,
            try questions.map { try message($0, of: command, dryRun: id, now) })
    }

    /// An answer to what a dry run asked. One that came before, or that nobody waits for any more, is passed over.
    private func take(
        _ answer: DryRunAnswer, _ command: Accepted, in transaction: any SQLTransaction, _ now: Timestamp
    ) throws -> Entry {
        let passedOver = entry(command, .noted, nil, [])
        let app = command.key.app
        let records = try DryRuns.find(app: app, id: answer.id, in: transaction)
        guard let first = records.first, let last = records.last else { return passedOver }
        guard var run = try waiting(records) else {
            try DryRuns.remove(app: app, id: answer.id, in: transaction)
            return passedOver
        }
        guard !run.records.contains(where: { $0.command.triedFor?.forward == answer.forward }) else {
            return passedOver
        }
        run.records.append((command, now))
        let end = try transaction.undoing { try rehearse(run, in: transaction) }
        if end.isOver {
            try DryRuns.remove(app: app, id: answer.id, in: transaction)
            return entry(command, .dryRun, end.outcome.reason, [try reply(end, to: run, note: end.note, now)])
        }
        let begunAt = Timestamp(milliseconds: first.begunAt)
        let row = try row(of: command, id: answer.id, number: last.number + 1, begunAt: begunAt, now)
        try DryRuns.append([row], in: transaction)
        let asked = run.records[0].command
        return entry(
            command, .dryRun, nil,
            try end.questions.map { try message($0, of: asked, dryRun: answer.id, now) })
    }

    /// Decides all of it, each record on what those before it led to.
    private func rehearse(_ run: Waiting, in transaction: any SQLTransaction) throws -> Rehearsal {
        var so = Rehearsal(of: run.records[0].command)
        for (command, now) in run.records {
            so.questions = []
            if let answer = command.triedFor {
                // Decided again, the saga may not have asked this: the state is another one by now.
                guard let service = so.open.removeValue(forKey: answer.forward) else { continue }
                so.take(answer, of: service)
                if answer.status == .pending { continue }
            }
            let body = try? command.body.get()
            let context = context(of: command, now)
            var state = try service.load(body.map { [($0, context)] } ?? [], in: transaction)
            let decision = decide(command, state, context)
            decision.changes.forEach { state.apply($0) }
            try service.save(state, in: transaction)
            let questions = questions(of: decision, on: command)
            try so.take(
                decision, questions, isFirst: command.triedFor == nil, of: run.records[0].command.key, writer)
        }
        return so
    }

    private func reply(_ end: Rehearsal, to run: Waiting, note: String?, _ now: Timestamp) throws -> OutboxRecord {
        try writer.preview(
            end.outcome, end.events, of: run.records[0].command, id: run.id, note: note, now: now)
    }

    // MARK: Its records

    private func row(
        of command: Accepted, id: String, number: Int64, begunAt: Timestamp, _ now: Timestamp
    ) throws -> DryRunRecord {
        let record = command.record
        let message = Record(
            topic: record.topicPartition.topic, key: record.key, value: record.value, headers: record.headers)
        return DryRunRecord(
            app: command.key.app, id: id, number: number, begunAt: begunAt.milliseconds, decidedAt: now.milliseconds,
            record: record, incarnation: incarnation(of: record), message: try vault.close(read: message))
    }

    /// - Returns: `nil` when a record cannot be read any more, or its sender may not send it by now.
    private func waiting(_ rows: [DryRunRecord]) throws -> Waiting? {
        var run = Waiting(id: rows.first?.id ?? "", records: [])
        for row in rows {
            let decidedAt = Timestamp(milliseconds: row.decidedAt)
            guard let message = try? vault.open(row.message).first,
                let command = reader.read(row.record(message.record), now: decidedAt).accepted
            else { return nil }
            run.records.append((command, decidedAt))
        }
        return run.records.isEmpty ? nil : run
    }
}

extension BatchDecider.Rehearsal {
    fileprivate mutating func take(_ answer: DryRunAnswer, of service: String) {
        events += answer.events
        if answer.status == .succeeded { changed.insert(service) }
        note = note ?? answer.note
        if answer.status == .pending { note = note ?? "The \(service) service cannot tell all that it would do." }
    }

    fileprivate mutating func take(
        _ decision: BatchDecider.Decided, _ questions: [BatchDecider.Question], isFirst: Bool, of command: CommandKey,
        _ writer: MessageWriter
    ) throws {
        if isFirst { outcome = decision.outcome }
        for settlement in decision.settlements where settlement.command == command && !outcome.isFinal {
            outcome = settlement.outcome
        }
        events += try decision.events.map(writer.preview)
        self.questions = []
        for (service, asked) in Dictionary(grouping: questions, by: \.service)
        where asked.count > 1 && asked.contains(where: \.isEvent) {
            // What it makes of the second follows from what it makes of the first.
            changed.insert(service)
        }
        for question in questions {
            let service = question.service
            if !changed.contains(service) {
                open[question.id] = service
                self.questions.append(question)
            } else if note == nil {
                note =
                    "What the \(service) service would do is not told: it follows from what it would have done before, "
                    + "which a dry run leaves undone."
            }
        }
    }
}
