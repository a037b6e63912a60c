// SPDX-License-Identifier: Apache-2.0

/// What became of one message given to ``KafkaProducer/send(_:token:)``. Each accepted message has exactly one report.
public struct DeliveryReport: Sendable {
    /// The number given with the message.
    public let token: Int

    /// `nil` when all in-sync replicas have the message.
    public let error: KafkaError?

    /// Where the message went; the partition is -1 when it failed before one was chosen.
    public let topicPartition: TopicPartition

    /// The message's offset; -1001 when unknown, which is always so for a failed message.
    public let offset: Int64

    public init(token: Int, error: KafkaError?, topicPartition: TopicPartition, offset: Int64) {
        self.token = token
        self.error = error
        self.topicPartition = topicPartition
        self.offset = offset
    }
}
