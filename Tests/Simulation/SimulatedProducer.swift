// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// A producer as librdkafka makes it: messages of one partition are written in order, each at most once by one
/// producer, and an acknowledgement that is lost comes later. A producer that ends leaves behind what was on its way:
/// some of it is still written, and nobody hears of it.
final class SimulatedProducer: RecordProducer {
    private struct Message {
        var token: Int
        var record: Record
    }

    private let log: SimulatedLog
    private let replica: Replica
    private let isSingle: Bool
    private var waiting: [TopicPartition: [Message]] = [:]
    /// Written, and not yet acknowledged.
    private var unacknowledged: [TopicPartition: [Message]] = [:]
    private var lastAcknowledgement: [TopicPartition: Int64] = [:]
    private var sending: Set<TopicPartition> = []
    /// Where a message was given back: a producer that keeps the order without gaps writes nothing more there.
    private var stuck: Set<TopicPartition> = []
    private var reports: [DeliveryReport] = []
    private(set) var fatalError: KafkaError?
    private var isClosed = false
    private var outstanding = 0

    init(_ log: SimulatedLog, _ replica: Replica, _ batching: KafkaProducer.Batching) {
        (self.log, self.replica) = (log, replica)
        isSingle = batching == .single
    }

    private var scheduler: Scheduler { log.scheduler }

    func send(_ record: Record, token: Int) throws(KafkaError) {
        if replica.isDead { return }
        if let fatalError { throw fatalError }
        if isClosed { throw KafkaError(code: KafkaError.Code.wrongState) }
        if outstanding >= replica.queueLimit { throw KafkaError(code: KafkaError.Code.queueFull) }
        guard let place = log.place(of: record) else { throw KafkaError(code: KafkaError.Code.unknownTopic) }
        if case .unknown = log.refusals[record.topic], scheduler.chance(50) {
            throw KafkaError(code: KafkaError.Code.unknownTopic)
        }
        outstanding += 1
        waiting[place, default: []].append(Message(token: token, record: record))
        transmit(place)
    }

    func poll(timeout: Duration) -> [DeliveryReport] {
        replica.yield(.other)
        if replica.isDead { return [] }
        if reports.isEmpty, timeout > .zero { replica.wait(timeout) }
        defer { reports = [] }
        outstanding -= reports.count
        return reports
    }

    func close(timeout: Duration) -> [DeliveryReport] {
        if !isClosed { end() }
        return []
    }

    func hasSent(to topic: String) -> Bool { false }

    /// The process is gone.
    func die() { end() }

    /// Something went wrong for good, as it does when a broker does not know the producer any more.
    func fail() {
        if isClosed || fatalError != nil { return }
        end(with: KafkaError(code: KafkaError.Code.fatal, isFatal: true))
    }

    /// A message is given back: nobody knows whether its topic has it.
    func giveBack() {
        guard !isClosed, fatalError == nil,
            let place = waiting.keys.sorted().first(where: { waiting[$0]?.isEmpty == false }),
            let first = waiting[place]?.first
        else { return }
        if scheduler.chance(50) { log.append(first.record, to: place) }
        // What is behind it may not pass it.
        waiting[place] = nil
        if !isSingle { stuck.insert(place) }
        report(first, KafkaError(code: KafkaError.Code.timedOut))
    }

    // MARK: On the way

    private func transmit(_ place: TopicPartition) {
        guard sending.insert(place).inserted else { return }
        scheduler.after(delay) { [self] in deliver(place) }
    }

    private var delay: Int64 { scheduler.chance(90) ? scheduler.number(200...8000) : scheduler.number(8000...600_000) }

    private func deliver(_ place: TopicPartition) {
        sending.remove(place)
        guard let messages = waiting[place], !messages.isEmpty, !stuck.contains(place) else { return }
        if replica.isCutOffFromBroker || log[place]?.isLeaderless == true || log.missing.contains(place.topic) {
            sending.insert(place)
            scheduler.after(200_000) { [self] in deliver(place) }
            return
        }
        let batch = Array(messages.prefix(isSingle ? 1 : Int(scheduler.number(1...10))))
        if let refusal = refusal(of: place.topic, batch) { return refuse(batch, place, refusal) }
        waiting[place]?.removeFirst(batch.count)
        for message in batch { log.append(message.record, to: place) }
        if !isClosed, fatalError == nil { acknowledge(batch, place) }
        if waiting[place]?.isEmpty == false { transmit(place) }
    }

    private func acknowledge(_ batch: [Message], _ place: TopicPartition) {
        unacknowledged[place, default: []] += batch
        // One that is lost is asked for again, and comes late.
        let due = scheduler.now + (scheduler.chance(92) ? delay : scheduler.number(300_000...3_000_000))
        let time = max(due, lastAcknowledgement[place] ?? 0)
        lastAcknowledgement[place] = time
        scheduler.after(time - scheduler.now) { [self] in
            guard !isClosed, fatalError == nil else { return }
            unacknowledged[place]?.removeFirst(batch.count)
            for message in batch { report(message, nil) }
        }
    }

    private func refusal(of topic: String, _ batch: [Message]) -> SimulatedLog.Refusal? {
        switch log.refusals[topic] {
        case .tooLargeTogether where isSingle: nil
        case let refusal: refusal
        }
    }

    private func refuse(_ batch: [Message], _ place: TopicPartition, _ refusal: SimulatedLog.Refusal) {
        // Nobody hears of what a dead producer left behind.
        if isClosed || fatalError != nil {
            waiting[place] = nil
            return
        }
        let error = KafkaError(code: refusal.code)
        if case .unknown = refusal {
            // The client itself knows that there is no such topic.
            let all = waiting.removeValue(forKey: place) ?? []
            return all.forEach { report($0, error) }
        }
        waiting[place]?.removeFirst(batch.count)
        batch.forEach { report($0, error) }
        if isSingle {
            if waiting[place]?.isEmpty == false { transmit(place) }
        } else {
            // What keeps the order ends itself rather than let anything pass.
            end(with: KafkaError(code: KafkaError.Code.fatal, isFatal: true), strays: false)
        }
    }

    private func report(_ message: Message, _ error: KafkaError?) {
        reports.append(
            DeliveryReport(
                token: message.token, error: error,
                topicPartition: TopicPartition(topic: message.record.topic, partition: 0), offset: 0))
        replica.stir()
    }

    /// - Parameter error: what its owner is told; nil when nobody asks any more.
    private func end(with error: KafkaError? = nil, strays: Bool = true) {
        var left: [Message] = []
        for place in Set(waiting.keys).union(unacknowledged.keys).sorted() {
            let messages = waiting[place] ?? []
            left += (unacknowledged[place] ?? []) + messages
            // The beginning of it may have been on the wire.
            let kept = strays && !messages.isEmpty ? Int(scheduler.number(0...Int64(messages.count))) : 0
            waiting[place] = Array(messages.prefix(kept))
        }
        unacknowledged = [:]
        if let error {
            fatalError = error
            left.sorted { $0.token < $1.token }.forEach { report($0, error) }
        } else {
            isClosed = true
        }
    }
}
