// SPDX-License-Identifier: Apache-2.0

/// The names of this library's metrics.
enum MetricName {
    /// Gauge {group, topic, partition}: messages that the group still has before it.
    static let consumerLag = "kafka_consumer_lag"
    /// Gauge {client, role, broker, quantile}: seconds from request to answer over the last interval.
    static let brokerRoundTrip = "kafka_broker_round_trip_seconds"
    /// Gauge {client, role}: produced messages that wait for delivery or for their report to be read.
    static let queuedMessages = "kafka_client_queued_messages"
    /// Gauge {client, role}: events that wait for the owner to poll.
    static let replyQueue = "kafka_client_reply_queue"
    /// Gauge {group}: rebalances since the consumer started.
    static let rebalances = "kafka_consumer_rebalances"
}
