// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Supervision

/// What would become of a letter if it were sent now.
enum Prospect: Hashable {
    case answered(LetterHandling.Answer)
    /// Nobody answers to such a record.
    case delivered
    /// No service can read it: it would become a dead letter again.
    case unreadable(String)
    case unanswered
    /// It is not sent, or cannot be asked about: why.
    case hindered(reason: String, words: String)
}

/// Asks services what would become of letters, by dry runs. Nothing else is written.
final class LetterInquiry {
    private let desk: LetterDesk
    private let post: LetterPost
    private let answers: AnswerBoard
    private let records: RecordPost
    /// So many questions are on their way at once: services let an app have so many dry runs that wait.
    private static let most = 40

    init(_ desk: LetterDesk, _ letters: [Letter], _ post: LetterPost) throws {
        self.desk = desk
        self.post = post
        answers = try desk.answers(letters, post, from: .end)
        records = try RecordPost(desk.kafka)
    }

    /// - Parameters:
    ///   - rate: questions a second.
    ///   - patience: how long each is waited for.
    ///   - tell: is told of each as it comes, in any order.
    func ask(
        _ letters: [Letter], rate: Double, patience: Duration, tell: (Letter, Prospect, ReceivedReply?) -> Void
    ) throws {
        var waiting: [LetterID: (letter: Letter, question: ReplyTail.Question, until: ContinuousClock.Instant)] = [:]
        // Two questions of one id have the same answer: one after the other.
        var left = letters[...]
        var next = ContinuousClock.now
        var tokens: Set<Int> = []
        while !left.isEmpty || !waiting.isEmpty {
            if desk.stop() { throw Problem(.interrupted, "interrupted; only questions were asked, nothing was done") }
            while waiting.count < Self.most, next <= .now, let letter = left.popFirst() {
                do {
                    let outgoing = try post.outgoing(letter)
                    guard let question = outgoing.question(isDryRun: true) else {
                        tell(letter, letter.refusal.map { .unreadable($0.reason.rawValue) } ?? .delivered, nil)
                        continue
                    }
                    let record = try post.question(outgoing)
                    answers.expect(question)
                    waiting[letter.id] = (letter, question, .now + patience)
                    tokens.insert(try records.send(record))
                    next = max(next, .now - .seconds(1)) + .seconds(1 / rate)
                } catch let hindrance as Hindrance {
                    tell(letter, .hindered(reason: hindrance.reason, words: hindrance.words), nil)
                }
            }
            records.poll()
            try records.check(&tokens)
            try answers.poll(.milliseconds(20))
            for (id, item) in waiting {
                if let reply = answers.answer(item.question) {
                    let answer = LetterHandling.Answer(status: reply.status.rawValue, reason: reply.reason)
                    tell(item.letter, .answered(answer), reply)
                } else if item.until <= .now {
                    tell(item.letter, .unanswered, nil)
                } else {
                    continue
                }
                waiting[id] = nil
            }
        }
    }

}
