// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Observability
import Supervision
import WireJSON

struct DLQCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dlq",
        abstract: "Shows dead letters, sends them again, and marks those that nobody will send.",
        discussion: """
            A dead letter is a record that a service could not take, with the cause. It is open until somebody sends it \
            again or dismisses it; that is written to identity.<service>.dlq-actions.v1, so that everybody sees it.

              identitybus dlq list
              identitybus dlq show link/9@0
              identitybus dlq replay --reason KEY_EXPIRED --dry-run
              identitybus dlq replay --reason KEY_EXPIRED --reason-text INC-4711
              identitybus dlq edit link/5@0 --reason-text INC-4711
              identitybus dlq dismiss link/10@0 --reason-text "load test"
            """,
        subcommands: [
            DLQListCommand.self, DLQShowCommand.self, DLQReplayCommand.self, DLQEditCommand.self,
            DLQDismissCommand.self,
        ])
}

/// Which letters are meant.
struct LetterOptions: ParsableArguments {
    @Option(help: "Only of this service; may be given several times.", completion: .list(serviceNames))
    var service: [String] = []

    @Option(help: "Only with this reason, such as KEY_EXPIRED.")
    var reason: String?

    @Option(help: "Only of this app.")
    var app: String?

    @Option(help: "Only with this Kafka key, such as demo/ada; * stands for anything.")
    var key: String?

    @Option(help: "Only of this type of command, such as link.request.")
    var type: String?

    @Option(
        help: ArgumentHelp("Only from this time on: 10m (ago), 18:30, 2030-01-31T18:30:00Z.", valueName: "time"))
    var since: TimePoint?

    @Option(help: ArgumentHelp("Only up to this time.", valueName: "time"))
    var until: TimePoint?

    func choice(_ ids: [LetterID] = []) -> LetterChoice {
        LetterChoice(
            ids: Set(ids), services: Set(service), reason: reason, app: app, key: key, type: type, since: since?.time,
            until: until?.time)
    }
}

/// Who does something about letters, and why.
struct HandlingOptions: ParsableArguments {
    @Option(
        name: .customLong("reason-text"),
        help: ArgumentHelp(
            "Why, in your words: an incident's number, or a sentence. Everybody sees it. Required, but for a dry run.",
            valueName: "text"))
    var note: String?

    @Option(help: "Who you are. Default: the user who is logged in, on this machine.")
    var by: String?

    var author: String {
        by ?? "\(NSUserName())@\(ProcessInfo.processInfo.hostName)"
    }

    func checkedNote() throws -> String {
        guard let note, !note.isEmpty else { throw ValidationError("Missing: --reason-text, which says why") }
        return note
    }
}

struct DLQListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists dead letters by cause; one by one where some are chosen.",
        discussion: """
            OPEN counts those that nobody has sent again or dismissed. One line a letter with --each, and wherever \
            --reason, --app, --key, --type, --since or --until choose some. With --json one object a line.
            """)

    @OptionGroup var chosen: LetterOptions

    @Flag(help: "Only those that are open.")
    var open = false

    @Flag(help: "One line a letter.")
    var each = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let interruption = Interruption()
        let desk = try LetterDesk(deployment) { interruption.isRequested }
        var choice = chosen.choice()
        let all = try desk.letters(choice)
        let shown = open ? all.filter(\.state.isOpen) : all
        choice.services = []
        let isEach = each || !choice.isEmpty
        let table = LetterTable(now: .now)
        if json {
            let lines = isEach ? shown.map(\.json) : LetterGroup.groups(shown).map(\.json)
            for line in lines { say(json: line) }
            return
        }
        if !shown.isEmpty {
            for line in isEach ? table.letters(shown) : table.groups(LetterGroup.groups(shown)) { say(line) }
        }
        let more = isEach || shown.isEmpty ? "" : "  One by one: identitybus dlq list --each, or --reason REASON"
        say(LetterTable.total(shown) + more)
    }
}

struct DLQDismissCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dismiss",
        abstract: "Marks dead letters as done that nobody will send again.",
        discussion: "They stay where they are, and are not open any more. Prints one line a letter with --json.")

    @Argument(help: "Letters, such as link/10@0.")
    var letters: [LetterID] = []

    @OptionGroup var chosen: LetterOptions

    @Flag(help: "All that are open.")
    var all = false

    @OptionGroup var handling: HandlingOptions

    @Flag(help: "Print one JSON object a letter.")
    var json = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let note = try handling.checkedNote()
        let interruption = Interruption()
        let choice = try chosen.choice(letters).orAll(all)
        let desk = try LetterDesk(deployment) { interruption.isRequested }
        let found = try desk.letters(choice)
        try desk.checkAll(letters, found)
        let open = found.filter(\.state.isOpen)
        try desk.checkActions(open.map(\.letter))
        let records = try RecordPost(desk.kafka)
        var tokens: Set<Int> = []
        var written: [Letter] = []
        for handled in open where !interruption.isRequested {
            let act = LetterHandling(
                .dismissed, handled.letter.place, id: UUID().uuidString.lowercased(), run: desk.log.run,
                by: handling.author, note: note)
            tokens.insert(try records.send(try desk.log.record(act, of: handled.letter)))
            written.append(handled.letter)
        }
        records.flush()
        try records.check(&tokens)
        try desk.log.catchUp()
        try tell(desk.log.handled(written), desk, note: note)
        if interruption.isRequested { throw ExitCode(ExitStatus.interrupted.rawValue) }
    }

    private func tell(_ letters: [HandledLetter], _ desk: LetterDesk, note: String) throws {
        if json {
            for letter in letters { say(json: letter.json) }
        }
        let mine = letters.count { $0.state.closing?.run == desk.log.run }
        let inHand = letters.filter(\.state.isOpen)
        if !json {
            let record = mine == 0 ? "Nothing was recorded." : "Recorded as \(handling.author), \"\(note)\""
            say("dismissed \(mine) of \(letters.count).  \(record)".harmless)
        }
        guard let first = inHand.first else { return }
        let end =
            first.state.claim.map { " until \(LetterTable.time($0.time + HandledLetters.lease)), by Kafka's clock." }
            ?? "."
        throw Problem(
            .refused,
            "\(inHand.count) of them are in hand of others, \(first.letter.id) of \(first.state.claim?.by ?? "?")\(end)",
            "Look again then: identitybus dlq list --open")
    }
}

extension LetterChoice {
    /// - Throws: `ValidationError` when nothing is chosen: that is not everything.
    func orAll(_ all: Bool) throws -> LetterChoice {
        if isEmpty, !all {
            throw ValidationError("Say which: letters such as link/9@0, --reason and the like, or --all")
        }
        return self
    }
}

extension LetterDesk {
    /// - Throws: `Problem` when one that was named is not there.
    func checkAll(_ ids: [LetterID], _ found: [HandledLetter]) throws {
        let there = Set(found.map(\.letter.id))
        guard let missing = ids.first(where: { !there.contains($0) }) else { return }
        throw Problem(
            .refused, "there is no dead letter \(missing), or it is not what you chose.",
            "Nothing was done. All letters: identitybus dlq list --each")
    }
}
