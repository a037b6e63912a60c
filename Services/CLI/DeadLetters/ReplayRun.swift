// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Supervision

/// Sends letters again, each once, whoever else does it at the same time: a letter is claimed on the actions topic, sent
/// within the claim's time, and what was sent and answered is written there. What somebody claimed who is gone is looked for
/// on its topic first. Of one thread.
final class ReplayRun {
    struct Options {
        /// Letters a second.
        var rate = 50.0
        /// Letters of different keys that are in hand at once.
        var batch = 20
        var keepsGoing = false
        /// Whether each is tried first, and left when it would not succeed.
        var onlyIfSucceeded = false
        /// How long an answer is waited for, and a letter that somebody else has in hand.
        var patience: Duration = .seconds(40)
        var by: String
        var note: String
    }

    private enum Stage {
        case trying(ReplyTail.Question, until: ContinuousClock.Instant)
        case claiming(record: String, since: ContinuousClock.Instant)
        case claimed(since: ContinuousClock.Instant)
        case sending(token: Int)
        /// - Parameter after: what was said before was said to the letter's own record.
        case answering(ReplyTail.Question, after: Int64, until: ContinuousClock.Instant)
        /// Somebody else has sent it.
        case watching(ReplyTail.Question?, after: Int64, until: ContinuousClock.Instant)
    }

    private struct Work {
        var outgoing: Outgoing
        var stage: Stage
        var place: RecordPost.Place?
    }

    /// What is claimed is given to Kafka within this time, or claimed again: with the time that Kafka is given, it is gone
    /// before the claim ends.
    private static let window: Duration = .seconds(5)
    /// How often a letter is claimed at most.
    private static let pause: Duration = .seconds(1)
    private static let look: Duration = .milliseconds(250)

    private let desk: LetterDesk
    private let post: LetterPost
    private let options: Options
    private let letters: [LetterID: Letter]
    private let records: RecordPost
    private let answers: AnswerBoard
    /// When the earliest claim of these letters was made that nothing came of.
    private let firstClaim: Int64?
    private var plan: ReplayPlan
    private var work: [LetterID: Work] = [:]
    private var traces: [String: ReplayTrace] = [:]
    private var notes: Set<Int> = []
    /// When each letter was claimed last.
    private var claimed: [LetterID: ContinuousClock.Instant] = [:]
    /// Letters that others have in hand, and since when that is so here.
    private var held: [LetterID: ContinuousClock.Instant] = [:]
    /// The runs of others that were waited for, and told of.
    private var holders: Set<String> = []
    private var nextSend = ContinuousClock.now
    private var edited: [LetterID: Outgoing] = [:]
    /// What an answer names to letters that somebody has sent edited.
    private var questions: [LetterID: ReplyTail.Question] = [:]
    /// Letters that others wait behind.
    private var failed: [LetterID: ReplayResult.End] = [:]
    private let tell: (ReplayResult) -> Void
    private let notice: (String) -> Void
    /// Whether what was answered before the run began counts.
    private let looksBack: Bool

    /// - Parameters:
    ///   - edited: what is sent in the place of a letter.
    ///   - tell: is told of each letter that was taken in hand.
    ///   - notice: is told what is waited for.
    init(
        _ desk: LetterDesk, _ handled: [HandledLetter], _ post: LetterPost, _ options: Options,
        edited: [LetterID: Outgoing] = [:], tell: @escaping (ReplayResult) -> Void,
        notice: @escaping (String) -> Void = { _ in }
    ) throws {
        self.desk = desk
        self.post = post
        self.options = options
        self.edited = edited
        self.tell = tell
        self.notice = notice
        let chosen = handled.map(\.letter)
        letters = Dictionary(uniqueKeysWithValues: chosen.map { ($0.id, $0) })
        plan = ReplayPlan(chosen, keepsGoing: options.keepsGoing)
        firstClaim = handled.compactMap { $0.state.inDoubt?.time ?? $0.state.claim?.time }.min()
        records = try RecordPost(desk.kafka)
        // The answers to what others have sent may be there already.
        let earliest = handled.compactMap { ($0.state.inDoubt ?? $0.state.claim ?? $0.state.closing)?.time }.min()
        looksBack = earliest != nil
        answers = try desk.answers(
            chosen, post,
            from: earliest.map { .time(Timestamp(milliseconds: $0 - 2 * HandledLetters.lease)) } ?? .end)
        for letter in chosen { Self.question(letter).map { answers.listen(for: $0) } }
        for handled in handled {
            guard let command = handled.state.closing?.command, command.isEdited, handled.state.answer == nil,
                let record = try desk.record(at: command.place, command.offset),
                let question = Outgoing(handled.letter, found: record).question(isDryRun: false)
            else { continue }
            questions[handled.letter.id] = question
            answers.listen(for: question)
        }
    }

