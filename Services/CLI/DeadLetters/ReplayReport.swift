// SPDX-License-Identifier: Apache-2.0

import Contracts
import Observability
import Supervision
import WireJSON

/// What a replay says in the end, and how it ends.
struct ReplayReport {
    let by: String
    let note: String
    let isJSON: Bool
    private var answers: [LetterHandling.Answer: Int] = [:]
    private var unanswered = 0
    private var others = 0
    private var left: [String: Int] = [:]
    private var isHindered = false
    /// The first letter of each cause, and what is to be said of it.
    private var examples: [String: String] = [:]
    /// The first letter that nobody has answered.
    private var waiting: Letter?
    private var isHeld = false
    /// Letters that are left as was wished; those behind them are no failure either.
    private var spared: Set<LetterID> = []
    private var isBlocked = false

    init(by: String, note: String, isJSON: Bool) {
        self.by = by
        self.note = note
        self.isJSON = isJSON
    }

    mutating func take(_ result: ReplayResult) {
        if isJSON { say(json: result.json) }
        if let cause = result.cause {
            left[cause, default: 0] += 1
            note(cause, result)
        }
        switch result.end {
        case .answered(let answer):
            answers[answer, default: 0] += 1
            if !answer.isGood { note(answer.text, result) }
        case .unanswered:
            unanswered += 1
            noteWaiting(result)
        case .others(let answer):
            others += 1
            if let answer, !answer.isGood { note("\(answer.text) (others)", result) }
        case .stillUnanswered:
            others += 1
            noteWaiting(result)
        case .held: isHeld = true
        case .left(let reason): if reason != "NOT_REACHED" { isHindered = true }
        case .behind(let first): if !spared.contains(first) { isBlocked = true }
        case .spared: spared.insert(result.letter.id)
        }
    }

    private mutating func noteWaiting(_ result: ReplayResult) {
        waiting = waiting ?? result.letter
        note("no answer", result)
    }

    private mutating func note(_ cause: String, _ result: ReplayResult) {
        guard examples[cause] == nil else { return }
        examples[cause] = "\(result.letter.id)" + (result.why.map { ": \($0)" } ?? "")
    }

    func tell() {
        if isJSON { return }
        let sent = answers.values.reduce(0, +) + unanswered
        var parts = answers.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key.text)" }
        if unanswered > 0 { parts.append("\(unanswered) without an answer") }
        var line = "done      \(sent) replayed" + (parts.isEmpty ? "." : ": \(parts.joined(separator: ", ")).")
        if others > 0 { line += "  \(others) handled by others meanwhile." }
        let open = left.values.reduce(0, +)
        if open > 0 { line += "  \(open) left open." }
        if sent > 0 { line += "  Recorded as \(by), \"\(note)\"" }
        say(line.harmless)
        for (cause, example) in examples.sorted(by: { $0.key < $1.key }) {
            let count = left[cause].map { "\($0) " } ?? ""
            say("          \(count)\(cause)  \(example)".harmless)
        }
        for line in advice { say("          \(line)".harmless) }
    }

    /// What to do about letters that are not answered, and those that are in others' hands.
    private var advice: [String] {
        var lines: [String] = []
        if let letter = waiting {
            let id = letter.attributes?.id ?? "ID"
            let app = letter.app.map { " --app \($0)" } ?? ""
            lines.append("Does the \(letter.id.service) service run? Once it has answered, the same line goes on.")
            lines.append("What became of it: identitybus explain \(id)\(app)")
            if left["BEHIND"] != nil { lines.append("Not to wait for its answer: the same line with --keep-going") }
        }
        if isHeld { lines.append("Once they are sent, or the time is over, the same line goes on.") }
        return lines
    }

    /// `nil` when all is well. What stays behind a letter that is not answered waits for that.
    var status: ExitStatus? {
        if isHindered || answers.contains(where: { !$0.key.isGood }) { return .refused }
        if waiting != nil || isHeld { return .unanswered }
        return isBlocked ? .refused : nil
    }
}

/// What a replay would do, letter by letter, and in all.
struct ReplayPreview {
    let letters: [Letter]
    let signAs: String?
    var prospects: [LetterID: Prospect] = [:]

    func json(_ letter: Letter) -> JSONValue {
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        var (status, reason, words): (String?, String?, String?) = (nil, nil, nil)
        switch prospects[letter.id] {
        case .answered(let answer): (status, reason) = (answer.status, answer.reason)
        case .delivered: status = "delivered"
        case .unreadable(let cause): (status, reason) = ("unreadable", cause)
        case .unanswered: status = "unanswered"
        case .hindered(let cause, let told): (status, reason, words) = ("left open", cause, told)
        case nil: break
        }
        return [
            "letter": .string(letter.id.description), "id": text(letter.attributes?.id), "key": text(letter.key),
            "told": text(letter.told), "wouldBe": text(status), "reason": text(reason), "message": text(words),
        ]
    }

