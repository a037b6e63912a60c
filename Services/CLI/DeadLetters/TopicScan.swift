// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Supervision

/// Reads partitions, now and then up to where they end at that moment.
final class TopicScan {
    private let kafka: KafkaAccess
    private let admin: KafkaAdmin
    private let tail: KafkaTail

    init(_ kafka: KafkaAccess, _ admin: KafkaAdmin, _ partitions: [TopicPartition], from start: KafkaTail.Start) throws
    {
        self.kafka = kafka
        self.admin = admin
        do {
            tail = try KafkaTail(
                configuration: kafka.configuration, reading: partitions, from: start, logger: .quiet)
        } catch let error as KafkaError {
            throw kafka.problem(error)
        }
    }

    /// - Parameter offset: the first record that is read.
    init(_ kafka: KafkaAccess, _ admin: KafkaAdmin, _ partition: TopicPartition, at offset: Int64) throws {
        self.kafka = kafka
        self.admin = admin
        do {
            tail = try KafkaTail(
                configuration: kafka.configuration, readingFrom: [partition: offset], logger: .quiet)
        } catch let error as KafkaError {
            throw kafka.problem(error)
        }
    }

    static func partitions(_ topics: [String: Int]) -> [TopicPartition] {
        topics.flatMap { topic, count in
            (0..<Int32(clamping: count)).map { TopicPartition(topic: topic, partition: $0) }
        }
    }

    /// The records that have come, waiting at most `timeout` for the first.
    /// - Throws: `Problem` without the right to read them.
    func poll(_ timeout: Duration) throws -> [KafkaRecord] {
        let records = tail.poll(maxRecords: 500, timeout: timeout)
        try checkRights()
        return records
    }

    private func checkRights() throws {
        let denied = tail.unreadable.filter { $0.value.code == KafkaError.Code.topicAuthorizationFailed }
        if !denied.isEmpty { throw kafka.noRight(to: "read", "Read", denied.keys.sorted()) }
    }

    /// Reads to the ends of this moment.
    /// - Parameters:
    ///   - limit: for how long at most.
    ///   - stop: asked now and then; then it is interrupted.
    /// - Returns: whether it got there.
    @discardableResult
    func catchUp(
        within limit: Duration = .seconds(600), unless stop: () -> Bool = { false },
        _ take: (KafkaRecord) throws -> Void
    ) throws -> Bool {
        do {
            return try tail.catchUp(admin, within: limit) {
                try checkRights()
                if stop() { throw Problem(.interrupted, "interrupted; nothing was done") }
                return false
            } take: {
                for record in $0 { try take(record) }
            }
        } catch let error as KafkaError {
            throw kafka.problem(error)
        } catch let silence as KafkaTail.Silence {
            throw Problem(
                .away, "Kafka at \(kafka.configuration.bootstrapServers) gives nothing more of \(silence.partition).",
                "Try again when it is well.")
        }
    }
}
