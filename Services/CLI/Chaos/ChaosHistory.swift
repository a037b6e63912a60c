// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What was sent, what came back and what was done to the services, as the judge gets it: plain values. Times are seconds
/// since the start.
struct ChaosHistory {
    /// An id may be used twice with other content, and then there are two commands.
    struct CommandKey: Hashable, Comparable {
        var id: String
        var digest: String

        static func < (left: CommandKey, right: CommandKey) -> Bool {
            (left.id, left.digest) < (right.id, right.digest)
        }
    }

    struct Command {
        var key: CommandKey
        /// Without `identity.` and `.v1`.
        var type: String
        var service: String
        var data: JSONValue
        /// How it may end: `succeeded`, or the reason of a refusal.
        var allowed: Set<String> = ["succeeded"]
        /// Once for each copy.
        var sentAt: [Double]
    }

    struct Answer {
        var command: CommandKey
        /// Of the envelope.
        var id: String
        /// `succeeded`, `pending`, `expired`, or the reason of a refusal.
        var outcome: String
        var isFinal: Bool
        var result: JSONValue?
        /// Of all its bytes.
        var fingerprint: String
        var at: Double
    }

    struct Event {
        var service: String
        var id: String
        /// Without `identity.` and `.v1`.
        var type: String
        var subject: String
        var causation: String
        var sequence: String
        var data: JSONValue
        /// Of all its bytes.
        var fingerprint: String
    }

    /// A record that should not be there: a dead letter, or what no service has signed.
    struct Stray {
        var place: String
        var what: String
    }

    struct Injury: Codable {
        enum Kind: String, Codable, CaseIterable { case kill, pause, stop, killAll, disconnect }

        var kind: Kind
        /// Empty: all of them.
        var service: String
        var what: String
        var begin: Double
        /// When nothing was wrong with the processes any more.
        var end: Double?
        /// How long it may take until another replica answers, where that is promised.
        var limit: Double?
    }

    /// What the services said in the end about what was done.
    struct Question {
        enum Subject { case install, user, device }
        var subject: Subject
        var id: String
        var command: CommandKey
    }

    var commands: [CommandKey: Command] = [:]
    var answers: [CommandKey: [Answer]] = [:]
    var events: [Event] = []
    var deadLetters: [Stray] = []
    var unsigned: [Stray] = []
    var injuries: [Injury] = []
    /// Services that ended although nobody had harmed them.
    var unexpectedEnds: [String] = []
    var questions: [Question] = []

    func finalAnswer(_ key: CommandKey) -> Answer? { answers[key]?.first(where: \.isFinal) }

    /// What happened to a command, for people.
    func story(of key: CommandKey) -> [String] {
        guard let command = commands[key] else { return ["command \(key.id): never sent"] }
        let sent = command.sentAt.map { "\(Self.time($0)) sent \(command.type) \(key.id)" }
        let answers = (answers[key] ?? []).map { "\(Self.time($0.at)) answered \($0.outcome), reply \($0.id)" }
        let events = events.filter { $0.causation == key.id }.map {
            "event \($0.type) of \($0.subject), \($0.sequence)"
        }
        return sent + answers + events
    }

    /// `9.1 s`
    static func time(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
