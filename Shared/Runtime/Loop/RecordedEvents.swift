// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Logging
import Messaging
import Storage
import WireJSON

/// An event that the service published once, as a replay reads it back (``CommandService/recordedEvents``).
public struct RecordedEvent: Sendable {
    /// The same as when the command is decided again: `DerivedID.message(of:index:)`.
    public var id: CommandID
    public var type: String
    /// When it was told; `nil` where it does not say.
    public var time: Timestamp?
    let data: JSONView

    /// - Returns: `nil` for data of another form.
    public func read<Message: EventMessage>(_: Message.Type) -> Message? {
        try? WireJSONDecoder().decode(Message.self, from: data)
    }
}

/// Reads the service's own events before a replay decides anything. Commands that were decided in another order than they
/// were logged come to what they came to then.
struct RecordedEvents<Service: CommandService> {
    let configuration: ServiceConfiguration
    let authenticator: Authenticator
    let database: any SQLDatabase
    let health: LoopHealth
    let signals: LoopSignals
    let logger: Logger

    /// For how long Kafka may give nothing before the end.
    var patience: Duration = .seconds(10)

    private var topic: String { configuration.topics.events(Service.name) }

    /// Before a replay, keeps what the events say, and waits until that can be done. Otherwise forgets what was kept.
    ///
    /// - Parameters:
    ///   - partitions: how many a topic has.
    ///   - isForOthersToMend: whether an error is worth another attempt.
    /// - Throws: what is not, from Kafka or the store.
    func prepare(partitions: (String) -> Int?, retrying isForOthersToMend: (any Error) -> Bool) throws {
        guard !Service.recordedEvents.isEmpty else { return }
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !signals.isStopping {
            do {
                if configuration.replayUntil == nil {
                    return try database.transaction { try Service.forgetRecorded(in: $0) }
                }
                return try read(partitions: partitions(topic) ?? 0)
            } catch  where isForOthersToMend(error) {
                signals.sleep(backoff.nextSpread())
            }
        }
    }

    /// - Parameter count: how many partitions the topic has.
    private func read(partitions count: Int) throws {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        let tail = try KafkaTail(
            configuration: configuration.kafka, partitions: [topic: count], from: .beginning, logger: logger)
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
            "a replay has read what the service told once",
            metadata: ["event": "replay.recorded", "topic": "\(topic)", "events": .stringConvertible(kept)])
    }

    /// - Returns: what is worth another attempt.
    private func waits(_ partition: TopicPartition) -> KafkaError {
        let problem = "Kafka gives nothing more of \(partition), which is not at its end"
        health.unreadable(problem)
        logger.warning(
            "a replay cannot read what the service told once; it tries again and decides nothing before",
            metadata: ["event": "replay.waits", "topic": "\(topic)", "problem": "\(problem)"])
        return KafkaError(code: KafkaError.Code.timedOut, message: problem)
    }

    private func keep(_ records: [KafkaRecord]) throws -> Int {
        let events = records.compactMap(event)
        guard !events.isEmpty else { return 0 }
        try database.transaction { try Service.keep(events, in: $0) }
        return events.count
    }

    private func event(_ record: KafkaRecord) -> RecordedEvent? {
        guard let event = try? EnvelopeReader.open(value: record.value, headers: record.headers),
            Service.recordedEvents.contains(event.attributes.type),
            (try? authenticator.authenticate(publication: record, event.attributes)) != nil
        else { return nil }
        return RecordedEvent(
            id: CommandID(event.attributes.id), type: event.attributes.type,
            time: event.attributes.time.flatMap { Timestamp(rfc3339: $0) }, data: event.data)
    }
}
