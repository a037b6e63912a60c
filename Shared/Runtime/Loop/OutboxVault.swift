// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Crypto

/// Keeps confidential replies encrypted while they stand in the journal (AES-GCM, under a key that comes from the
/// deployment's internal key).
struct OutboxVault {
    private let key: SymmetricKey?

    /// - Parameter internalKey: without one there are no confidential messages: services that write them need it.
    init(internalKey: SymmetricKey?) {
        key = internalKey.map {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: $0, info: Array("identitybus journal v1".utf8), outputByteCount: 32)
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
                guard let key, let box = try AES.GCM.seal(value, using: key).combined else { throw NoKey() }
                var sealed = message
                sealed.value = Array(box)
                return sealed
            })
    }

    /// The messages without those that cannot be opened, because the internal key is another one now.
    /// - Throws: `OutboxCodec.Corrupted`.
    func open(_ bytes: [UInt8]) throws(OutboxCodec.Corrupted) -> [OutboundMessage] {
        try OutboxCodec.decode(bytes).compactMap { message in
            guard message.role == .confidentialReply, let value = message.value else { return message }
            guard let key, let box = try? AES.GCM.SealedBox(combined: value),
                let plain = try? AES.GCM.open(box, using: key)
            else { return nil }
            var opened = message
            opened.value = Array(plain)
            return opened
        }
    }
}
