// SPDX-License-Identifier: Apache-2.0

/// One partition of one topic, whatever is in it.
public struct JournalPartition: Sendable, Hashable, CustomStringConvertible {
    public let topic: String
    public let partition: Int32

    public init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    public var description: String { "\(topic)[\(partition)]" }
}
