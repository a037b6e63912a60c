// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime
import WireJSON

/// A command that the gateway sends on behalf of somebody whose credential it has checked.
struct OutgoingCommand: Sendable {
    var id: CommandID
    var type: CommandType
    /// The services that have their part in the answer, beside the one that decides the command.
    var others: Set<String> = []
    var data: JSONValue
    var caller: Caller
    var trace: TraceContext
    /// `nil`: the command stays valid, because the caller can ask for its answer again.
    var expires: Timestamp?
    /// Decided and told, and nothing is kept of it.
    var isDryRun = false

    /// What the reply has to name.
    var digest: String { CommandDigest.text(type: type.name, data: data) }
}

/// Writes commands as records, signed on behalf of the caller with the gateway's key. Pure.
struct CommandWriter: Sendable {
    let topics: Topics
    private let seal: Seal

    init(topics: Topics, keys: DeploymentKeys) {
        self.topics = topics
        seal = Seal(Signature.gatewayKeyID, keys.signing(.gateway))
    }

    var replyTopic: String { topics.gatewayReplies }

    /// - Parameters:
    ///   - ownKey: the key of the replies that only this replica reads.
    ///   - appTopics: the commands topics that apps have for themselves, as far as services have made them.
    /// - Throws: `CommandTooLarge` when the envelope is larger than services read, `UnknownCommand` when the type names
    ///   no service.
    func record(
        _ command: OutgoingCommand, ownKey: String, appTopics: Set<String> = [], now: Timestamp
    ) throws -> Record {
        guard let service = CommandType.service(of: command.type.name) else {
            throw UnknownCommand(type: command.type.name)
        }
        let topic = command.caller.app.commandsTopic(of: service, topics, among: appTopics)
        let subject = Self.subject(of: command) ?? command.id.text
        var attributes = EventAttributes(
            id: command.id.text, source: Topics.gatewaySource, type: command.type.name,
            appID: command.caller.app.id.text, time: now.rfc3339)
        attributes.replyTo = replyTopic
        // Any replica may be asked with the same Idempotency-Key, and all have to know what it was used for.
        attributes.replyKey = command.id.isDerived ? ReplyAddress.sharedKey : ownKey
        attributes.expiryTime = command.expires?.rfc3339
        attributes.traceParent = command.trace.parent
        attributes.traceState = command.trace.state
        attributes.authType = command.caller.authType
        attributes.authID = command.caller.authID
        if command.isDryRun { attributes.dryRun = "true" }
        let record = try seal.command(
            to: topic, of: command.caller.app.id, about: subject, attributes, command.data)
        guard (record.value?.count ?? 0) <= EnvelopeReader.maxBytes else { throw CommandTooLarge() }
        return record
    }

    /// `nil` when the data says none, or one that an envelope cannot carry as its key: the service must be able to read
    /// the command to refuse it.
    private static func subject(of command: OutgoingCommand) -> String? {
        command.type.partitionSubject(of: command.data).flatMap { subject in
            EnvelopeReader.canBeAttribute(subject, atMost: EnvelopeReader.maxSubjectBytes) ? subject : nil
        }
    }
}

struct CommandTooLarge: Error {}

struct UnknownCommand: Error {
    var type: String
}

/// The id of a command: random, or derived from what the caller said identifies the request.
extension CommandID {
    static func random() -> CommandID { CommandID(UUID().uuidString.lowercased()) }

    /// Whether the id was derived from an `Idempotency-Key`: random ones are of version 4.
    var isDerived: Bool {
        let bytes = text.utf8
        guard bytes.count == 36 else { return false }
        return bytes[bytes.index(bytes.startIndex, offsetBy: 14)] == UInt8(ascii: "8")
    }

    /// The same for the same app, API key or user, and `Idempotency-Key`, whichever replica is asked: the service then answers
    /// a repeated request from its inbox. A UUID of version 8 over HMAC-SHA256.
    ///
    /// Nobody who guesses the `Idempotency-Key` shall know the id. So the key of the HMAC is the caller's own: its API
    /// key's secret, or the user's id, which cannot be guessed either. Not a key of the deployment: none of those
    /// outlives the change of the internal key, in which a repetition must find its answer all the same.
    static func derived(caller: Caller, idempotencyKey: String) -> CommandID {
        var hmac = HMAC<SHA256>(key: secret(of: caller))
        let parts = ["identitybus-gateway-command", caller.app.id.text, caller.authType, caller.authID, idempotencyKey]
        for part in parts {
            hmac.update(data: Array("\(part.utf8.count):\(part)\n".utf8))
        }
        return CommandID(DerivedID.uuid(hmac.finalize().prefix(16), version: 8))
    }

    private static func secret(of caller: Caller) -> SymmetricKey {
        caller.app.keys[KeyID(caller.authID)].flatMap { caller.authType == "api_key" ? $0.secret : nil }
            ?? SymmetricKey(data: Array(caller.authID.utf8))
    }
}
