// SPDX-License-Identifier: Apache-2.0

/// A topic that should exist.
public struct TopicSpec: Sendable, Hashable {
    /// The topic's name.
    public var name: String

    /// The number of partitions it is created with.
    public var partitions: Int

    /// The number of replicas, -1 for the broker's default.
    public var replicationFactor: Int

    /// Topic settings such as `retention.ms`, given to the broker at creation only.
    public var config: [String: String]

    public init(name: String, partitions: Int, replicationFactor: Int = -1, config: [String: String] = [:]) {
        self.name = name
        self.partitions = partitions
        self.replicationFactor = replicationFactor
        self.config = config
    }
}
