// SPDX-License-Identifier: Apache-2.0

/// A message to be produced.
public struct ProducerRecord: Sendable {
    /// The topic. It is not created on the way.
    public var topic: String

    /// The key, which also chooses the partition (murmur2, as Java's clients do); `nil` spreads messages at random.
    public var key: [UInt8]?

    /// The value; `nil` is a tombstone.
    public var value: [UInt8]?

    /// The headers, sent in this order.
    public var headers: [KafkaHeader]

    /// A fixed partition, or `nil` to let the key choose.
    public var partition: Int32?

    /// Milliseconds since 1970 UTC, or `nil` for the moment of sending.
    public var timestampMs: Int64?

    public init(
        topic: String,
        key: [UInt8]? = nil,
        value: [UInt8]?,
        headers: [KafkaHeader] = [],
        partition: Int32? = nil,
        timestampMs: Int64? = nil
    ) {
        self.topic = topic
        self.key = key
        self.value = value
        self.headers = headers
        self.partition = partition
        self.timestampMs = timestampMs
    }
}
