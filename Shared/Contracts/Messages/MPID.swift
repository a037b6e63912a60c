// SPDX-License-Identifier: Apache-2.0

/// A profile's id: a signed 64-bit number, never 0. Written as a string, because JSON numbers lose digits beyond 53 bits
/// in many languages; read from a string or a whole number, exactly (S1, F26).
public struct MPID: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let value: Int64

    /// - Returns: `nil` for 0, the clients' mark for "no user yet".
    public init?(_ value: Int64) {
        guard value != 0 else { return nil }
        self.value = value
    }

    /// Reads decimal digits with an optional minus sign; `nil` for anything else, 0 included.
    public init?(_ text: String) {
        guard !text.hasPrefix("+"), let value = Int64(text) else { return nil }
        self.init(value)
    }

    /// The highest there is.
    public static let max = MPID(known: .max)

    private init(known value: Int64) { self.value = value }

    public var description: String { String(value) }

    public static func < (left: MPID, right: MPID) -> Bool { left.value < right.value }
}

extension MPID: Codable {
    public init(from decoder: any Decoder) throws {
        let value = try Self.number(decoder)
        guard let mpid = MPID(value) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "an MPID is never 0"))
        }
        self = mpid
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// What stands in the place of an MPID, 0 included.
    static func number(_ decoder: any Decoder) throws -> Int64 {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            guard !text.hasPrefix("+"), let value = Int64(text) else { throw notANumber(decoder) }
            return value
        }
        guard let value = try? container.decode(Int64.self) else { throw notANumber(decoder) }
        return value
    }

    private static func notANumber(_ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: decoder.codingPath,
                debugDescription: "expected an MPID: a whole number of 64 bits with sign, as a string or a number"))
    }
}

/// The MPID that a client had before: `null` and 0 both mean that it had none (F24).
struct OptionalMPID: Decodable {
    var mpid: MPID?

    init(from decoder: any Decoder) throws {
        mpid = MPID(try MPID.number(decoder))
    }
}
