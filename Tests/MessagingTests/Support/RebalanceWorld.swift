// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import MessagingTestKit
import Testing

/// A sender and some members of one group that share their progress, all driven by one thread.
final class RebalanceWorld {
    struct Member {
        let consumer: KafkaConsumer
        let handler: TestHandler
    }

    let producer: KafkaProducer
    var members: [Member] = []
    private(set) var consumed = 0
    private(set) var violations: [String] = []

    private let topic: String
    private let partitions: Int32
    private var next: [TopicPartition: Int64] = [:]
    private var sent: [TopicPartition: Int64] = [:]
    private var round = 0

    init(topic: String, partitions: Int32, producer: KafkaProducer) {
        self.topic = topic
        self.partitions = partitions
        self.producer = producer
        for number in 0..<partitions { next[TopicPartition(topic: topic, partition: number)] = 0 }
    }

    /// Adds a member whose handler answers with the shared progress.
    func member(_ make: (TestHandler) throws -> KafkaConsumer) throws -> Member {
        let handler = TestHandler()
        handler.onAssign = { [unowned self, unowned handler] _ in handler.starts = next }
        let member = Member(consumer: try make(handler), handler: handler)
        members.append(member)
        return member
    }

    func run(until condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try wait(until: condition(), sourceLocation: sourceLocation) {
            try send()
            try consume()
        }
    }

    /// Reads what was sent, to the last message.
    func finish() throws {
        for report in producer.flush(timeout: patience) { count(report) }
        try wait(until: sent == next) { try consume() }
    }

    private func send() throws {
        for number in 0..<partitions {
            try producer.send(Record(topic: topic, value: [1], partition: number), token: 0)
        }
        for report in producer.poll(timeout: .milliseconds(5)) { count(report) }
    }

    private func count(_ report: DeliveryReport) {
        if let error = report.error { violations.append("not delivered: \(error)") }
        sent[report.topicPartition, default: 0] += 1
    }

    private func consume() throws {
        for member in members {
            let records = try member.consumer.poll(maxRecords: 500, timeout: .milliseconds(10))
            let assignment = member.consumer.assignment
            for record in records {
                let partition = record.topicPartition
                if !assignment.contains(partition) { violations.append("\(partition) is not assigned") }
                if record.offset != next[partition] {
                    violations.append("\(partition) gave \(record.offset) instead of \(next[partition] ?? -1)")
                }
                next[partition] = record.offset + 1
            }
            consumed += records.count
            // At any instant of a rebalance, too.
            member.consumer.commit(next.filter { assignment.contains($0.key) }, wait: false)
        }
    }
}
