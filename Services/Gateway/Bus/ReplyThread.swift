// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging
import Metrics
import Runtime

/// Owns the tail of the reply topic. Confined to one thread.
///
/// Every replica reads the partition of its own replies and the one that all replicas share, from their ends, outside
/// of any group, and passes over what it does not wait for (docs/decisions/0008-gateway-replies.md).
struct ReplyThread {
    let configuration: ServiceConfiguration
    let topic: String
    let waiters: Waiters
    let health: BusHealth
    let logger: Logger
    private let repliesRead = Counter(label: "gateway_replies_read")

    /// Also how late a time-out may be noticed.
    private static let turn = Duration.milliseconds(50)

    init(configuration: ServiceConfiguration, topic: String, waiters: Waiters, health: BusHealth, logger: Logger) {
        self.configuration = configuration
        self.topic = topic
        self.waiters = waiters
        self.health = health
        self.logger = logger
    }

    func run() {
        var before: ReplyAddress?
        while let (tail, address) = open(after: before) {
            health.tailing(address)
            logger.info(
                "replies are fetched from here on",
                metadata: [
                    "event": "replies.read", "topic": "\(topic)",
                    "partitions": "\(address.partitions.map(String.init).joined(separator: " "))",
                ])
            read(tail)
            health.tailing(nil)
            tail.close()
            if health.isStopping { return }
            logger.notice(
                "the reply topic is gone, or has other partitions than before",
                metadata: ["event": "replies.moved", "topic": "\(topic)"])
            before = address
        }
    }

    /// Until asked to stop, or until the topic has other partitions.
    private func read(_ tail: KafkaTail) {
        let metrics = configuration.messagingMetrics
        // Who else can write to the topic cannot answer for a service.
        let publications = Publications(configuration.keys, topics: configuration.topics)
        while !health.isStopping, !health.hasMoved {
            let records = tail.poll(maxRecords: 1000, timeout: Self.turn)
            if !records.isEmpty {
                repliesRead.increment(by: records.count)
                metrics?.consumed(records)
            }
            for record in records {
                guard let value = record.value, let reply = CommandReply(envelope: value),
                    waiters.wants(reply)
                else { continue }
                if !publications.canCheck(topic) || publications.isGenuine(record) {
                    waiters.resolve(reply)
                } else {
                    logger.warning(
                        "ignored a reply that no service has signed",
                        metadata: ["event": "replies.forged", "ref": "\(reply.commandID)"])
                }
            }
            waiters.sweep(now: .now)
            health.replies(tail.unreadable[topic]?.unreadable(topic))
            health.turned(.tail)
        }
    }

    /// Waits for the broker, makes the topic if it is missing, and goes to its end.
    /// - Returns: `nil` when asked to stop meanwhile.
    private func open(after before: ReplyAddress?) -> (KafkaTail, ReplyAddress)? {
        var backoff = Backoff(from: .milliseconds(100), upTo: .seconds(3))
        while !health.isStopping {
            health.turned(.tail)
            do {
                return try openOnce(after: before)
            } catch {
                health.cannotRead(error)
                waiters.sweep(now: .now)
                Thread.sleep(forTimeInterval: backoff.nextSpread().inSeconds)
            }
        }
        return nil
    }

    private func openOnce(after before: ReplyAddress?) throws -> (KafkaTail, ReplyAddress) {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        let plan = configuration.topicPlan
        try admin.reach(timeout: .seconds(3))
        try admin.ensureTopics([plan.gatewayReplies], creating: plan.create, timeout: .seconds(10))
        guard let count = try admin.existingTopics(timeout: .seconds(10))[topic], count > 0 else {
            throw KafkaError(code: KafkaError.Code.unknownTopic)
        }
        let address = ReplyAddress(among: count, after: before) { key in
            configuration.kafka.partition(of: Array(key.utf8), among: count)
        } newKey: {
            UUID().uuidString.lowercased()
        }
        let partitions = address.partitions.map { TopicPartition(topic: topic, partition: $0) }
        let tail = try KafkaTail(configuration: configuration.kafka, reading: partitions, from: .end, logger: logger)
        return (tail, address)
    }
}
