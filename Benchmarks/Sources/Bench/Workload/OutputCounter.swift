// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Foundation
import Messaging
import WireJSON

/// Reads what the service publishes, from the moment this is made.
final class OutputCounter {
    /// Messages and bytes of values of one topic.
    struct Total {
        var messages = 0
        var bytes = 0
        var meanBytes: Int { messages == 0 ? 0 : bytes / messages }
    }

    private(set) var replies = Total()
    private(set) var events = Total()
    private(set) var deadLetters = Total()
    private(set) var rejected = 0
    private let tail: KafkaTail
    private let broker: Broker

    init(_ broker: Broker) throws {
        self.broker = broker
        let topics = broker.topics
        tail = try broker.tail(
            [topics.replies, topics.events(Broker.service), topics.deadLetters(Broker.service)], from: .end,
            fetchWait: 20)
    }

    /// Reads until that many replies and dead letters were seen.
    /// - Throws: when nothing comes for 30 seconds.
    func wait(replies: Int, deadLetters: Int, whileRunning process: ServiceProcess) throws {
        var lastSeen = ContinuousClock.now
        while self.replies.messages < replies || self.deadLetters.messages < deadLetters {
            let records = tail.poll(maxRecords: 5000, timeout: .milliseconds(20))
            records.forEach(count)
            if !records.isEmpty { lastSeen = .now }
            guard process.isRunning, ContinuousClock.now - lastSeen < .seconds(30) else {
                throw BenchError(
                    "\(self.replies.messages) of \(replies) replies and \(self.deadLetters.messages) of \(deadLetters) "
                        + "dead letters came\n\(process.complaints.suffix(5).joined(separator: "\n"))")
            }
        }
    }

    func close() { tail.close() }

    private func count(_ record: KafkaRecord) {
        let size = record.value?.count ?? 0
        func add(_ total: inout Total) {
            total.messages += 1
            total.bytes += size
        }
        switch record.topicPartition.topic {
        case broker.topics.replies:
            add(&replies)
            // A sample shows whether the workload does what it is meant to do.
            if replies.messages.isMultiple(of: 50), isRejected(record) { rejected += 50 }
        case broker.topics.events(Broker.service): add(&events)
        default: add(&deadLetters)
        }
    }

    private func isRejected(_ record: KafkaRecord) -> Bool {
        guard let value = record.value, case .object(let envelope)? = try? JSONValue(parsing: value),
            case .object(let data)? = envelope["data"]
        else { return true }
        return data["status"] == .string("rejected")
    }
}
