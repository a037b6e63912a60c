// SPDX-License-Identifier: Apache-2.0

/// How a topic is doing, as one broker sees it.
public struct TopicState: Sendable, Hashable {
    /// Why there is nothing to tell: the topic is unknown, or there is no right to see it. `nil` for one that exists.
    public var error: KafkaError?

    /// The number of partitions, 0 with an error.
    public var partitions: Int

    /// Partitions that nobody can write to or read from at the moment, in order.
    public var leaderless: [Int32]

    /// The smallest number of replicas of a partition, be they in sync or not.
    public var replicas: Int

    public init(error: KafkaError? = nil, partitions: Int = 0, leaderless: [Int32] = [], replicas: Int = 0) {
        self.error = error
        self.partitions = partitions
        self.leaderless = leaderless
        self.replicas = replicas
    }

    public var exists: Bool { error == nil }

    /// Whether every partition can be used.
    public var isUsable: Bool { exists && partitions > 0 && leaderless.isEmpty }

    static let unknown = TopicState(error: KafkaError(code: KafkaError.Code.unknownTopicOrPartition))
}
