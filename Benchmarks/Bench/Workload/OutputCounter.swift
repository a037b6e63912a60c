// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Runtime

/// Reads what the services publish, from the moment this is made, and keeps it. While the clock runs it only counts; what
/// the messages say is looked at afterwards, so that it takes no time from what is measured.
final class OutputCounter {
    /// Without the pending ones.
    private(set) var replies: [KafkaRecord] = []
    private(set) var pending: [KafkaRecord] = []
    private(set) var events: [KafkaRecord] = []
    private(set) var deadLetters: [KafkaRecord] = []
    private let tail: KafkaTail
    private let topics: Topics
    private let eventTopics: Set<String>

    init(_ stage: Stage) throws {
        topics = stage.broker.topics
        eventTopics = Set(stage.services.map(topics.events))
        let names = [topics.replies] + eventTopics + stage.services.map(topics.deadLetters)
        tail = try stage.broker.tail(names, from: .end)
    }

    /// Reads until that many replies and dead letters were seen.
    /// - Throws: when nothing comes for a minute.
    func wait(replies: Int, deadLetters: Int = 0, whileRunning services: ServiceGroup) throws {
        var lastSeen = ContinuousClock.now
        while self.replies.count < replies || self.deadLetters.count < deadLetters {
            if read() { lastSeen = .now }
            guard services.isRunning, ContinuousClock.now - lastSeen < .seconds(60) else {
                throw BenchError(
                    "\(self.replies.count) of \(replies) replies and \(self.deadLetters.count) of \(deadLetters) "
                        + "dead letters came\n\(services.complaints.suffix(5).joined(separator: "\n"))")
            }
        }
    }

    /// Reads for a while longer: what was done twice is answered twice, and events come behind replies.
    func linger(_ time: Duration = .milliseconds(500)) {
        let end = ContinuousClock.now + time
        while ContinuousClock.now < end { read() }
    }

    func close() { tail.close() }

    /// - Returns: whether there was something.
    @discardableResult
    private func read() -> Bool {
        let records = tail.poll(maxRecords: 5000, timeout: .milliseconds(20))
        for record in records {
            let topic = record.topicPartition.topic
            if eventTopics.contains(topic) {
                events.append(record)
            } else if topic != topics.replies {
                deadLetters.append(record)
            } else if Answer.isPending(record) {
                pending.append(record)
            } else {
                replies.append(record)
            }
        }
        return !records.isEmpty
    }

    // MARK: Afterwards

    /// Replies by what they say.
    var statuses: [String: Int] {
        replies.reduce(into: [:]) { $0[Answer($1)?.status ?? "unreadable", default: 0] += 1 }
    }

    /// The numbers of the commands that were answered.
    var answered: Set<Int> { Set(replies.lazy.compactMap(Answer.number)) }

    /// How many replies and events were signed by nobody who may.
    func forgeries(_ stage: Stage) -> Int {
        let publications = Publications(stage.keys, topics: topics)
        return (replies + pending + events).count { !publications.isGenuine($0) }
    }
}

extension [KafkaRecord] {
    var meanBytes: Int { isEmpty ? 0 : reduce(0) { $0 + ($1.value?.count ?? 0) } / count }
}
