// SPDX-License-Identifier: Apache-2.0

/// A Kafka header as contracts see it: this module knows nothing of Kafka clients.
public struct WireHeader: Sendable, Hashable {
    public var name: String
    public var value: [UInt8]?
    /// The name's bytes when they are not UTF-8: a dead letter holds what stood in the record, byte for byte.
    public var rawName: [UInt8]?

    public init(_ name: String, _ value: [UInt8]?) {
        self.name = name
        self.value = value
    }

    public init(nameBytes: [UInt8], _ value: [UInt8]?) {
        self.init(String(decoding: nameBytes, as: UTF8.self), value)
        rawName = Array(name.utf8) == nameBytes ? nil : nameBytes
    }

    public init(_ name: String, _ value: String) {
        self.init(name, Array(value.utf8))
    }
}

/// The header names of the wire form.
public enum HeaderName {
    public static let contentType = "content-type"
    public static let signature = "signature"
    /// CloudEvents attributes in binary mode.
    public static let attributePrefix = "ce_"
    public static let structuredContentType = "application/cloudevents+json"
}
