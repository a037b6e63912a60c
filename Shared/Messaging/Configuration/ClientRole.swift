// SPDX-License-Identifier: Apache-2.0

/// The kinds of librdkafka client. The admin client is a producer that produces nothing.
enum ClientRole: CaseIterable {
    /// A member of a group.
    case consumer
    /// A reader outside every group.
    case tail
    case producer

    /// What the environment variables of this role begin with.
    var variablePrefix: String {
        switch self {
        case .consumer, .tail: "KAFKA_CONSUMER_"
        case .producer: "KAFKA_PRODUCER_"
        }
    }

    /// Settings that hold unless the configuration says otherwise.
    var defaults: [String: String] {
        switch self {
        case .consumer, .tail: Self.shared.merging(Self.consumerDefaults) { _, own in own }
        case .producer: Self.shared.merging(Self.producerDefaults) { _, own in own }
        }
    }

    /// Settings that the guarantees stand on.
    var fixed: [String: String] {
        switch self {
        // A position that the log does not have must come to light: going on somewhere else would skip commands.
        case .consumer: Self.fixedForReaders.merging(["auto.offset.reset": "error"]) { $1 }
        // Nothing is promised to those who look on: they go on with what there is.
        case .tail: Self.fixedForReaders.merging(["auto.offset.reset": "earliest"]) { $1 }
        // Topics are named by senders too, who must not be able to create them.
        case .producer: ["enable.idempotence": "true", "acks": "all", "allow.auto.create.topics": "false"]
        }
    }

    var isConsumer: Bool { self != .producer }

    /// Settings that may not be given: the fixed ones, their other names, and those that have a variable of their own.
    var reserved: Set<String> {
        let own: Set<String> =
            switch self {
            // One group.instance.id for all replicas would make them throw each other out.
            case .consumer, .tail: ["group.id", "group.instance.id", "auto.commit.enable"]
            case .producer: ["request.required.acks", "transactional.id"]
            }
        return own.union(fixed.keys).union(["bootstrap.servers", "metadata.broker.list", "client.id"])
    }

    private static let fixedForReaders = [
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "false",
        "isolation.level": "read_committed",
    ]

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

    /// One 8 MiB message must fit through; librdkafka wants the receive limit above the fetch limit. The session is
    /// short because being thrown out is harmless (the database says who owns a partition) and a killed replica's
    /// partitions wait for its end.
    private static let consumerDefaults = [
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "1000",
        "fetch.wait.max.ms": "500",
        "queued.min.messages": "10000",
        "queued.max.messages.kbytes": "16384",
        "fetch.message.max.bytes": "9437184",
        "fetch.max.bytes": "16777216",
        "receive.message.max.bytes": "100000000",
        "allow.auto.create.topics": "false",
    ]

    /// Lingering is not needed: a batch is handed over at once, and messages gather while requests are on their way.
    /// Delivery is waited for without end: the outbox in the database knows what is still to be sent. A topic that is
    /// missing is soon told, and soon used when it is back.
    private static let producerDefaults = [
        "linger.ms": "0",
        "batch.size": "1000000",
        "message.timeout.ms": "0",
        "message.max.bytes": "4000000",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": "200000",
        "queue.buffering.max.kbytes": "262144",
        "topic.metadata.propagation.max.ms": "2000",
        "topic.metadata.refresh.interval.ms": "5000",
    ]
}
