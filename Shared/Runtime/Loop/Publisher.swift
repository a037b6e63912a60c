// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Logging
import Messaging

/// Publishes batches of messages in order and tells how far publishing has come. Confined to the loop's thread.
///
/// Publishing does not block: a batch is handed to the producer and its delivery reports are collected later, so the
/// next batch can be decided meanwhile. The messages stay here until they are delivered. When the producer fails for
/// good it is made anew and everything not yet delivered is sent again, in order; a message may then stand twice on
/// its topic, with the same id and content (guarantee 1).
final class Publisher {
    private struct Batch {
        var number: Int
        var messages: [OutboundMessage]
        var undelivered: Int
        /// The last offset of each partition that this batch concludes.
        var through: [TopicPartition: Int64]
    }

    private let makeProducer: () throws -> KafkaProducer
    /// What to send when a message can never be delivered to its topic.
    private let undeliverable: (OutboundMessage, KafkaError) -> OutboundMessage?
    private let logger: Logger
    private var producer: KafkaProducer?
    private var batches: [Batch] = []
    private var nextNumber = 0
    /// Tokens that the producer would not take for the moment, in order. While there are any, everything new waits
    /// behind them, so that the order holds.
    private var unsent: [Int] = []

    /// Messages handed over and not yet delivered.
    private(set) var pending = 0

    init(
        logger: Logger, undeliverable: @escaping (OutboundMessage, KafkaError) -> OutboundMessage?,
        makeProducer: @escaping () throws -> KafkaProducer
    ) throws {
        self.logger = logger
        self.undeliverable = undeliverable
        self.makeProducer = makeProducer
        producer = try makeProducer()
    }

    /// Hands a batch over.
    /// - Parameter through: the last offset of each partition that is concluded by it.
    func publish(_ messages: [OutboundMessage], through: [TopicPartition: Int64]) {
        let batch = Batch(number: nextNumber, messages: messages, undelivered: messages.count, through: through)
        nextNumber += 1
        batches.append(batch)
        pending += messages.count
        send(batch)
    }

    /// Collects delivery reports.
    /// - Returns: the offset through which everything of a partition is published, for each that moved.
    func poll(timeout: Duration) -> [TopicPartition: Int64] {
        guard let producer else {
            recreateProducer()
            return [:]
        }
        for report in producer.poll(timeout: timeout) { settle(report) }
        sendUnsent()
        if producer.fatalError != nil { recreateProducer() }
        var moved: [TopicPartition: Int64] = [:]
        while let first = batches.first, first.undelivered == 0 {
            moved.merge(first.through) { _, later in later }
            batches.removeFirst()
        }
        return moved
    }

    /// Deliveries that come later say nothing any more about partitions that are no longer owned.
    func forgetProgress(of partitions: Set<TopicPartition>) {
        for index in batches.indices {
            batches[index].through = batches[index].through.filter { !partitions.contains($0.key) }
        }
    }

    func close(timeout: Duration) {
        _ = producer?.close(timeout: timeout)
        producer = nil
    }

    // MARK: Tokens: batch number and the message's place in it

    private static let placeBits = 24
    private static let placeMask = 1 << placeBits - 1

    private func send(_ batch: Batch) {
        for (place, message) in batch.messages.enumerated() {
            let token = batch.number << Self.placeBits | place
            if unsent.isEmpty { send(message, token: token) } else { unsent.append(token) }
        }
    }

    private func sendUnsent() {
        let waiting = unsent
        unsent = []
        for (place, token) in waiting.enumerated() {
            guard let index = index(ofBatch: token >> Self.placeBits) else { continue }
            send(batches[index].messages[token & Self.placeMask], token: token)
            if !unsent.isEmpty {
                unsent += waiting[(place + 1)...]
                return
            }
        }
    }

    private func send(_ message: OutboundMessage, token: Int) {
        guard let producer else { return }
        let record = ProducerRecord(
            topic: message.topic, key: message.key, value: message.value,
            headers: message.headers.map { KafkaHeader(name: $0.name, value: $0.value) })
        do {
            try producer.send(record, token: token)
        } catch {
            failed(token, error)
        }
    }

    private func settle(_ report: DeliveryReport) {
        if let error = report.error { return failed(report.token, error) }
        delivered(report.token)
    }

    private func delivered(_ token: Int) {
        guard let index = index(ofBatch: token >> Self.placeBits) else { return }
        batches[index].undelivered -= 1
        pending -= 1
    }

    private func failed(_ token: Int, _ error: KafkaError) {
        guard let index = index(ofBatch: token >> Self.placeBits) else { return }
        let place = token & Self.placeMask
        let message = batches[index].messages[place]
        switch error.disposition {
        case .fatal:
            break  // poll makes a new producer and sends everything again
        case .retry, .failed:
            unsent.append(token)
        case .refused, .unacceptable:
            logger.error(
                "a message cannot be delivered to its topic",
                metadata: ["topic": "\(message.topic)", "error": "\(error)"])
            if let substitute = undeliverable(message, error) {
                batches[index].messages[place] = substitute
                send(substitute, token: token)
            } else {
                delivered(token)
            }
        }
    }

    private func index(ofBatch number: Int) -> Int? {
        guard let first = batches.first?.number, number >= first, number - first < batches.count else { return nil }
        return number - first
    }

    private func recreateProducer() {
        if let producer {
            let error = producer.fatalError.map { "\($0)" } ?? "unknown"
            logger.warning("the producer failed for good, making a new one", metadata: ["error": "\(error)"])
            producer.close(timeout: .zero)
        }
        producer = nil
        do {
            producer = try makeProducer()
        } catch {
            logger.error("no new producer", metadata: ["error": "\(error)"])
            return
        }
        // Reports of the old producer are gone with it; tokens of the new one count from scratch.
        unsent = []
        for index in batches.indices {
            pending += batches[index].messages.count - batches[index].undelivered
            batches[index].undelivered = batches[index].messages.count
            send(batches[index])
        }
    }
}
