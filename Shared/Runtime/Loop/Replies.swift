// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import WireJSON

/// The answers that a batch needs: those given before to commands that come again, and the sagas that it begins or
/// settles. A value inside one transaction.
struct Replies {
    private let vault: OutboxVault
    private let known: [CommandKey: KnownCommand]
    /// What this batch answered.
    private var answers: [CommandKey: OutboxRecord] = [:]
    private var sagas: [CommandKey: Saga]
    private var changed: Set<CommandKey> = []
    /// The commands that this batch sends on to other services.
    private(set) var forwards: [(app: AppID, id: CommandID, message: OutboxRecord)] = []
    /// The forwards that this batch reads the answer to.
    private(set) var answered: Set<Scoped<CommandID>> = []

    /// Loads the sagas in question. One round trip, none when there are no sagas.
    init(
        known: [CommandKey: KnownCommand], settled: [CommandKey], vault: OutboxVault, in transaction: any SQLTransaction
    ) throws {
        self.vault = vault
        self.known = known
        let pending = known.filter { $0.value.verdict == .pending }.keys
        let wanted = Set(settled).union(pending)
        sagas = wanted.isEmpty ? [:] : try Sagas.find(Array(wanted), in: transaction)
    }

    /// - Parameter answer: nil when nobody waits for one.
    mutating func remember(_ answer: OutboxRecord?, to command: CommandKey) {
        answers[command] = answer
    }

    mutating func begin(_ saga: Saga) {
        sagas[saga.key] = saga
        changed.insert(saga.key)
    }

    mutating func forward(_ id: CommandID, of app: AppID, _ message: OutboxRecord) {
        // In a store that was put back an answer may stand before what it answers. Nobody took it, so it is asked for.
        answered.remove(Scoped(app: app, id: id))
        forwards.append((app, id, message))
    }

    mutating func read(answerTo forward: CommandID, of app: AppID) { answered.insert(Scoped(app: app, id: forward)) }

    /// `nil` when there is none, or it has its final answer already.
    func unsettledSaga(_ command: CommandKey) -> Saga? {
        sagas[command].flatMap { $0.isSettled ? nil : $0 }
    }

    mutating func settle(_ saga: Saga, with reply: OutboxRecord, isFinal: Bool) throws {
        sagas[saga.key]?.reply = try vault.close([reply])
        sagas[saga.key]?.isSettled = isFinal
        changed.insert(saga.key)
    }

    /// The latest answer.
    /// - Parameter digest: of the command that comes again, whole; the inbox keeps its beginning.
    /// - Returns: `nil` when there was none, or it cannot be read any more (``owesAnswer(to:)``).
    func answer(to command: CommandKey, digest: [UInt8]) throws -> OutboxRecord? {
        if let reply = sagas[command]?.reply { return try vault.lastReply(reply) }
        if let answer = answers[command] { return answer }
        guard owesAnswer(to: command), let known = known[command] else { return nil }
        return try reply(to: command, known, digest)
    }

    private func reply(
        to command: CommandKey, _ known: KnownCommand, _ digest: [UInt8]
    ) throws(OutboxCodec.Corrupted) -> OutboxRecord? {
        try vault.reply(in: known.receipt) { receipt in
            ReplyParts(
                key: command, index: receipt.replyIndex, subject: receipt.subject, digest: CommandDigest.text(digest),
                decidedAt: known.decidedAt, id: command.id.text)
        }
    }

    /// Whether the command began a saga that has said nothing yet.
    func isSilent(_ command: CommandKey) -> Bool {
        guard let saga = sagas[command], saga.reply == nil else { return false }
        guard let known = known[command] else { return answers[command] == nil }
        let receipt = try? Receipt(column: known.receipt, decidedAt: known.decidedAt, packing: vault.packing)
        return receipt?.reply == nil
    }

    /// Whether the command was one that is answered.
    func owesAnswer(to command: CommandKey) -> Bool {
        known[command].map { $0.verdict != .noted } ?? false
    }

    func save(in transaction: any SQLTransaction) throws {
        guard !changed.isEmpty else { return }
        try Sagas.save(changed.sorted().compactMap { sagas[$0] }, in: transaction)
    }
}

/// What is kept of a command whose final reply comes later: its attributes and the digest of what it said, in one
/// object.
struct SagaOrigin: Codable {
    var attributes: EventAttributes
    var digest: String

    private enum DigestKey: String, CodingKey { case digest = "commanddigest" }

    init(attributes: EventAttributes, digest: String) {
        self.attributes = attributes
        self.digest = digest
    }

    init(from decoder: any Decoder) throws {
        attributes = try EventAttributes(from: decoder)
        digest = try decoder.container(keyedBy: DigestKey.self).decode(String.self, forKey: .digest)
    }

    func encode(to encoder: any Encoder) throws {
        try attributes.encode(to: encoder)
        var container = encoder.container(keyedBy: DigestKey.self)
        try container.encode(digest, forKey: .digest)
    }
}

/// The result in a reply: a value that is written in its place, or one that was written before.
enum ReplyResult: WireWritable {
    case value(any CommandResult)
    case text(RawJSON)

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .value(let value): try value.encode(to: encoder)
        case .text(let text): try text.encode(to: encoder)
        }
    }

    func write(to json: inout JSONOutput) throws {
        switch self {
        case .value(let value): try value.write(to: &json)
        case .text(let text): try text.write(to: &json)
        }
    }
}