    func lines(isAsked: Bool) -> [String] {
        let lanes = ReplayPlan(letters, keepsGoing: false).laneCount
        var lines = [
            "\(Self.count(letters.count, "letter")) of \(Self.count(lanes, "key")), in the order in which they came, "
                + "keys side by side"
        ]
        lines += outcomes
        lines += told
        let what =
            isAsked
            ? "nothing was sent; services were asked, by dry runs on the commands topics."
            : "nothing was sent, and nobody was asked."
        let newest = LetterTable.time(letters.map(\.record.timestampMs).max() ?? -1)
        return lines + [
            "\(what)  Do it: the same line with --reason-text \"…\" and without --dry-run;",
            "with --until \(newest) what comes meanwhile is left out",
        ]
    }

    private var outcomes: [String] {
        var good: [String: Int] = [:]
        var refused: [String: Int] = [:]
        var hindered: [String: Int] = [:]
        var words: [String: String] = [:]
        for letter in letters {
            switch prospects[letter.id] {
            case .answered(let answer) where answer.isGood: good[answer.status, default: 0] += 1
            case .answered(let answer): refused[answer.reason ?? answer.status, default: 0] += 1
            case .delivered: good["delivered", default: 0] += 1
            case .unreadable(let reason): refused[reason, default: 0] += 1
            case .unanswered: hindered["NO_ANSWER", default: 0] += 1
            case .hindered(let reason, let told):
                hindered[reason, default: 0] += 1
                words[reason] = words[reason] ?? "\(letter.id): \(told)"
            case nil: good["sent", default: 0] += 1
            }
        }
        var lines: [String] = []
        let names = ["succeeded": "would succeed", "pending": "would go on", "sent": "would be sent"]
        for (status, count) in good.sorted(by: { $0.value > $1.value }) {
            lines.append("  \(names[status] ?? "would be \(status)") \(count)")
        }
        if !refused.isEmpty { lines.append("  would be refused \(Self.sum(refused))") }
        if !hindered.isEmpty { lines.append("  would stay open \(Self.sum(hindered))") }
        for (reason, told) in words.sorted(by: { $0.key < $1.key }) { lines.append("    \(reason)  \(told)") }
        return lines
    }

    /// What senders have heard: a replay gives them a second answer.
    private var told: [String] {
        var counts: [String: Int] = [:]
        for letter in letters { if let told = letter.told { counts[told, default: 0] += 1 } }
        return counts.sorted { $0.value > $1.value }.map { answer, count in
            let whose =
                count == letters.count
                ? "all \(count) senders were" : "\(Self.count(count, "sender")) \(count == 1 ? "was" : "were")"
            return "  \(whose) told \"\(answer)\"; those that gave up will not expect a second answer"
        }
    }

    private static func sum(_ counts: [String: Int]) -> String {
        let parts = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key) \($0.value)" }
        return "\(counts.values.reduce(0, +)) (\(parts.joined(separator: ", ")))"
    }

    private static func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}

/// How far it is, how fast and for how long still; on a terminal only.
struct ProgressLine {
    let total: Int
    var count = 0
    private let hint: String
    private let start = ContinuousClock.now
    private var shown: ContinuousClock.Instant?

    /// - Parameter hint: what Ctrl-C does.
    init(total: Int, hint: String) {
        self.total = total
        self.hint = hint
    }

    mutating func show() {
        guard Terminal.isErrorOutput, shown.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
        shown = .now
        Terminal.rewrite(text(after: .now - start))
    }

    func text(after time: Duration) -> String {
        let width = 20
        let full = total == 0 ? width : count * width / total
        let bar = String(repeating: "#", count: full) + String(repeating: "-", count: width - full)
        let rate = Double(count) / max(0.5, Double(time.inMilliseconds) / 1000)
        let left = rate > 0 ? "\(Self.words(Double(total - count) / rate)) left" : "-"
        return "  [\(bar)]  \(count)/\(total)  \(Int(rate.rounded()))/s  \(left)  \(hint)"
    }

    /// Seconds, for people.
    static func words(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 1_000_000))
        return seconds < 120 ? "\(seconds) s" : "\((seconds + 59) / 60) min"
    }

    mutating func clear() {
        if shown != nil { Terminal.rewrite("") }
        shown = nil
    }
}
