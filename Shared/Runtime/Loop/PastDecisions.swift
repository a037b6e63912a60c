// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage

/// Reads when the service decided what, before a replay decides it again: its own events and replies tell the time. So
/// commands that were decided in another order than they were logged come to what they came to then (``Replay``).
struct PastDecisions {
    let service: String
    let configuration: ServiceConfiguration
    let authenticator: Authenticator
    let database: any SQLDatabase
    let health: LoopHealth
    let signals: LoopSignals
    let logger: Logger

    /// For how long Kafka may give nothing before the end.
    var patience: Duration = .seconds(10)

    /// Before a replay, keeps what is told, and waits until that can be done. Otherwise forgets what was kept.
    ///
    /// - Parameter isForOthersToMend: whether an error is worth another attempt.
    /// - Throws: what is not, from Kafka or the store.
    func prepare(retrying isForOthersToMend: (any Error) -> Bool) throws {
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !signals.isStopping {
            do {
                if configuration.replayUntil == nil {
                    return try database.transaction { try DecisionTimes.forget(in: $0) }
                }
                return try read()
            } catch  where isForOthersToMend(error) {
                signals.sleep(backoff.nextSpread())
            }
        }
    }

    private func read() throws {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        let topics = configuration.topics
        let told = try admin.existingTopics(timeout: .seconds(10)).filter { topic, _ in
            topic == topics.events(service) || topic.hasPrefix(topics.anyReplies)
        }
        let tail = try KafkaTail(
            configuration: configuration.kafka, partitions: told, from: .beginning, logger: logger)
        defer { tail.close() }
        var kept = 0
        do {
            let isRead = try tail.catchUp(admin, patience: patience) {
                health.turned()
                if let (topic, error) = tail.unreadable.first {
                    health.unreadable(error.unreadable(topic))
                    throw error
                }
                return signals.isStopping
            } take: {
                kept += try keep($0)
            }
            guard isRead else { return }
        } catch let silence as KafkaTail.Silence {
            throw waits(silence.partition)
        }
        health.unreadable(nil)
        logger.info(
            "a replay has read when the service decided once",
            metadata: ["event": "replay.recorded", "messages": .stringConvertible(kept)])
    }

    /// - Returns: what is worth another attempt.
    private func waits(_ partition: TopicPartition) -> KafkaError {
        let problem = "Kafka gives nothing more of \(partition), which is not at its end"
        health.unreadable(problem)
        logger.warning(
            "a replay cannot read when the service decided once; it tries again and decides nothing before",
            metadata: ["event": "replay.waits", "topic": "\(partition.topic)", "problem": "\(problem)"])
        return KafkaError(code: KafkaError.Code.timedOut, message: problem)
    }

    private func keep(_ records: [KafkaRecord]) throws -> Int {
        let told = records.compactMap(time)
        guard !told.isEmpty else { return 0 }
        try database.transaction { try DecisionTimes.keep(told, in: $0) }
        return told.count
    }

    private func time(_ record: KafkaRecord) -> DecisionTimes.Row? {
        guard let message = try? EnvelopeReader.open(value: record.value, headers: record.headers),
            message.attributes.source == "\(Topics.ownSources)\(service)",
            let time = message.attributes.time.flatMap({ Timestamp(rfc3339: $0) }),
            (try? authenticator.authenticate(publication: record, message.attributes)) != nil
        else { return nil }
        return DecisionTimes.Row(message: message.attributes.id, decidedAt: time.milliseconds)
    }
}
