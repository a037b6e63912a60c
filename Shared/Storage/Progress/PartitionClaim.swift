// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// What a replica holds after it has claimed a partition.
public struct PartitionClaim: Sendable, Hashable {
    /// How the claim relates to what was known of the partition.
    public enum Start: Sendable, Hashable {
        /// The partition was never read.
        case new
        /// Reading goes on where it stopped.
        case resumed
        /// The offsets no longer meant anything (another cluster, a topic made anew). A new incarnation has begun.
        case setAside(previous: Int64, publishedThrough: Int64)
    }

    public let topic: String
    public let partition: Int32
    public let incarnation: Int64
    /// Proves ownership in every later update: it is raised by each claim.
    public let epoch: Int64
    /// Where to read on. Nil leaves it to the broker: from the earliest message.
    public let nextOffset: Int64?
    /// The last offset of this incarnation that was published, -1 for none.
    public let publishedThrough: Int64
    /// How often the partition was claimed since its offset last moved, this claim included. A crash loop shows here.
    public let idleClaims: Int64
    /// The offset that was marked as suspect and not passed since.
    public let suspectOffset: Int64?
    /// How often it was marked.
    public let suspectCount: Int64
    public let start: Start
    /// Earlier incarnations with messages still to be published, oldest first. They come before everything else.
    public let unpublished: [SetAsideIncarnation]
}
