// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The W3C trace context of a request: the caller's, or a new one.
struct TraceContext: Sendable, Equatable {
    /// 32 lower-case hex characters.
    var id: String
    /// The `traceparent` that commands carry.
    var parent: String
    var state: String?

    /// - Parameters: the request's `traceparent` and `tracestate`; what is not well formed is not taken over.
    init(parent: String?, state: String?) {
        if let parent, let id = Self.traceID(of: parent) {
            self.id = id
            self.parent = parent
            self.state = state.flatMap { Self.isState($0) ? $0 : nil }
        } else {
            id = Self.hex(.random(in: 1...UInt64.max)) + Self.hex(.random(in: 1...UInt64.max))
            self.parent = "00-\(id)-\(Self.hex(.random(in: 1...UInt64.max)))-01"
            self.state = nil
        }
    }

    /// The trace id of a `traceparent` of version 00: `00-<32 hex>-<16 hex>-<2 hex>`, ids not all zeros.
    private static func traceID(of parent: String) -> String? {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "00", zip(parts.dropFirst(), [32, 16, 2]).allSatisfy(isHex),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return nil }
        return String(parts[1])
    }

    private static func isHex(_ text: Substring, length: Int) -> Bool {
        text.utf8.count == length
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// At most what an envelope takes, and printable.
    private static func isState(_ text: String) -> Bool {
        (1...512).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    private static func hex(_ value: UInt64) -> String {
        withUnsafeBytes(of: value.bigEndian, \.hex)
    }
}
