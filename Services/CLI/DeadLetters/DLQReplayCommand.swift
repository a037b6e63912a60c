// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Observability
import Supervision
import WireJSON

struct DLQReplayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Sends dead letters again, each once, in the order of their keys.",
        discussion: """
            Letters that are there when it begins are sent, later ones are not. Letters of one key go one after the other; \
            where one is not done, those behind it stay open. Everything keeps its id, so that no service does it twice; \
            without --sign-as it keeps its bytes and its signature too. Ctrl-C stops after the letters in hand, and the \
            same line goes on. A dry run writes questions to the commands topics, which services answer and which leave \
            nothing else. Exit status 0: all were done; 3: some were refused or are left; 4: some are not answered yet, or \
            in hand of somebody else.
            """)

    enum Wish: String, ExpressibleByArgument, CaseIterable { case succeeded }

    @Argument(help: "Letters, such as link/9@0.")
    var letters: [LetterID] = []

    @OptionGroup var chosen: LetterOptions

    @Flag(help: "All that are open.")
    var all = false

    @OptionGroup var handling: HandlingOptions

    @Flag(help: "Only ask what would happen now. Writes questions to the commands topics, and sends no letter.")
    var dryRun = false

    @Flag(help: "With --dry-run: ask nobody, and write nothing to Kafka; only show what would be sent.")
    var noQuestions = false

    @Option(help: "Sign them anew, with this key of their app; `internal` keeps what the first key may do.")
    var signAs: KeyID?

    @Option(help: "Ask before each, and leave it open unless it would be: succeeded.")
    var onlyIf: Wish?

    @Flag(help: "Send letters of a key also behind one that was not done.")
    var keepGoing = false

    @Flag(help: "Send also what is known to become a dead letter again.")
    var force = false

    @Option(parsing: .unconditional, help: "Letters a second. Default: 50.", transform: parsedRate)
    var rate = 50.0

    @Option(
        parsing: .unconditional, help: "Letters of different keys in hand at once. Default: 20.", transform: parsedCount
    )
    var batch = 20

    @Option(
        parsing: .unconditional,
        help: "Seconds to wait for each answer, and for a letter that somebody else has in hand. Default: 40.",
        transform: parsedSeconds)
    var wait = 40.0

    @Flag(help: "Print one JSON object a letter.")
    var json = false

    @OptionGroup var deployment: Deployment

    func validate() throws {
        if noQuestions, !dryRun { throw ValidationError("--no-questions goes with --dry-run") }
    }

    func run() throws {
        let note = dryRun ? "" : try handling.checkedNote()
        let interruption = Interruption()
        let choice = try chosen.choice(letters).orAll(all)
        let post = try LetterPost(deployment, signAs: signAs, isForced: force)
        let desk = try LetterDesk(deployment) { interruption.isRequested }
        let found = try desk.letters(choice)
        try desk.checkAll(letters, found)
        let open = found.filter(\.state.isOpen)
        if open.isEmpty { return nothing(found) }
        if dryRun { return try preview(open.map(\.letter), post, desk) }
        try desk.checkActions(open.map(\.letter))
        try replay(Self.withUnanswered(found), post, desk, note)
        if interruption.isRequested { throw ExitCode(ExitStatus.interrupted.rawValue) }
    }

    private func nothing(_ found: [HandledLetter]) {
        if !json { say("nothing to do: \(LetterTable.total(found))") }
    }

    /// The open ones, with those that were sent and that nobody has an answer to yet: what is behind one of them waits.
    /// - Parameter all: as they came.
    static func withUnanswered(_ all: [HandledLetter]) -> [HandledLetter] {
        var lanes: Set<String> = []
        var found: [HandledLetter] = []
        for handled in all.reversed() {
            if handled.state.isOpen {
                if let lane = handled.letter.lane { lanes.insert(lane) }
                found.append(handled)
            } else if handled.state.closing?.act == .sent, handled.state.answer == nil,
                let lane = handled.letter.lane, lanes.contains(lane)
            {
                found.append(handled)
            }
        }
        return found.reversed()
    }

    // MARK: Doing it

    private func replay(_ letters: [HandledLetter], _ post: LetterPost, _ desk: LetterDesk, _ note: String) throws {
        let options = ReplayRun.Options(
            rate: rate, batch: batch, keepsGoing: keepGoing, onlyIfSucceeded: onlyIf == .succeeded,
            patience: .seconds(wait), by: handling.author, note: note)
        var report = ReplayReport(by: handling.author, note: note, isJSON: json)
        var bar = ProgressLine(
            total: letters.count, hint: "^C stops after the letters in hand; the same line goes on")
        let run = try ReplayRun(desk, letters, post, options) { result in
            report.take(result)
            bar.count += 1
        } notice: { words in
            bar.clear()
            complain(words.harmless)
        }
        let left = try run.run { bar.show() }
        bar.clear()
        left.forEach { report.take($0) }
        report.tell()
        if desk.stop() {
            complain("stopped after the letters in hand; the same line goes on")
            return
        }
        if let status = report.status { throw ExitCode(status.rawValue) }
    }

    // MARK: Only asking

    private func preview(_ letters: [Letter], _ post: LetterPost, _ desk: LetterDesk) throws {
        var preview = ReplayPreview(letters: letters, signAs: signAs?.text)
        if noQuestions {
            for letter in letters {
                do throws(Hindrance) {
                    _ = try post.outgoing(letter)
                } catch {
                    preview.prospects[letter.id] = .hindered(reason: error.reason, words: error.words)
                }
            }
        } else {
            let inquiry = try LetterInquiry(desk, letters, post)
            var bar = ProgressLine(total: letters.count, hint: "^C stops; only questions were asked")
            let seconds = Double(letters.count) / rate
            if seconds > 5, !Terminal.isErrorOutput {
                let time = ProgressLine.words(seconds)
                complain("asking about \(letters.count) letters, \(Int(rate)) a second: \(time) or more")
            }
            try inquiry.ask(letters, rate: rate, patience: .seconds(wait)) { letter, prospect, _ in
                preview.prospects[letter.id] = prospect
                bar.count += 1
                bar.show()
            }
            bar.clear()
        }
        if json {
            for letter in letters { say(json: preview.json(letter)) }
        } else {
            for line in preview.lines(isAsked: !noQuestions) { say(line.harmless) }
        }
    }
}

/// How many a second: more than none.
func parsedRate(_ text: String) throws -> Double {
    guard let rate = Double(text), rate > 0, rate <= 10_000 else {
        throw ValidationError("give a number above 0, at most 10000")
    }
    return rate
}
