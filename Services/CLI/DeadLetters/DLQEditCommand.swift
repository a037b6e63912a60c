// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Glibc
import Observability
import Supervision
import WireJSON

struct DLQEditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Opens a dead letter's type and data in $EDITOR, checks them, and sends the command that they make.",
        discussion: """
            What is no envelope is opened as it is. The command keeps its id, and is signed anew: with the key that signed \
            it, or with --sign-as. Shows the difference and asks before it sends.
            """)

    @Argument(help: "The letter, such as link/5@0.")
    var letter: LetterID

    @OptionGroup var handling: HandlingOptions

    @Option(help: "The key of its app to sign with. Default: the one that signed it.")
    var signAs: KeyID?

    @Flag(help: "Do not ask.")
    var yes = false

    @Option(parsing: .unconditional, help: "Seconds to wait for the answer. Default: 40.", transform: parsedSeconds)
    var wait = 40.0

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let note = try handling.checkedNote()
        let (found, post) = try open()
        guard let edit = LetterEdit(found) else {
            throw Problem(
                .refused, "\(letter) is no text, so it cannot be edited.",
                "Dismiss it: identitybus dlq dismiss \(letter)")
        }
        let text = try edited(edit)
        let outgoing = try made(edit, text, post)
        try confirm(edit, text, outgoing)
        let interruption = Interruption()
        let desk = try LetterDesk(deployment) { interruption.isRequested }
        let handled = try desk.letter(letter)
        try desk.checkActions([handled.letter])
        var report = ReplayReport(by: handling.author, note: note, isJSON: json)
        let options = ReplayRun.Options(patience: .seconds(wait), by: handling.author, note: note)
        let run = try ReplayRun(desk, [handled], post, options, edited: [letter: outgoing]) {
            report.take($0)
        } notice: {
            complain($0.harmless)
        }
        try run.run {}.forEach { report.take($0) }
        report.tell()
        if interruption.isRequested { throw ExitCode(ExitStatus.interrupted.rawValue) }
        if let status = report.status { throw ExitCode(status.rawValue) }
    }

    /// The letter, and what signs it: known to be good before somebody takes the trouble.
    private func open() throws -> (Letter, LetterPost) {
        let post = try LetterPost(deployment, signAs: signAs)
        let desk = try LetterDesk(deployment) { false }
        let handled = try desk.letter(letter)
        let found = handled.letter
        guard handled.state.isOpen else {
            throw Problem(
                .refused, "\(letter) is not open: it was \(handled.status) \(handled.detail).",
                "What became of it: identitybus dlq show \(letter)")
        }
        guard found.isCommand, !found.isCut, !found.isWithheld else {
            throw Problem(
                .refused, "\(letter) is no whole command, so it cannot be edited.",
                "Dismiss it: identitybus dlq dismiss \(letter)")
        }
        try desk.checkActions([found])
        if let event = found.event() { _ = try signed(found, event, nil, post) }
        return (found, post)
    }

    private func signed(
        _ letter: Letter, _ event: CloudEvent<JSONValue>, _ key: [UInt8]?, _ post: LetterPost
    ) throws -> Outgoing {
        let own = letter.signer.map { KeyID($0) }
        guard let keyID = signAs ?? own else {
            throw Problem(
                .usage, "nobody has signed \(self.letter).", "Say which key of its app signs it: --sign-as KEY")
        }
        do throws(Hindrance) {
            return try post.signed(letter, event, as: keyID, key: key)
        } catch {
            throw Problem(.refused, "\(error.text).", "Nothing was sent. Sign it with another key: --sign-as KEY")
        }
    }

    // MARK: The editor

    private func edited(_ edit: LetterEdit) throws -> String {
        var text = edit.text
        while true {
            text = try EditorFile.edit(text, name: letter.description.replacing("/", with: "-"))
            if text == edit.text {
                throw Problem(
                    .refused, "nothing was changed, and nothing was sent.",
                    "Send it as it is: identitybus dlq replay \(letter)")
            }
            do throws(Hindrance) {
                _ = try edit.command(text)
                return text
            } catch {
                let again = isatty(STDIN_FILENO) == 1 && !yes
                let problem = Problem(.refused, "no service would take this: \(error.text)", "Nothing was sent.")
                guard again else { throw problem }
                complain(problem.what.harmless)
                guard ask("Edit it again? [Y/n] ", unsaid: true) else { throw problem }
            }
        }
    }

    private func made(_ edit: LetterEdit, _ text: String, _ post: LetterPost) throws -> Outgoing {
        let command: LetterEdit.Command
        do throws(Hindrance) {
            command = try edit.command(text)
        } catch {
            throw Problem(.refused, error.text, "Nothing was sent.")
        }
        var outgoing = try signed(edit.letter, command.event, command.key, post)
        outgoing.isEdited = true
        return outgoing
    }

    private func confirm(_ edit: LetterEdit, _ text: String, _ outgoing: Outgoing) throws {
        for line in LetterEdit.difference(edit.text, text) { complain(line.harmless) }
        let key = outgoing.record.key.map { String(decoding: $0, as: UTF8.self) } ?? "-"
        if outgoing.record.key != edit.letter.record.key {
            complain("Kafka key \(edit.letter.key ?? "-") -> \(key)".harmless)
        }
        if yes { return }
        guard isatty(STDIN_FILENO) == 1 else {
            throw Problem(.usage, "nobody can be asked here: standard input is no terminal.", "Give --yes to send it.")
        }
        let signer = outgoing.keyID?.text ?? "-"
        guard ask("Send it to \(outgoing.record.topic), signed by \(signer)? [y/N] ", unsaid: false) else {
            throw Problem(.refused, "nothing was sent.")
        }
    }

    private func ask(_ question: String, unsaid: Bool) -> Bool {
        Terminal.ask(question)
        let answer = (readLine() ?? "n").trimmingCharacters(in: .whitespaces).lowercased()
        return answer.isEmpty ? unsaid : answer == "y" || answer == "yes"
    }
}

