// SPDX-License-Identifier: Apache-2.0

/// A closed set of words on the wire. Reading any other word fails with the list of those that would be right.
public protocol WireEnum: RawRepresentable<String>, Codable, Sendable, Hashable, CaseIterable {}

extension WireEnum {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Self(rawValue: try container.decode(String.self)) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "expected one of \(known)")
        }
        self = value
    }
}
