// SPDX-License-Identifier: Apache-2.0

/// An earlier incarnation of a partition whose messages were not all published.
public struct SetAsideIncarnation: Sendable, Hashable {
    public let incarnation: Int64
    /// The last offset that was published, -1 for none.
    public let publishedThrough: Int64

    public init(incarnation: Int64, publishedThrough: Int64) {
        self.incarnation = incarnation
        self.publishedThrough = publishedThrough
    }
}
