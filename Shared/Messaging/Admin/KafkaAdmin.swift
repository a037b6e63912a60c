// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

internal import CLibrdkafka
public import Logging

/// Looks at and creates topics. Confined to one thread; every call blocks until the answer or its time-out.
public final class KafkaAdmin {
    private let handle: ClientHandle
    private let logger: Logger
    private var isClosed = false

    /// Creates the client; connecting goes on in the background.
    ///
    /// - Throws: when a setting is refused.
    public init(configuration: KafkaConfiguration, logger: Logger) throws(KafkaConfigurationError) {
        var configuration = configuration
        // Nobody polls this client, so statistics would only pile up in it.
        configuration.producer["statistics.interval.ms"] = "0"
        handle = try ClientHandle(
            role: .producer, configuration: configuration, callbacks: ClientCallbacks(logger: logger))
        self.logger = logger
    }

    /// The id that the cluster gave itself when it was made, or `nil` when it did not say in time.
    public func clusterID(timeout: Duration) throws(KafkaError) -> String? {
        try checkOpen()
        return handle.clusterID(timeout: timeout)
    }

    /// All topics of the cluster with their number of partitions. Never creates one.
    ///
    /// - Throws: when no broker answers in time.
    public func existingTopics(timeout: Duration) throws(KafkaError) -> [String: Int] {
        try checkOpen()
        var answer: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(handle.pointer, 1, nil, &answer, timeout.kafkaMilliseconds)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = answer else { throw KafkaError(code) }
        defer { rd_kafka_metadata_destroy(metadata) }
        var topics: [String: Int] = [:]
        for topic in UnsafeBufferPointer(start: metadata.pointee.topics, count: Int(metadata.pointee.topic_cnt)) {
            // A topic that is being created may have no leaders yet, and exists all the same.
            guard topic.err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, let name = topic.topic else { continue }
            topics[String(cString: name)] = Int(topic.partition_cnt)
        }
        return topics
    }

    /// Creates the topics that do not exist. Existing ones are left as they are; one with another number of partitions
    /// is worth a warning. When all exist, the broker is asked for nothing else.
    ///
    /// - Parameter timeout: for everything together.
    /// - Throws: when a topic could not be created; the message names the topics. A topic that someone else creates
    ///   at the same time is fine. The embedded broker cannot create topics this way and always times out.
    public func ensureTopics(_ specs: [TopicSpec], timeout: Duration) throws(KafkaError) {
        let deadline = Deadline(after: timeout)
        let existing = try existingTopics(timeout: timeout)
        for spec in specs {
            guard let partitions = existing[spec.name], partitions != spec.partitions else { continue }
            logger.warning(
                "Topic has \(partitions) partitions instead of \(spec.partitions)",
                metadata: ["\(LogKey.topic)": "\(spec.name)"])
        }
        let missing = specs.filter { existing[$0.name] == nil }
        if missing.isEmpty { return }
        try TopicCreation(client: handle.pointer, specs: missing, timeout: deadline.remaining).run()
        logger.info("Topics created", metadata: ["\(LogKey.topic)": "\(missing.map(\.name).joined(separator: " "))"])
    }

    /// Ends the client. Only the first call does anything.
    ///
    /// - Returns: false when the time was up; ending then goes on in the background.
    @discardableResult
    public func close(timeout: Duration) -> Bool {
        isClosed = true
        return handle.destroy(timeout: timeout)
    }

    private func checkOpen() throws(KafkaError) {
        if isClosed { throw KafkaError(RD_KAFKA_RESP_ERR__STATE, message: "the admin client is closed") }
    }
}