    /// - Parameter progress: is called a few times a second.
    /// - Returns: the letters that were not taken in hand, and why.
    func run(progress: () -> Void) throws -> [ReplayResult] {
        defer { records.flush() }
        // An answer that came while nobody waited is no less one.
        if looksBack { try answers.catchUp(unless: desk.stop) }
        var stopped: ContinuousClock.Instant?
        while !plan.isDone {
            if stopped == nil, desk.stop() {
                stopped = .now
                plan.close()
                try putBack()
            }
            while stopped == nil, work.count < options.batch, let id = plan.next(now: .now) { try begin(id) }
            try listen()
            for id in work.keys.sorted() { try step(id, stopped) }
            progress()
        }
        records.flush()
        try records.check(&notes)
        return left()
    }

    private func listen() throws {
        records.poll()
        try records.check(&notes)
        try desk.log.poll(.milliseconds(work.isEmpty ? 50 : 5))
        try answers.poll(.milliseconds(5))
    }

    private func left() -> [ReplayResult] {
        let behind = plan.stopped.compactMap { id, first in
            letters[id].map {
                ReplayResult(letter: $0, end: .behind(first), why: "\(first) of its key \(Self.words(failed[first]))")
            }
        }
        let notReached = plan.left.compactMap { id in
            letters[id].map { ReplayResult(letter: $0, end: .left(reason: "NOT_REACHED"), why: "stopped before it") }
        }
        return (behind + notReached).filter { desk.log[$0.letter].isOpen }
    }

    private static func words(_ end: ReplayResult.End?) -> String {
        switch end {
        case .unanswered, .stillUnanswered: "is not answered yet"
        case .held: "is in hand of somebody else"
        default: "has failed"
        }
    }

    /// Letters that are not sent yet are not sent any more.
    private func putBack() throws {
        for (id, item) in work {
            guard let letter = letters[id] else { continue }
            switch item.stage {
            case .claiming, .claimed: try write(.released, letter)
            case .trying, .watching: break
            case .sending, .answering: continue
            }
            work[id] = nil
            finish(letter, .left(reason: "NOT_REACHED"), "stopped before it", isGood: false)
        }
    }

    // MARK: One letter

    private func begin(_ id: LetterID) throws {
        guard let letter = letters[id] else { return plan.finish(id, isGood: true) }
        let state = desk.log[letter]
        if let closing = state.closing { return watch(letter, closing, state.answer?.answer) }
        if let claim = state.claim, claim.run != desk.log.run {
            guard !isHeld(letter, claim) else { return }
        }
        if let last = claimed[id], .now - last < Self.pause { return plan.postpone(id, until: .now + Self.look) }
        do {
            let outgoing = try edited[id] ?? post.outgoing(letter)
            guard options.onlyIfSucceeded, let question = outgoing.question(isDryRun: true) else {
                return try claim(outgoing)
            }
            let record = try post.question(outgoing)
            answers.expect(question)
            work[id] = Work(outgoing: outgoing, stage: .trying(question, until: .now + options.patience))
            notes.insert(try records.send(record))
        } catch let hindrance as Hindrance {
            finish(letter, .left(reason: hindrance.reason), hindrance.words, isGood: false)
        }
    }

    /// Whether somebody else's claim holds, by the broker's time: where that is not known yet, a claim of ours will tell.
    private func isHeld(_ letter: Letter, _ claim: LetterHandling) -> Bool {
        let since = held[letter.id] ?? .now
        held[letter.id] = since
        guard let now = desk.log.now(letter), !HandledLetters.isOver(claim, at: now) else { return false }
        let waited = ContinuousClock.now - since
        let end = LetterTable.time(claim.time + HandledLetters.lease)
        if waited >= options.patience {
            finish(letter, .held, "\(claim.by) has it in hand until \(end), by Kafka's clock", isGood: false)
            return true
        }
        if waited > Self.pause, holders.insert(claim.run).inserted {
            notice(
                "\(letter.id) is in hand of \(claim.by) until \(end), by Kafka's clock. Waiting for it, "
                    + "\(options.patience.components.seconds) s at most (--wait)")
        }
        plan.postpone(letter.id, until: .now + Self.look)
        return true
    }

