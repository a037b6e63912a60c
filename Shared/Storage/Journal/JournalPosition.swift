// SPDX-License-Identifier: Apache-2.0

/// Where a message stood in its topic.
///
/// The incarnation tells apart topics of the same name that followed each other (a broker that was replaced, a topic
/// that was deleted and created again): offsets of different incarnations have nothing to do with each other.
public struct JournalPosition: Sendable, Hashable, CustomStringConvertible {
    public let topic: String
    public let partition: Int32
    public let incarnation: Int64
    public let offset: Int64

    public init(topic: String, partition: Int32, incarnation: Int64, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.incarnation = incarnation
        self.offset = offset
    }

    public var description: String { "\(topic)[\(partition)]@\(offset)#\(incarnation)" }
}
