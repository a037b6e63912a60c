// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

@testable import Runtime

/// Input: a first byte `r`, and the column as it stands in the store; or any other, and what is packed in it.
enum ReceiptTarget {
    /// Confined to a thread, as targets run one after the other.
    private nonisolated(unsafe) static let vault = OutboxVault(FuzzWorld.keys)

    static func run(_ bytes: [UInt8]) throws {
        let content = Array(bytes.dropFirst())
        let isRaw = bytes.first == UInt8(ascii: "r")
        let column = isRaw ? content : vault.packing.packed(content, after: [ReceiptCodec.plain])
        let key = CommandKey(app: "demo", source: "shop", id: "0123456789abcdef")
        let digest = [UInt8](repeating: 15, count: 32)
        _ = try? Receipt(column: column, decidedAt: 0, packing: vault.packing)
        do {
            _ = try vault.reply(in: column) { parts($0, key, digest) }
        } catch {
            return
        }
        let (receipt, isOpen) = try ReceiptCodec.decode(
            column, { parts($0, key, digest) }, packing: vault.packing, open: { _ in nil })
        guard isOpen else { return }
        let again = try vault.close(receipt, parts(receipt, key, digest))
        let (same, _) = try ReceiptCodec.decode(
            again, { parts($0, key, digest) }, packing: vault.packing, open: { $0 })
        var expected = receipt
        // It is encrypted then; that it opens again is the vault's matter.
        if receipt.reply?.role == .confidentialReply { expected.reply?.record.value = same.reply?.value }
        try hold(same == expected, "a receipt comes out as another one")
    }

    private static func parts(_ receipt: Receipt, _ key: CommandKey, _ digest: [UInt8]) -> ReplyParts {
        ReplyParts(
            key: key, index: receipt.replyIndex, subject: receipt.subject, digest: CommandDigest.text(digest),
            decidedAt: FuzzWorld.now.milliseconds, id: key.id.text)
    }

    /// The reply comes out of the inbox as it went in, but for the signature.
    static func keep(
        _ messages: [OutboxRecord], of attributes: EventAttributes, _ key: CommandKey, _ digest: [UInt8],
        replyIndex: Int?
    ) throws {
        let receipt = Receipt(
            of: attributes, app: key.app.text, reason: nil, messages: messages, replyIndex: replyIndex)
        let column = try vault.close(receipt, parts(receipt, key, digest))
        let reply = try vault.reply(in: column) { parts($0, key, digest) }
        try hold(reply == receipt.reply, "the inbox changes a reply")
        let told = try Receipt(column: column, decidedAt: FuzzWorld.now.milliseconds, packing: vault.packing)
        try hold(told.told == receipt.told && told.subject == receipt.subject, "the inbox changes what was told")
    }
}

/// Input: the column.
enum OutboxTarget {
    static func run(_ bytes: [UInt8]) throws {
        let messages: [OutboxRecord]
        do throws(OutboxCodec.Corrupted) {
            messages = try OutboxCodec.decode(bytes)
        } catch {
            return
        }
        let written = OutboxCodec.encode(messages)
        try hold(try OutboxCodec.decode(written) == messages, "messages come out as others")
        try hold(written == bytes, "one row has two forms")
    }
}
