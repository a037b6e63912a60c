// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The two kinds of librdkafka client. The admin client is a producer that produces nothing.
enum ClientRole: CaseIterable {
    case consumer
    case producer

    /// What the environment variables of this role begin with.
    var variablePrefix: String {
        switch self {
        case .consumer: "KAFKA_CONSUMER_"
        case .producer: "KAFKA_PRODUCER_"
        }
    }

    /// Settings that hold unless the configuration says otherwise.
    var defaults: [String: String] {
        switch self {
        case .consumer: Self.shared.merging(Self.consumerDefaults) { _, own in own }
        case .producer: Self.shared.merging(Self.producerDefaults) { _, own in own }
        }
    }

    /// Settings that the guarantees stand on.
    var fixed: [String: String] {
        switch self {
        case .consumer:
            [
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.auto.commit": "false",
                "enable.auto.offset.store": "false",
            ]
        case .producer:
            ["enable.idempotence": "true", "acks": "all"]
        }
    }

    /// Settings that may not be given: the fixed ones, their other names, and those that have a variable of their own.
    var reserved: Set<String> {
        let own: Set<String> =
            switch self {
            case .consumer: ["group.id", "auto.commit.enable"]
            case .producer: ["request.required.acks", "transactional.id"]
            }
        return own.union(fixed.keys).union(["bootstrap.servers", "metadata.broker.list", "client.id"])
    }

    /// Nagle's algorithm and delayed acknowledgements together cost 40 ms per batch: a batch is one request for each
    /// partition, and the second would wait for the peer to acknowledge the first.
    private static let shared = [
        "socket.nagle.disable": "true",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        "topic.metadata.refresh.interval.ms": "30000",
        "statistics.interval.ms": "5000",
        "log.connection.close": "false",
    ]

    /// One 8 MiB message must fit through; librdkafka wants the receive limit above the fetch limit.
    private static let consumerDefaults = [
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "session.timeout.ms": "45000",
        "fetch.wait.max.ms": "500",
        "queued.min.messages": "10000",
        "queued.max.messages.kbytes": "16384",
        "fetch.message.max.bytes": "9437184",
        "fetch.max.bytes": "16777216",
        "receive.message.max.bytes": "100000000",
        "allow.auto.create.topics": "false",
    ]

    /// Lingering is not needed: a batch is handed over at once, and messages gather while requests are on their way.
    /// Delivery is waited for without end: the outbox in the database knows what is still to be sent.
    private static let producerDefaults = [
        "linger.ms": "0",
        "batch.size": "1000000",
        "message.timeout.ms": "0",
        "message.max.bytes": "4000000",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": "200000",
        "queue.buffering.max.kbytes": "262144",
        "topic.metadata.propagation.max.ms": "10000",
    ]
}
