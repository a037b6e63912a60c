// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
package import Contracts
package import Logging
package import Messaging

/// A Kafka broker inside this process: librdkafka's mock cluster, behind a ``FetchRelay`` on a port of the loopback
/// interface.
///
/// Speaks Kafka's protocol to any client on this machine. Keeps everything in memory, about 5 MB (compressed) per
/// partition, and forgets it all when closed. Has no admin API, no transactions worth the name, and creates any topic
/// that a client asks about (with 4 partitions): create the real ones before the first client starts.
///
/// Confined to one thread.
package final class EmbeddedBroker {
    /// `host:port` pairs for `KAFKA_BOOTSTRAP_SERVERS`.
    package let bootstrapServers: String

    /// The broker's own client has nobody to connect to, and would say so at a lower level.
    private static let settings = ["statistics.interval.ms": "0", "log_level": "4"]

    private let handle: ClientHandle
    private var cluster: OpaquePointer?
    private let relay: FetchRelay
    private let brokers: Int
    /// The topics created here, with their numbers of partitions.
    private var partitions: [String: Int] = [:]

    /// Starts the broker and creates the topics.
    ///
    /// - Parameters:
    ///   - brokers: more than one makes nothing faster; it is for tests of moving leaders.
    ///   - isDated: whether a topic's records have the time at which they are appended (`LogAppendTime`). Those of all others
    ///     have their producer's.
    /// - Throws: when no socket can be had, or a topic cannot be created.
    package init(
        topics: [TopicSpec] = [],
        brokers: Int = 1,
        dating isDated: @escaping @Sendable (_ topic: String) -> Bool = { _ in false },
        logger: Logger = Logger(label: "identitybus.kafka.embedded")
    ) throws(KafkaError) {
        do {
            let configuration = KafkaConfiguration(
                bootstrapServers: "", clientID: "embedded-broker", producer: Self.settings)
            handle = try ClientHandle(
                role: .producer, configuration: configuration, callbacks: ClientCallbacks(logger: logger))
        } catch {
            throw KafkaError(code: RD_KAFKA_RESP_ERR__INVALID_ARG.rawValue, message: error.description)
        }
        guard let cluster = rd_kafka_mock_cluster_new(handle.pointer, Int32(clamping: brokers)),
            let servers = rd_kafka_mock_cluster_bootstraps(cluster)
        else {
            throw KafkaError(code: RD_KAFKA_RESP_ERR__FAIL.rawValue, message: "the embedded broker could not start")
        }
        do {
            relay = try FetchRelay(to: Self.ports(of: String(cString: servers)), dating: isDated)
        } catch {
            rd_kafka_mock_cluster_destroy(cluster)
            handle.destroy(timeout: .seconds(2))
            throw KafkaError(
                code: RD_KAFKA_RESP_ERR__FAIL.rawValue, message: "the embedded broker could not start: \(error)")
        }
        self.cluster = cluster
        self.brokers = brokers
        bootstrapServers = relay.ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
        for topic in topics { try createTopic(topic) }
    }

    deinit { close() }

    private static func ports(of servers: String) -> [UInt16] {
        servers.split(separator: ",").compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } }
    }

    /// Creates a topic. Replication factor and settings mean nothing here.
    ///
    /// - Throws: `TOPIC_ALREADY_EXISTS`, also when a client's question has created it before.
    package func createTopic(_ spec: TopicSpec) throws(KafkaError) {
        guard let cluster else {
            throw KafkaError(code: RD_KAFKA_RESP_ERR__STATE.rawValue, message: "the embedded broker is closed")
        }
        let code = rd_kafka_mock_topic_create(cluster, spec.name, Int32(clamping: spec.partitions), Int32(brokers))
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw KafkaError(code: code.rawValue, message: "topic \(spec.name)")
        }
        partitions[spec.name] = spec.partitions
    }

    /// Ends the broker: its connections break and its messages are gone. Only the first call does anything.
    package func close() {
        guard let cluster else { return }
        self.cluster = nil
        relay.close()
        rd_kafka_mock_cluster_destroy(cluster)
        handle.destroy(timeout: .seconds(2))
    }

    // MARK: - Faults, for tests

    /// The requests that can be made to fail.
    package enum Request: Int16, Sendable, CaseIterable {
        case produce = 0
        case fetch = 1
        case listOffsets = 2
        case offsetCommit = 8
        case offsetFetch = 9
        case findCoordinator = 10
        case joinGroup = 11
        case heartbeat = 12
        case leaveGroup = 13
        case syncGroup = 14
        case apiVersions = 18
        case initProducerID = 22
    }

    /// Answers the next requests of that kind with these errors, one each, from whichever client and to whichever topic
    /// they come; then all is normal again. ``KafkaError/Code/transport`` breaks the connection instead. Nothing of a
    /// failed request is done, but what comes behind a failed `produce` is appended.
    package func failNext(_ request: Request, with codes: [Int32]) {
        relay.showFaults()
        guard let cluster else { return }
        let codes = codes.map { rd_kafka_resp_err_t(rawValue: $0) }
        rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, codes.count, codes)
    }

    /// Takes back the errors that were not used yet.
    package func clearFailures(_ request: Request) {
        if let cluster { rd_kafka_mock_clear_request_errors(cluster, request.rawValue) }
    }

    /// Takes a broker off the network or brings it back. Its messages stay.
    package func setBroker(_ id: Int32 = 1, up: Bool) {
        relay.showFaults()
        guard let cluster else { return }
        _ = up ? rd_kafka_mock_broker_set_up(cluster, id) : rd_kafka_mock_broker_set_down(cluster, id)
        if !up { relay.disconnect(Int(id) - 1) }
    }

    /// Delays every answer of a broker.
    package func setRoundTrip(_ time: Duration, broker id: Int32 = 1) {
        relay.showFaults()
        if let cluster { _ = rd_kafka_mock_broker_set_rtt(cluster, id, time.kafkaMilliseconds) }
    }

    /// Moves a partition to another leader, or takes its leader away with `nil`: nothing is written to it or read from
    /// it until it has one, and clients wait for that. A new leader has all that the old one had.
    package func setLeader(_ partition: TopicPartition, broker id: Int32?) {
        relay.showFaults()
        guard let cluster else { return }
        _ = rd_kafka_mock_partition_set_leader(cluster, partition.topic, partition.partition, id ?? -1)
    }

    /// Makes every request for the topic's metadata answer with that error; 0 ends it. A client that knows the topic
    /// already goes on until it asks again (`topic.metadata.refresh.interval.ms`). A producer takes any error but
    /// `UNKNOWN_TOPIC_OR_PART` and `TOPIC_EXCEPTION` for the loss of the leaders, and waits.
    package func setTopicError(_ topic: String, code: Int32) {
        relay.showFaults()
        if let cluster { rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(rawValue: code)) }
    }

    /// What somebody may do with a topic.
    package enum Right: Sendable {
        case read, write
    }

    /// Takes a right on a topic from everybody, as an authorizer does that finds no rule for it. Clients go on seeing the topic.
    package func deny(_ right: Right, on topic: String) { set(right, on: topic, isDenied: true) }

    /// Ends ``deny(_:on:)``.
    package func allow(_ right: Right, on topic: String) { set(right, on: topic, isDenied: false) }

    private func set(_ right: Right, on topic: String, isDenied: Bool) {
        relay.set(.init(api: right == .read ? .fetch : .produce, topic: topic), isDenied: isDenied)
    }

    /// Makes a topic that was created here look as if it did not exist: a producer's messages come back with
    /// `UNKNOWN_TOPIC_OR_PART`, whether it knows the topic already or not. What a rolling restart of a cluster looks like
    /// for a moment.
    package func hide(_ topic: String) {
        setTopicError(topic, code: KafkaError.Code.unknownTopicOrPartition)
        // A client asks again for the metadata of a topic that it knows when its partitions have no leader.
        setLeaders(of: topic, broker: nil)
    }

    /// Ends ``hide(_:)``. A client notices at its next look at the metadata; a producer that was refused looks
    /// only every `topic.metadata.refresh.interval.ms`. The partitions are led by the first broker then.
    package func show(_ topic: String) {
        setTopicError(topic, code: 0)
        setLeaders(of: topic, broker: 1)
    }

    private func setLeaders(of topic: String, broker id: Int32?) {
        for number in 0..<Int32(clamping: partitions[topic] ?? 0) {
            setLeader(TopicPartition(topic: topic, partition: number), broker: id)
        }
    }
}
