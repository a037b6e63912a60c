// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
public import Contracts
import Glibc
public import Logging

/// Looks at and creates topics. Confined to one thread; every call blocks until the answer or its time-out.
public final class KafkaAdmin {
    let handle: ClientHandle
    private let logger: Logger
    private var isClosed = false
    private var watched: [String: OpaquePointer] = [:]
    private let deliveries = DeliveryCollector()
    /// Whether a broker has written what Kafka never writes.
    private var writesAnything = false
    /// Topics whose settings were looked at, or that were made here.
    private var audited: Set<String> = []

    /// Creates the client; connecting goes on in the background.
    ///
    /// - Throws: when a setting is refused.
    public init(configuration: KafkaConfiguration, logger: Logger) throws(KafkaConfigurationError) {
        var configuration = configuration
        // Nobody polls this client, so statistics would only pile up in it.
        configuration.producer["statistics.interval.ms"] = "0"
        configuration.producer["enable.gapless.guarantee"] = nil
        let callbacks = ClientCallbacks(logger: logger)
        callbacks.deliveries = deliveries
        handle = try ClientHandle(role: .admin, configuration: configuration, callbacks: callbacks)
        self.logger = logger
    }

    /// The id that the cluster gave itself when it was made, or `nil` when it did not say in time.
    public func clusterID(timeout: Duration) throws(KafkaError) -> String? {
        try checkOpen()
        return handle.clusterID(timeout: timeout)
    }

    /// Whether it is the embedded broker. False when no cluster says its id in time.
    package func isEmbedded(timeout: Duration) throws(KafkaError) -> Bool {
        try checkOpen()
        return handle.isEmbedded(timeout: timeout)
    }

    /// Asks whoever answers first.
    ///
    /// - Returns: how many brokers the cluster has.
    /// - Throws: the first cause, when no broker answers in time.
    @discardableResult
    public func reach(timeout: Duration) throws(KafkaError) -> Int {
        try metadata(allTopics: false, timeout: timeout).brokers.count
    }

    /// All topics of the cluster that we may see, with their number of partitions. Never creates one.
    ///
    /// - Throws: when no broker answers in time.
    public func existingTopics(timeout: Duration) throws(KafkaError) -> [String: Int] {
        try metadata(allTopics: true, timeout: timeout).topics.filter(\.value.exists).mapValues(\.partitions)
    }

    /// Sets the topics that ``topicStates(timeout:)`` tells of. The embedded broker creates those that it does not have.
    ///
    /// - Throws: when librdkafka refuses a name.
    public func watch(topics: some Sequence<String>) throws(KafkaError) {
        try checkOpen()
        let topics = Set(topics)
        if topics == Set(watched.keys) { return }
        forgetWatched()
        for topic in topics {
            guard let watched = rd_kafka_topic_new(handle.pointer, topic, nil) else {
                throw KafkaError(rd_kafka_last_error(), message: "librdkafka refuses the topic name")
            }
            self.watched[topic] = watched
        }
    }

    /// How the watched topics are doing: one request about exactly these, so it may be called every few seconds.
    ///
    /// - Throws: when no broker answers in time.
    public func topicStates(timeout: Duration) throws(KafkaError) -> [String: TopicState] {
        // Asking about no topic would be asking about all.
        if watched.isEmpty { return [:] }
        let found = try metadata(allTopics: false, timeout: timeout).topics
        return Dictionary(uniqueKeysWithValues: watched.keys.map { ($0, found[$0] ?? .unknown) })
    }

