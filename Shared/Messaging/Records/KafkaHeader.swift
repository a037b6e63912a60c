// SPDX-License-Identifier: Apache-2.0

/// One header of a message. Names may repeat inside a message; the order is kept.
public struct KafkaHeader: Sendable, Hashable {
    /// The header's name, for people and for comparing: bytes that are not UTF-8 are replaced with U+FFFD.
    public let name: String

    /// The name's bytes when they are not UTF-8, otherwise `nil`. A header that is passed on keeps them.
    public let rawName: [UInt8]?

    /// The header's bytes, `nil` for a null value (which is not the same as an empty one).
    public var value: [UInt8]?

    public init(name: String, value: [UInt8]?) {
        self.name = name
        self.rawName = nil
        self.value = value
    }

    /// A header as it was read: Kafka does not demand that names be UTF-8.
    public init(nameBytes: [UInt8], value: [UInt8]?) {
        name = String(decoding: nameBytes, as: UTF8.self)
        rawName = Array(name.utf8) == nameBytes ? nil : nameBytes
        self.value = value
    }
}