    /// Somebody has done it. What is behind it waits for the answer.
    private func watch(_ letter: Letter, _ closing: LetterHandling, _ answer: LetterHandling.Answer?) {
        if closing.act == .dismissed {
            return finish(letter, .others(nil), "dismissed by \(closing.by)", isGood: true)
        }
        if let answer { return endOthers(letter, answer) }
        let age = Duration.milliseconds(max(0, (desk.log.now(letter) ?? closing.time) - closing.time))
        work[letter.id] = Work(
            outgoing: Outgoing(letter: letter, record: Record(topic: letter.origin.topic, value: nil)),
            stage: .watching(
                questions[letter.id] ?? Self.question(letter),
                after: start(of: letter, desk.log[letter].claimedAt ?? closing.time),
                until: .now + (options.patience - age)))
    }

    private func endOthers(_ letter: Letter, _ answer: LetterHandling.Answer) {
        let by = desk.log[letter].closing?.by ?? "?"
        finish(letter, .others(answer), "sent by \(by): \(answer.text)", isGood: answer.isGood)
    }

    /// What an answer to the letter as it is names.
    private static func question(_ letter: Letter) -> ReplyTail.Question? {
        Outgoing(
            letter: letter, record: Record(topic: letter.origin.topic, value: nil), event: letter.event()
        ).question(isDryRun: false)
    }

    /// What was said before this time was said to the letter's own record: the clocks of brokers and services may differ by
    /// half of the time between the two.
    private func start(of letter: Letter, _ claimedAt: Int64) -> Int64 {
        letter.record.timestampMs + (claimedAt - letter.record.timestampMs) / 2
    }

    private func step(_ id: LetterID, _ stopped: ContinuousClock.Instant?) throws {
        guard let item = work[id] else { return }
        let letter = item.outgoing.letter
        // Who wants to stop does not wait for long.
        let limit = stopped.map { $0 + Self.window }
        let isLate = { (until: ContinuousClock.Instant) in min(until, limit ?? until) <= .now }
        switch item.stage {
        case .trying(let question, let until):
            if let reply = answers.answer(question) {
                if reply.status == .succeeded { return try claim(item.outgoing) }
                let reason = reply.reason ?? reply.status.rawValue.uppercased()
                finish(letter, .spared(reason: reason), "it would be \(reply.status.rawValue)", isGood: false)
            } else if isLate(until) {
                finish(letter, .left(reason: "NO_ANSWER"), "nobody said what would happen", isGood: false)
            }
        case .claiming(let record, let since):
            if desk.log.hasRead(record) { try claimed(item.outgoing, since) }
        case .claimed(let since):
            guard nextSend <= .now else { return }
            if .now - since > Self.window { return try claim(item.outgoing) }
            try send(item.outgoing)
        case .sending(let token):
            guard let outcome = records.outcome(token) else { return }
            do {
                try sent(item.outgoing, try outcome.get(), claimedAt: desk.log[letter].claimedAt ?? 0)
            } catch let hindrance as Hindrance {
                try giveUp(letter, hindrance)
            }
        case .answering(let question, let after, let until):
            try wait(item, question, after, isLate(until))
        case .watching(let question, let after, let until):
            try look(letter, question, after, isLate(until))
        }
    }

    /// At what somebody else has sent.
    private func look(_ letter: Letter, _ question: ReplyTail.Question?, _ after: Int64, _ isLate: Bool) throws {
        if let answer = desk.log[letter].answer?.answer { return endOthers(letter, answer) }
        var answer: LetterHandling.Answer?
        if let question, let reply = answers.answer(question, after: after) {
            answer = LetterHandling.Answer(status: reply.status.rawValue, reason: reply.reason)
        } else if isLate, let question, answers.isPending(question, after: after) {
            answer = LetterHandling.Answer(status: ReplyStatus.pending.rawValue, reason: nil)
        }
        if let answer {
            try write(.answered, letter, answer: answer)
            endOthers(letter, answer)
        } else if isLate {
            let closing = desk.log[letter].closing
            let time = closing.map { LetterTable.time($0.time) } ?? "-"
            let words = "sent by \(closing?.by ?? "?") at \(time), and not answered yet"
            finish(letter, .stillUnanswered, words, isGood: false)
        }
    }

    // MARK: Sent once

    private func claim(_ outgoing: Outgoing) throws {
        let since = ContinuousClock.now
        claimed[outgoing.letter.id] = since
        let record = try write(.claimed, outgoing.letter, digest: outgoing.digest)
        work[outgoing.letter.id] = Work(outgoing: outgoing, stage: .claiming(record: record, since: since))
    }

