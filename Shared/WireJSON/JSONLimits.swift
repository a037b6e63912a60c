// SPDX-License-Identifier: Apache-2.0

/// Bounds on what the parser accepts.
public struct JSONLimits: Sendable, Hashable {
    /// The deepest nesting of arrays and objects: `1` has depth 0, `[1]` depth 1 and `[[1]]` depth 2.
    public let maxDepth: Int
    /// The longest document, in bytes.
    public let maxBytes: Int

    /// `maxDepth` is clamped to 1...512, so that neither parsing nor releasing a parsed value can exhaust
    /// the stack whatever a configuration says.
    public init(maxDepth: Int = 32, maxBytes: Int = 262_144) {
        self.maxDepth = Swift.min(Swift.max(maxDepth, 1), 512)
        self.maxBytes = Swift.max(maxBytes, 0)
    }
}
