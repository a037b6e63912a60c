// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import WireJSON

/// Reads what the services publish, from the moment this is made.
final class OutputCounter {
    /// Messages and bytes of values of one topic.
    struct Total {
        var messages = 0
        var bytes = 0
        var meanBytes: Int { messages == 0 ? 0 : bytes / messages }
    }

    /// Without the pending ones.
    private(set) var replies = Total()
    private(set) var pending = 0
    private(set) var events = Total()
    private(set) var deadLetters = Total()
    /// What every fiftieth reply says.
    private(set) var statuses: [String: Int] = [:]
    /// The numbers of the commands that were answered.
    private(set) var answered = Set<Int>()
    private let tail: KafkaTail
    private let topics: Topics
    private let eventTopics: Set<String>

    init(_ stage: Stage) throws {
        topics = stage.broker.topics
        eventTopics = Set(stage.services.map(topics.events))
        let names = [topics.replies] + eventTopics + stage.services.map(topics.deadLetters)
        tail = try stage.broker.tail(names, from: .end, fetchWait: 20)
    }

    /// Reads until that many replies and dead letters were seen.
    /// - Parameter look: is shown every reply that ends a command.
    /// - Throws: when nothing comes for 30 seconds.
    func wait(
        replies: Int, deadLetters: Int = 0, whileRunning services: ServiceGroup, look: (KafkaRecord) -> Void = { _ in }
    ) throws {
        var lastSeen = ContinuousClock.now
        while self.replies.messages < replies || self.deadLetters.messages < deadLetters {
            let records = tail.poll(maxRecords: 5000, timeout: .milliseconds(20))
            for record in records { count(record, look) }
            if !records.isEmpty { lastSeen = .now }
            guard services.isRunning, ContinuousClock.now - lastSeen < .seconds(30) else {
                throw BenchError(
                    "\(self.replies.messages) of \(replies) replies and \(self.deadLetters.messages) of \(deadLetters) "
                        + "dead letters came\n\(services.complaints.suffix(5).joined(separator: "\n"))")
            }
        }
    }

    func close() { tail.close() }

    private func count(_ record: KafkaRecord, _ look: (KafkaRecord) -> Void) {
        let size = record.value?.count ?? 0
        func add(_ total: inout Total) {
            total.messages += 1
            total.bytes += size
        }
        let topic = record.topicPartition.topic
        if eventTopics.contains(topic) {
            add(&events)
        } else if topic != topics.replies {
            add(&deadLetters)
        } else if Answer.isPending(record) {
            pending += 1
        } else {
            add(&replies)
            if let number = Answer.number(record) { answered.insert(number) }
            if replies.messages % 50 == 1 { statuses[Answer(record)?.status ?? "unreadable", default: 0] += 1 }
            look(record)
        }
    }
}