/// A text in a file that only its user may read, and the editor that the user likes.
enum EditorFile {
    /// - Returns: the text as it was saved.
    static func edit(_ text: String, name: String) throws -> String {
        let environment = ProcessInfo.processInfo.environment
        let editor = environment["VISUAL"] ?? environment["EDITOR"] ?? "vi"
        let path = FileManager.default.temporaryDirectory.path + "/identitybus-\(name)-\(UUID().uuidString).json"
        let isWritten = FileManager.default.createFile(
            atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        guard isWritten else { throw Problem(.noRight, "\(path) cannot be written.", "TMPDIR names another folder.") }
        defer { try? FileManager.default.removeItem(atPath: path) }
        let status = run(["/bin/sh", "-c", "exec \(editor) \"$1\"", "sh", path], environment)
        guard status == 0 else {
            throw Problem(
                .refused, "the editor \(editor) ended with status \(status).",
                "Nothing was sent. EDITOR names another one.")
        }
        return try saved(path, editor)
    }

    /// What the editor has left.
    private static func saved(_ path: String, _ editor: String) throws -> String {
        func refusal(_ what: String) -> Problem {
            Problem(.refused, "the editor \(editor) \(what).", "Nothing was sent. Save the whole text in its file.")
        }
        guard let bytes = FileManager.default.contents(atPath: path) else { throw refusal("has left no file") }
        guard !bytes.allSatisfy({ $0 < 33 }) else { throw refusal("has left an empty file") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw refusal("has left a file that is no text (UTF-8)")
        }
        return text
    }

    /// Runs it in the foreground of the terminal, which Foundation's `Process` does not.
    /// - Returns: its exit status, or the number of the signal that ended it.
    private static func run(_ arguments: [String], _ environment: [String: String]) -> Int32 {
        var words = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (words + variables).forEach { free($0) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Standard output has the result and nothing else.
        if isatty(STDOUT_FILENO) == 0 { posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) }
        var process: pid_t = 0
        let error = posix_spawn(&process, arguments[0], &actions, nil, &words, &variables)
        guard error == 0 else { return error }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
    }
}
