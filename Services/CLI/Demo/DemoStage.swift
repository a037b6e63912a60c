// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Runtime
import Supervision
import WireJSON

/// Sends commands as the demo apps' backends, SDKs and support people do, and waits for what the services say.
final class DemoStage {
    /// One command.
    struct Line {
        var type: String
        var data: JSONValue
        /// When its producer says that it was made; now, if it does not say.
        var time: Timestamp?

        init(_ type: String, _ data: JSONValue, time: Timestamp? = nil) {
            self.type = type
            self.data = data
            self.time = time
        }
    }

    private struct Voice: Hashable {
        let app: AppID
        let key: KeyID
    }

    private let deployment: Deployment
    private let stop: () -> Bool
    private var voices: [Voice: Inquiry] = [:]

    /// A busy machine may take its time.
    private static let patience = Duration.seconds(60)
    /// So many commands at once: the embedded broker keeps them in memory.
    private static let most = 250

    init(_ deployment: Deployment, unless stop: @escaping () -> Bool) {
        self.deployment = deployment
        self.stop = stop
    }

    func close() { voices.values.forEach { $0.close() } }

    /// - Parameter key: who says it, of the app that the key's id begins with.
    /// - Returns: what was answered, in the order of the lines.
    /// - Throws: `Problem`, also when an answer is missing.
    @discardableResult
    func say(_ key: KeyID, _ lines: [Line]) throws -> [ReceivedReply] {
        let voice = Voice(app: AppID(String(key.text.prefix { $0 != "-" })), key: key)
        let inquiry =
            try voices[voice]
            ?? Inquiry(deployment, app: voice.app, keyID: key, patience: Self.patience, unless: stop)
        voices[voice] = inquiry
        var replies: [ReceivedReply] = []
        for start in stride(from: 0, to: lines.count, by: Self.most) {
            let questions = try lines[start..<min(start + Self.most, lines.count)].map(Self.question)
            let answers = try inquiry.ask(questions)
            for question in questions {
                guard let reply = answers[question] else {
                    throw Problem(
                        .unanswered, "the demo has no answer to \(question.type).",
                        "Do the services run? identitybus doctor")
                }
                replies.append(reply)
            }
        }
        return replies
    }

    /// - Throws: `Problem` when it is refused: then the demo is not what its page tells.
    @discardableResult
    func done(_ key: KeyID, _ lines: [Line]) throws -> [ReceivedReply] {
        let replies = try say(key, lines)
        for reply in replies where reply.status != .succeeded {
            throw Problem(
                .refused,
                "the demo's \(reply.commandType) was answered with \(reply.status.rawValue) "
                    + "\(reply.reason ?? ""): \(reply.message ?? "")")
        }
        return replies
    }

    /// - Throws: `Problem` when it is not refused like this.
    func refused(_ key: KeyID, _ line: Line, _ reason: String) throws {
        guard let reply = try say(key, [line]).first, reply.reason != reason else { return }
        throw Problem(
            .refused,
            "the demo's \(line.type) was answered with \(reply.status.rawValue) \(reply.reason ?? ""), "
                + "and should be refused with \(reason).")
    }

    private static func question(_ line: Line) throws -> Inquiry.Question {
        let full = CommandType.fullName(line.type)
        guard let type = services.flatMap({ $0.commandTypes }).first(where: { $0.name == full }),
            let subject = type.partitionSubject(of: line.data)
        else { throw Problem(.defect, "the demo's \(line.type) is no command.") }
        return Inquiry.Question(type: full, subject: subject, data: line.data, time: line.time)
    }
}