    /// The watched topics among these that this client may not write to: of each, one message is sent that asks for two
    /// acknowledgements, a number that no Kafka since 0.9 knows. It looks for the right first and then refuses the number (`INVALID_REQUIRED_ACKS`), so
    /// nothing is ever written. A broker that writes it all the same is not asked again.
    ///
    /// - Returns: what the brokers said, and the topics without an answer in time.
    /// - Throws: only after `close`.
    package func deniedWrites(
        to topics: some Sequence<String>, timeout: Duration
    ) throws(KafkaError) -> (denied: [String: KafkaError], unanswered: Set<String>) {
        try checkOpen()
        if writesAnything { return ([:], []) }
        let deadline = Deadline(after: timeout)
        let arguments = MessageArguments()
        var waiting = 0
        for name in topics {
            guard let topic = watched[name] else { continue }
            let record = Record(topic: name, value: [], partition: 0)
            if (try? arguments.produce(record, to: topic, token: 0, client: handle.pointer)) != nil { waiting += 1 }
        }
        var denied: [String: KafkaError] = [:]
        var unanswered = Set(topics)
        while waiting > 0 {
            if deadline.isOver {
                _ = rd_kafka_purge(handle.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
            }
            rd_kafka_poll(handle.pointer, 100)
            for report in deliveries.take() {
                waiting -= 1
                if report.error == nil { writesAnything = true }
                let isGivenUp = report.error.map { Self.givenUp.contains($0.code) } ?? false
                if !isGivenUp { unanswered.remove(report.topicPartition.topic) }
                guard let error = report.error, error.code == KafkaError.Code.topicAuthorizationFailed else { continue }
                denied[report.topicPartition.topic] = error
            }
        }
        return (denied, unanswered)
    }

    /// What is said of a message that was taken back before a broker had answered.
    private static let givenUp = [RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT].map(\.rawValue)

    /// Asks the partitions' leaders for the oldest offset they have and for the end of what can be read, which is the
    /// offset of the next message (or of the first one of a transaction that is still open).
    ///
    /// Keeps the time-out, also when a broker hangs; its partitions, those without a leader and those that do not exist
    /// are then missing from the answer.
    ///
    /// - Throws: only after `close`.
    public func bounds(
        of partitions: [TopicPartition], timeout: Duration
    ) throws(KafkaError) -> [TopicPartition: (low: Int64, high: Int64)] {
        try checkOpen()
        return PartitionBounds(client: handle.pointer, deadline: Deadline(after: timeout)).ask(partitions)
    }

    /// Asks the partitions' leaders for the end of what can be read. Cheaper than ``bounds(of:timeout:)``; a leader that hangs
    /// takes the whole time.
    ///
    /// - Throws: only after `close`.
    package func ends(of partitions: [TopicPartition], timeout: Duration) throws(KafkaError) -> [TopicPartition: Int64]
    {
        try checkOpen()
        return PartitionBounds(client: handle.pointer, deadline: Deadline(after: timeout)).ends(partitions)
    }

    /// Creates the topics that do not exist and waits until every partition of all of them can be used.
    ///
    /// With three replicas or more a topic is created with `min.insync.replicas=2`, unless its spec says otherwise: only
    /// then does an acknowledged message survive the loss of a broker. Existing topics are never changed. Settings of
    /// theirs that promise less than the spec, and another number of partitions, are worth one warning a topic. The
    /// embedded broker is asked for nothing but its topics.
    ///
    /// - Parameters:
    ///   - creating: `never`: what is missing is told and not made.
    ///   - timeout: for everything together.
    /// - Throws: when topics could not be created, may not be seen, or have no leaders yet; the message names them. Worth
    ///   another try in any case: topics that someone else creates at the same time are fine.
    public func ensureTopics(
        _ specs: [TopicSpec], creating: TopicCreate = .missing, timeout: Duration
    ) throws(KafkaError) {
        let deadline = Deadline(after: timeout)
        let cluster = try metadata(allTopics: true, timeout: timeout)
        let isEmbedded = try isEmbedded(timeout: deadline.remaining)
        let missing = specs.filter { cluster.topics[$0.name]?.exists != true }
        if !missing.isEmpty { try create(missing, creating, in: cluster, isEmbedded: isEmbedded, by: deadline) }
        try waitForLeaders(
            of: specs.map(\.name), for: missing.isEmpty ? .zero : Self.settling, isEmbedded: isEmbedded, by: deadline)
        let existing = specs.filter { cluster.topics[$0.name]?.exists == true && !audited.contains($0.name) }
        audited.formUnion(specs.map(\.name))
        audit(existing, in: cluster, isEmbedded: isEmbedded, by: deadline)
    }

    /// The settings of topics as Kafka has them, by topic and name; and of those that it does not tell, why. The embedded
    /// broker is not to be asked: it does not answer.
    ///
    /// - Throws: when there is no answer.
    public func topicSettings(
        of topics: [String], timeout: Duration
    ) throws(KafkaError) -> (settings: [String: [String: String]], refused: [String: KafkaError]) {
        try checkOpen()
        if topics.isEmpty { return ([:], [:]) }
        do {
            return try ConfigQuery(client: handle.pointer, timeout: timeout).topics(topics)
        } catch {
            throw handle.trouble.explain(error)
        }
    }

    /// Ends the client. Only the first call does anything.
    ///
    /// - Returns: false when the time was up; ending then goes on in the background.
    @discardableResult
    public func close(timeout: Duration) -> Bool {
        isClosed = true
        forgetWatched()
        return handle.destroy(timeout: timeout)
    }

    private func metadata(allTopics: Bool, timeout: Duration) throws(KafkaError) -> MetadataQuery.Answer {
        try checkOpen()
        handle.renewPassword()
        do {
            let answer = try MetadataQuery(client: handle.pointer).ask(allTopics: allTopics, timeout: timeout)
            handle.trouble.isOver()
            return answer
        } catch {
            throw handle.trouble.explain(error)
        }
    }

    private func create(
        _ specs: [TopicSpec], _ creating: TopicCreate, in cluster: MetadataQuery.Answer, isEmbedded: Bool,
        by deadline: Deadline
    ) throws(KafkaError) {
        let names = specs.map(\.name)
        if isEmbedded, creating == .missing {
            throw KafkaError(
                code: KafkaError.Code.unknownTopicOrPartition,
                message: "topics missing and not created: \(list(names)) (the embedded broker does not do that)")
        }
        // A list of all topics leaves out those that we may not see.
        let hidden = try states(of: names, isEmbedded: isEmbedded, by: deadline).filter {
            $0.value.error?.code == KafkaError.Code.topicAuthorizationFailed
        }
        guard hidden.isEmpty else {
            throw KafkaError(
                code: KafkaError.Code.topicAuthorizationFailed,
                message: KafkaError.noRight("see (Describe)", topics: hidden.keys.sorted()))
        }
        if creating == .never {
            throw KafkaError(
                code: KafkaError.Code.unknownTopicOrPartition,
                message:
                    "topics missing: \(list(names)) (TOPIC_CREATE is never; identitybus topics --create makes them)")
        }
        let complete = specs.map { spec in
            var spec = spec
            if hasThreeReplicas(spec, in: cluster, by: deadline) {
                spec.config = spec.config(copies: TopicSpec.replicasForTwoInSync)
            }
            return spec
        }
        try TopicCreation(client: handle.pointer, specs: complete, timeout: deadline.remaining).run()
        logger.info(
            "topics created", metadata: ["event": "topics.created", "topics": "\(names.joined(separator: " "))"])
    }

    private func hasThreeReplicas(
        _ spec: TopicSpec, in cluster: MetadataQuery.Answer, by deadline: Deadline
    ) -> Bool {
        guard cluster.brokers.count >= TopicSpec.replicasForTwoInSync, let broker = cluster.brokers.min() else {
            return false
        }
        if spec.replicationFactor >= 0 { return spec.replicationFactor >= TopicSpec.replicasForTwoInSync }
        do {
            let settings = try ConfigQuery(client: handle.pointer, timeout: deadline.remaining).broker(broker)
            return Int(settings["default.replication.factor"] ?? "") ?? 1 >= TopicSpec.replicasForTwoInSync
        } catch {
            logger.warning(
                "topic is created without min.insync.replicas, because its replication factor is unknown",
                metadata: ["event": "topics.replicas-unknown", "topic": "\(spec.name)", "error": "\(error)"])
            return false
        }
    }

    /// Waits until the topics were usable for that long, whichever broker was asked. One that has just answered
    /// CreateTopics does not know the topics itself for a moment, and the others later still; a producer that hears of a
    /// topic from the one and is told by the next that there is none gives its messages up.
    private func waitForLeaders(
        of names: [String], for duration: Duration, isEmbedded: Bool, by deadline: Deadline
    ) throws(KafkaError) {
        var since: ContinuousClock.Instant?
        while true {
            let states = try states(of: names, isEmbedded: isEmbedded, by: deadline)
            let waiting = names.filter { states[$0]?.isUsable != true }
            since = waiting.isEmpty ? since ?? .now : nil
            if let since, since.duration(to: .now) >= duration { return }
            if deadline.remaining < Self.pause {
                throw KafkaError(
                    code: KafkaError.Code.leaderNotAvailable,
                    message: "topics without a leader for every partition: "
                        + list(waiting.isEmpty ? names : waiting))
            }
            usleep(UInt32(Self.pause.kafkaMilliseconds) * 1000)
        }
    }

    /// How long new topics must be known without a break.
    private static let settling: Duration = .seconds(1)
    private static let pause: Duration = .milliseconds(50)

    private func states(
        of names: [String], isEmbedded: Bool, by deadline: Deadline
    ) throws(KafkaError) -> [String: TopicState] {
        if isEmbedded { return try metadata(allTopics: true, timeout: deadline.remaining).topics }
        let others = Array(watched.keys)
        try watch(topics: names)
        let states = try topicStates(timeout: deadline.remaining)
        try watch(topics: others)
        return states
    }

    private func audit(
        _ specs: [TopicSpec], in cluster: MetadataQuery.Answer, isEmbedded: Bool, by deadline: Deadline
    ) {
        var findings: [String: [String]] = [:]
        for spec in specs {
            let partitions = cluster.topics[spec.name]?.partitions ?? spec.partitions
            if partitions == spec.partitions { continue }
            findings[spec.name] = ["it has \(partitions) partitions instead of \(spec.partitions)"]
        }
        if !isEmbedded, !specs.isEmpty {
            do {
                let query = ConfigQuery(client: handle.pointer, timeout: min(deadline.remaining, .seconds(5)))
                let answer = try query.topics(specs.map(\.name))
                for spec in specs {
                    guard let own = answer.settings[spec.name], let state = cluster.topics[spec.name] else { continue }
                    let flaws = spec.flaws(settings: own, copies: state.replicas)
                    findings[spec.name, default: []] += flaws.map(\.logged)
                }
                if let refusal = answer.refused.values.first { settingsUnknown(answer.refused.keys.sorted(), refusal) }
            } catch {
                settingsUnknown(specs.map(\.name), error)
            }
        }
        for (topic, words) in findings.sorted(by: { $0.key < $1.key }) where !words.isEmpty {
            logger.warning(
                "topic is not as it should be",
                metadata: [
                    "event": "topics.weak", "topic": "\(topic)", "problem": "\(words.joined(separator: ", "))",
                ])
        }
    }

    private func settingsUnknown(_ topics: [String], _ error: KafkaError) {
        logger.warning(
            "the settings of topics cannot be read",
            metadata: [
                "event": "topics.settings-unknown", "topics": "\(topics.joined(separator: " "))", "error": "\(error)",
            ])
    }

    private func forgetWatched() {
        for topic in watched.values { rd_kafka_topic_destroy(topic) }
        watched = [:]
    }

    private func list(_ names: [String]) -> String { names.joined(separator: ", ") }

    func checkOpen() throws(KafkaError) {
        if isClosed { throw KafkaError(RD_KAFKA_RESP_ERR__STATE, message: "the admin client is closed") }
    }
}
