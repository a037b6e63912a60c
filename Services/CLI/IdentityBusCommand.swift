// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Chaos
import Glibc
import Observability
import Runtime
import Supervision

@main
struct IdentityBusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identitybus",
        abstract: "Runs IdentityBus on this machine, sends commands to it and watches what it says.",
        discussion: """
            The result goes to standard output, everything else to standard error. Exit status:

            \(ExitStatus.table)

            --version --json is for programs. A shell completes what follows with the script that \
            --generate-completion-script prints for bash, zsh or fish.
            """,
        version: ProgramVersion.line("identitybus"),
        subcommands: [
            UpCommand.self, SendCommand.self, ImportCommand.self, WatchCommand.self, ExplainCommand.self,
            ExportCommand.self,
            DLQCommand.self, DoctorCommand.self, CheckConfigCommand.self, SettingsCommand.self, TopicsCommand.self,
            MigrateCommand.self, ProbeCommand.self, SignCommand.self, TokenCommand.self, VerifyTokenCommand.self,
            RekeyCommand.self, SaltsCommand.self, DeriveKeysCommand.self, ChaosCommand.self,
        ])

    /// Every message has the program's name in front, also those of the parser.
    static let _errorPrefix = "identitybus: "

    static func main() {
        // Behind `| head` a command ends as always, with a status that can be told, and not by a signal.
        signal(SIGPIPE, SIG_IGN)
        StandardOutput.holdStreams()
        Terminal.widenHelp()
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let problem = unknownCommand(arguments) {
            complain(problem.text)
            leave(problem.status)
        }
        tellVersion(arguments)
        do {
            var command = try parseAsRoot(negativeIDsLast(arguments))
            do {
                try command.run()
            } catch let wrong as ValidationError {
                misused(type(of: command), wrong.message)
            }
            leave(.done)
        } catch let status as ExitCode {
            leave(status.rawValue)
        } catch let error where !isOfParser(error) {
            let problem = Problem(error)
            complain(problem.text)
            leave(problem.status)
        } catch  where exitCode(for: error) == .success {
            // Help and version.
            say(fullMessage(for: error))
            leave(.done)
        } catch {
            exit(withError: error)
        }
    }

    /// Every second MPID begins with a minus, and is no option: behind `--` the parser takes it for what it is.
    static func negativeIDsLast(_ arguments: [String]) -> [String] {
        guard arguments.first == "explain", !arguments.contains("--") else { return arguments }
        let ids = arguments.filter(isNegativeID)
        return ids.isEmpty ? arguments : arguments.filter { !isNegativeID($0) } + ["--"] + ids
    }

    private static func isNegativeID(_ argument: String) -> Bool {
        argument.count > 5 && argument.first == "-" && argument.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
    }

    /// Of a word that names no command, with the one that was meant: the parser takes it for an argument too many.
    private static func unknownCommand(_ arguments: [String]) -> Problem? {
        let words = arguments.prefix { !$0.hasPrefix("-") }
        var group: any ParsableCommand.Type = Self.self
        var path = ["identitybus"]
        for word in words.first == "help" ? words.dropFirst() : words {
            let known = group.configuration.subcommands
            if known.isEmpty { return nil }
            guard let next = known.first(where: { $0._commandName == word }) else {
                let guess = nearest(to: word, in: known.map { $0._commandName }).map { " Did you mean \($0)?" } ?? ""
                let name = (path.dropFirst() + [word]).joined(separator: " ")
                let all = path.joined(separator: " ")
                return Problem(.usage, "there is no command \(name).\(guess)", "All: \(all) --help")
            }
            group = next
            path.append(word)
        }
        return nil
    }

    /// Ends the process when its version is asked for, also behind a command.
    private static func tellVersion(_ arguments: [String]) {
        let options = Array(arguments.drop { !$0.hasPrefix("-") })
        if let version = ProgramVersion.answer(to: options, of: "identitybus") {
            say(version)
            leave(.done)
        }
        guard options.first == "--version" else { return }
        complain(Problem(.usage, "--version takes nothing but --json.", "identitybus --version --json").text)
        leave(.usage)
    }

    private static func leave(_ status: ExitStatus) -> Never { leave(status.rawValue) }

    /// Ends the process without what libraries do at its end: a client of Kafka that could not be closed in time has threads
    /// of its own, and OpenSSL takes away what they are using.
    private static func leave(_ status: Int32) -> Never {
        fflush(nil)
        if let problem = StandardOutput.problem {
            complain(Problem(.unwritten, "\(problem).").text)
            _exit(ExitStatus.unwritten.rawValue)
        }
        _exit(status)
    }

    /// For what the parser cannot see: it says the same as it would.
    private static func misused(_ command: any ParsableCommand.Type, _ what: String) -> Never {
        let usage = usageString(for: command).replacing("\n", with: "\n       ")
        complain("\(_errorPrefix)\(what)\nUsage: \(usage)")
        let path = path(to: command, from: Self.self) ?? [command._commandName]
        complain("  See '\((["identitybus"] + path).joined(separator: " ")) --help' for more information.")
        leave(.usage)
    }

    /// What is typed for a command: `dlq` and `replay`.
    private static func path(
        to command: any ParsableCommand.Type, from group: any ParsableCommand.Type
    ) -> [String]? {
        for one in group.configuration.subcommands {
            if one == command { return [one._commandName] }
            if let rest = path(to: command, from: one) { return [one._commandName] + rest }
        }
        return nil
    }

    /// Whether the parser knows what to say and how to end: help, or a wrong command line.
    private static func isOfParser(_ error: any Error) -> Bool { exitCode(for: error) != .failure }
}