    /// The claim was read back: everybody sees whose the letter is.
    private func claimed(_ outgoing: Outgoing, _ since: ContinuousClock.Instant) throws {
        let letter = outgoing.letter
        let state = desk.log[letter]
        guard state.isOpen, state.claim?.run == desk.log.run else {
            work[letter.id] = nil
            return plan.postpone(letter.id, until: .now + (state.isOpen ? Self.look : .zero))
        }
        if let doubt = state.inDoubt, let found = try trace(letter, doubt, state.digests) {
            let outgoing = Outgoing(letter, found: found)
            if let question = outgoing.question(isDryRun: false) {
                try answers.listen(for: question, since: doubt.time - 2 * HandledLetters.lease, unless: desk.stop)
            }
            return try sent(outgoing, (found.topicPartition, found.offset), claimedAt: doubt.time)
        }
        work[letter.id] = Work(outgoing: outgoing, stage: .claimed(since: since))
    }

    /// Whether somebody who had claimed it and said no more has sent it.
    private func trace(_ letter: Letter, _ doubt: LetterHandling, _ digests: Set<String>) throws -> KafkaRecord? {
        let topic = letter.origin.topic
        let since = Timestamp(milliseconds: min(firstClaim ?? doubt.time, doubt.time) - 60_000)
        let trace =
            try traces[topic]
            ?? ReplayTrace(desk.kafka, desk.admin, topic: topic, partitions: desk.existing[topic] ?? 0, since: since)
        traces[topic] = trace
        return try trace.find(letter, digests)
    }

    private func send(_ outgoing: Outgoing) throws {
        nextSend = max(nextSend, .now - .seconds(1)) + .seconds(1 / options.rate)
        if let question = outgoing.question(isDryRun: false) { answers.expect(question) }
        do {
            let token = try records.send(outgoing.record)
            work[outgoing.letter.id]?.stage = .sending(token: token)
        } catch let hindrance as Hindrance {
            try giveUp(outgoing.letter, hindrance)
        }
    }

    /// Kafka does not take it.
    private func giveUp(_ letter: Letter, _ hindrance: Hindrance) throws {
        try write(.released, letter)
        finish(letter, .left(reason: hindrance.reason), hindrance.words, isGood: false)
    }

    /// - Parameter claimedAt: under which claim.
    private func sent(_ outgoing: Outgoing, _ place: RecordPost.Place, claimedAt: Int64) throws {
        let letter = outgoing.letter
        let question = outgoing.question(isDryRun: false)
        let command = LetterHandling.Command(
            id: outgoing.event?.attributes.id, place: place.partition, offset: place.offset,
            keyID: outgoing.keyID?.text, isEdited: outgoing.isEdited)
        let unreadable = letter.refusal?.reason.rawValue
        let answer: LetterHandling.Answer = unreadable.map { .unreadable($0) } ?? .delivered
        try write(.sent, letter, command: command, answer: question == nil ? answer : nil)
        work[letter.id]?.place = place
        guard let question else {
            let words = unreadable.map { _ in "no service can read it, so it becomes a dead letter again" }
            return finish(letter, .answered(answer), words, isGood: answer.isGood)
        }
        work[letter.id]?.stage = .answering(
            question, after: start(of: letter, claimedAt), until: .now + options.patience)
    }

    private func wait(_ item: Work, _ question: ReplyTail.Question, _ after: Int64, _ isLate: Bool) throws {
        let letter = item.outgoing.letter
        if let reply = answers.answer(question, after: after) {
            try end(letter, LetterHandling.Answer(status: reply.status.rawValue, reason: reply.reason), reply.message)
        } else if isLate, answers.isPending(question, after: after) {
            try end(letter, LetterHandling.Answer(status: ReplyStatus.pending.rawValue, reason: nil), nil)
        } else if isLate {
            let place = item.place.map { " as \($0.partition)@\($0.offset)" } ?? ""
            finish(letter, .unanswered, "sent\(place), and not answered yet", isGood: false)
        }
    }

    private func end(_ letter: Letter, _ answer: LetterHandling.Answer, _ words: String?) throws {
        try write(.answered, letter, answer: answer)
        finish(letter, .answered(answer), words, isGood: answer.isGood)
    }

    private func finish(_ letter: Letter, _ end: ReplayResult.End, _ why: String?, isGood: Bool) {
        let place = work.removeValue(forKey: letter.id)?.place
        if !isGood { failed[letter.id] = end }
        plan.finish(letter.id, isGood: isGood)
        tell(ReplayResult(letter: letter, end: end, why: why, place: place))
    }

    /// - Returns: the id of the record.
    @discardableResult
    private func write(
        _ act: LetterHandling.Act, _ letter: Letter, command: LetterHandling.Command? = nil,
        answer: LetterHandling.Answer? = nil, digest: String? = nil
    ) throws -> String {
        let handling = LetterHandling(
            act, letter.place, id: UUID().uuidString.lowercased(), run: desk.log.run, by: options.by,
            note: options.note, command: command, answer: answer, digest: digest)
        notes.insert(try records.send(try desk.log.record(handling, of: letter)))
        return handling.id
    }
}
