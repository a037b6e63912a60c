// SPDX-License-Identifier: Apache-2.0

import Crypto

/// Keeps confidential replies encrypted while they stand in the journal (AES-GCM, under a key that comes from the
/// deployment's internal key).
struct OutboxVault {
    /// The first closes, all of them open.
    private let keys: [SymmetricKey]

    /// - Parameter keys: without any there are no confidential messages: services that write them need them.
    init(_ keys: DeploymentKeys) { self.keys = keys.checking(.store) }

    struct Sealed: Error, CustomStringConvertible {
        var description: String {
            "a confidential reply was stored under another internal key: name it in IDENTITYBUS_PREVIOUS_INTERNAL_KEYS"
        }
    }

    struct NoKey: Error, CustomStringConvertible {
        var description: String { "a confidential reply cannot be stored: IDENTITYBUS_INTERNAL_KEY is not set" }
    }

    /// The journal's form of the messages.
    func close(_ messages: [OutboundMessage]) throws -> [UInt8] {
        OutboxCodec.encode(
            try messages.map { message in
                guard message.role == .confidentialReply, let value = message.value else { return message }
                guard let key = keys.first, let box = try AES.GCM.seal(value, using: key).combined else {
                    throw NoKey()
                }
                var sealed = message
                sealed.value = Array(box)
                return sealed
            })
    }

    /// All messages.
    /// - Throws: `OutboxCodec.Corrupted`; ``Sealed`` when one cannot be opened.
    func open(_ bytes: [UInt8]) throws -> [OutboundMessage] {
        try OutboxCodec.decode(bytes).map { message in
            guard let opened = opened(message) else { throw Sealed() }
            return opened
        }
    }

    /// The last message, if it is a reply and can be opened.
    /// - Throws: `OutboxCodec.Corrupted`.
    func lastReply(_ bytes: [UInt8]) throws(OutboxCodec.Corrupted) -> OutboundMessage? {
        guard let last = try OutboxCodec.decode(bytes).last, last.isReply else { return nil }
        return opened(last)
    }

    private func opened(_ message: OutboundMessage) -> OutboundMessage? {
        guard message.role == .confidentialReply, let value = message.value else { return message }
        guard let box = try? AES.GCM.SealedBox(combined: value) else { return nil }
        for key in keys {
            guard let plain = try? AES.GCM.open(box, using: key) else { continue }
            var opened = message
            opened.value = Array(plain)
            return opened
        }
        return nil
    }
}
