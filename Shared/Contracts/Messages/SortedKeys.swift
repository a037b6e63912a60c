// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// A map that is written in the order of its keys, so that the same content has the same bytes in every process.
@propertyWrapper
public struct SortedKeys<Value: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
    public var wrappedValue: [String: Value]

    public init(wrappedValue: [String: Value]) { self.wrappedValue = wrappedValue }

    public init(from decoder: any Decoder) throws { wrappedValue = try [String: Value](from: decoder) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        for (name, value) in wrappedValue.sorted(by: { ExactText($0.key) < ExactText($1.key) }) {
            try container.encode(value, forKey: AnyKey(name))
        }
    }
}
