// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Runtime

/// Makes signed command records, as a producer in front of the platform would.
struct CommandFactory {
    private let topics: Topics
    private let app = Seal(Stage.keyID, SymmetricKey(data: Array(Stage.keySecret.utf8)))
    private let services = Seal(
        Signature.internalKeyID, KeyPurpose.commands.key(from: SymmetricKey(data: Array(Stage.internalSecret.utf8))))
    var source = "https://shop.example/backend"
    private let time = Timestamp(milliseconds: 1_770_000_000_000).rfc3339

    init(_ stage: Stage) { self.init(topics: stage.broker.topics) }

    init(topics: Topics) { self.topics = topics }

    /// The command that the reply to `command-<number>` answers.
    static func id(_ number: Int) -> String { "command-\(number)" }

    static func padded(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, 12 - text.count)) + text
    }

    /// Signed with the app's key, or with the deployment's when only services may send such a command.
    /// - Parameter asService: with the deployment's also when apps may: their keys alone open no install.
    func record<Command: CommandMessage>(_ command: Command, id: String, asService: Bool = false) throws -> Record {
        var attributes = EventAttributes(
            id: id, source: source, type: Command.type, appID: Stage.app.text, time: time)
        attributes.subject = command.partitionSubject
        attributes.traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let topic = topics.commands(CommandType.service(of: Command.type) ?? "")
        let seal = asService || Command.scope == .internal ? services : app
        return try seal.command(
            to: topic, of: Stage.app, about: command.partitionSubject, attributes, command)
    }

    /// The same record with its signature made for other bytes.
    func withBadSignature(_ record: Record) -> Record {
        var other = record
        other.value = []
        var bad = record
        bad.headers = app.signed(other).headers
        return bad
    }

    /// The same record cut off in the middle: no JSON.
    func truncated(_ record: Record) -> Record {
        var bad = record
        bad.value = record.value.map { Array($0.prefix($0.count / 2)) }
        return bad
    }
}
