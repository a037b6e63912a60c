// SPDX-License-Identifier: Apache-2.0

import Crypto

/// An id within its app: two apps may use the same one for different things.
public struct Scoped<ID: Hashable & Comparable & Sendable>: Hashable, Comparable, Sendable {
    public var app: ExactText
    public var id: ID

    public init(app: String, id: ID) {
        self.app = ExactText(app)
        self.id = id
    }

    public static func < (left: Scoped, right: Scoped) -> Bool { (left.app, left.id) < (right.app, right.id) }
}

extension Scoped<ExactText> {
    public init(app: String, id: String) { self.init(app: app, id: ExactText(id)) }
}

/// What a text is found by in an index: its SHA-256. The text itself may be longer than an index entry can be.
public struct TextDigest: Codable, Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    public init(of text: String) {
        var text = text
        bytes = text.withUTF8 { Array(SHA256.hash(data: UnsafeRawBufferPointer($0))) }
    }

    public static func < (left: TextDigest, right: TextDigest) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}
