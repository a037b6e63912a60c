// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging
import Runtime

/// Owns the tail of the reply topic. Confined to one thread.
///
/// Every replica reads every partition of the one reply topic from its end, outside of any group, and passes over what
/// it does not wait for (docs/decisions/0008-gateway-replies.md).
struct ReplyThread {
    let configuration: ServiceConfiguration
    let topic: String
    let waiters: Waiters
    let health: BusHealth
    let logger: Logger

    /// Also how late a time-out may be noticed.
    private static let turn = Duration.milliseconds(50)

    func run() {
        // Who else can write to the topic cannot answer for a service.
        let publications = Publications(configuration.keys, topics: configuration.topics)
        guard let tail = open() else { return }
        health.tailing()
        logger.info("reading replies", metadata: ["topic": "\(topic)"])
        while !health.isStopping {
            for record in tail.poll(maxRecords: 1000, timeout: Self.turn) {
                guard let value = record.value, let reply = CommandReply(envelope: value),
                    waiters.wants(reply)
                else { continue }
                if !publications.canCheck(topic) || publications.isGenuine(record) {
                    waiters.resolve(reply)
                } else {
                    logger.warning(
                        "ignored a reply that no service has signed", metadata: ["ref": "\(reply.commandID)"])
                }
            }
            waiters.sweep(now: .now)
            health.turned(.tail)
        }
        tail.close()
    }

    /// Waits for the broker, makes the topic if it is missing, and goes to its end.
    /// - Returns: `nil` when asked to stop meanwhile.
    private func open() -> KafkaTail? {
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !health.isStopping {
            health.turned(.tail)
            do {
                return try openOnce()
            } catch {
                logger.warning("waiting for the broker", metadata: ["error": "\(error)"])
                health.broker("\(error)")
                waiters.sweep(now: .now)
                Thread.sleep(forTimeInterval: backoff.nextSpread().inSeconds)
            }
        }
        return nil
    }

    private func openOnce() throws -> KafkaTail {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        let spec = TopicSpec(
            name: topic, partitions: configuration.partitions, replicationFactor: configuration.replicationFactor)
        try admin.ensureTopics([spec], timeout: .seconds(10))
        let partitions = try admin.existingTopics(timeout: .seconds(10)).filter { $0.key == topic }
        guard !partitions.isEmpty else { throw KafkaError(code: KafkaError.Code.unknownTopic) }
        return try KafkaTail(configuration: configuration.kafka, partitions: partitions, from: .end, logger: logger)
    }
}
