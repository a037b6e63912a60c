// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import Storage
import WireJSON

/// Reads when the service decided what, before a replay decides it again: its own events and replies tell the time. So
/// commands that were decided in another order than they were logged come to what they came to then (``Replay``).
struct PastDecisions {
    let service: String
    /// The types of its commands that only ask.
    let questions: Set<String>
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
    /// - Returns: which decisions were later than they say.
    /// - Throws: what is not, from Kafka or the store.
    func prepare(retrying isForOthersToMend: (any Error) -> Bool) throws -> LaterTimes {
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !signals.isStopping {
            do {
                if configuration.replayUntil == nil {
                    try database.transaction { try DecisionTimes.forget(in: $0) }
                    return LaterTimes()
                }
                return try read()
            } catch  where isForOthersToMend(error) {
                signals.sleep(backoff.nextSpread())
            }
        }
        return LaterTimes()
    }

    /// Events first: they say who was erased, and replies who was there still.
    private func read() throws -> LaterTimes {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        let topics = configuration.topics
        let told = try admin.existingTopics(timeout: .seconds(10))
        var later = LaterTimes(questions: questions)
        var kept = 0
        var word = Ticker(every: .seconds(10), from: .now)
        for topics in [
            told.filter { $0.key == topics.events(service) }, told.filter { $0.key.hasPrefix(topics.anyReplies) },
        ] {
            let tail = try KafkaTail(
                configuration: configuration.kafka, partitions: topics, from: .beginning, logger: logger)
            defer { tail.close() }
            let isRead = try read(tail, admin) { records in
                kept += try keep(records, &later)
                if word.ticks(.now) { tell("a replay reads when the service decided once", "replay.reads", kept) }
            }
            guard isRead else { return later }
        }
        health.unreadable(nil)
        tell("a replay has read when the service decided once", "replay.recorded", kept)
        return later
    }

    private func tell(_ words: Logger.Message, _ event: String, _ decisions: Int) {
        logger.info(words, metadata: ["event": "\(event)", "decisions": .stringConvertible(decisions)])
    }

    /// - Returns: whether all was read; not when the service is to stop.
    private func read(_ tail: KafkaTail, _ admin: KafkaAdmin, _ take: ([KafkaRecord]) throws -> Void) throws -> Bool {
        do {
            return try tail.catchUp(admin, patience: patience) {
                health.turned()
                if let (topic, error) = tail.unreadable.first {
                    health.unreadable(error.unreadable(topic))
                    throw error
                }
                return signals.isStopping
            } take: {
                try take($0)
            }
        } catch let silence as KafkaTail.Silence {
            throw waits(silence.partition)
        }
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

    private func keep(_ records: [KafkaRecord], _ later: inout LaterTimes) throws -> Int {
        var rows: [DecisionTimes.Row] = []
        for record in records {
            guard let message = try? EnvelopeReader.open(value: record.value, headers: record.headers),
                message.attributes.source == "\(Topics.ownSources)\(service)",
                let time = message.attributes.time.flatMap({ Timestamp(rfc3339: $0) })?.milliseconds,
                (try? authenticator.authenticate(publication: record, message.attributes)) != nil
            else { continue }
            later.note(message, at: time)
            if message.attributes.type == DecisionsNoted.type {
                // Only there nobody but the service may write.
                guard record.topicPartition.topic == configuration.topics.events(service),
                    let note = try? Self.note(in: message)
                else { continue }
                // A reply that is kept as none that refuses stays so: the replies are read later.
                rows += (note.decisions + (note.repeated ?? []) + (note.refusedInReplay ?? [])).map {
                    DecisionTimes.Row(message: $0, decidedAt: time)
                }
                rows += (note.refused ?? []).map { DecisionTimes.Row(message: $0, decidedAt: time, rejection: "") }
            } else {
                let id = message.attributes.id
                rows.append(DecisionTimes.Row(message: id, decidedAt: time, rejection: Self.rejection(in: message)))
            }
        }
        guard !rows.isEmpty else { return 0 }
        try database.transaction { try DecisionTimes.keep(rows, in: $0) }
        return rows.count
    }

    private static func rejection(in message: CloudEvent<JSONView>) -> String? {
        guard message.attributes.type == ReceivedReply.type, let reply = ReceivedReply(message.data.value),
            reply.status == .rejected
        else { return nil }
        return reply.rejection.description
    }

    private static func note(in message: CloudEvent<JSONView>) throws -> DecisionsNoted {
        try WireJSONDecoder().decode(DecisionsNoted.self, from: message.data)
    }
}
