// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// One header of a message. Names may repeat inside a message; the order is kept.
public struct KafkaHeader: Sendable, Hashable {
    /// The header's name. Bytes that are not UTF-8 were replaced with U+FFFD when the message was read.
    public var name: String

    /// The header's bytes, `nil` for a null value (which is not the same as an empty one).
    public var value: [UInt8]?

    public init(name: String, value: [UInt8]?) {
        self.name = name
        self.value = value
    }
}
