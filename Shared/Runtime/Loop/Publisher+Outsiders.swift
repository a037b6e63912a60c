// SPDX-License-Identifier: Apache-2.0

import Logging
import Messaging

/// The topics that outsiders name for replies: they may name as many as they like.
struct OutsidersTopics {
    /// Topics that replies are on their way to at once. A reply to one more is given up at once: the client asks the brokers
    /// about each new topic, and what it knows of all of them delays what goes to any.
    static let most = 64
    /// Topics that one producer gets to know: it forgets none, so a new one takes its place then.
    static let mostKnown = 1000

    /// Replies on their way to each.
    private var inUse: [String: Int] = [:]
    /// Those that the producer knows.
    private var known: Set<String> = []

    /// Whether the producer knows so many that another one has to take its place.
    var areTooMany: Bool { known.count > Self.mostKnown }

    /// Whether a reply may go to this topic now; it is counted until ``release(_:)``.
    mutating func admit(_ topic: String) -> Bool {
        guard let count = inUse[topic] else {
            guard inUse.count < Self.most else { return false }
            inUse[topic] = 1
            known.insert(topic)
            return true
        }
        inUse[topic] = count + 1
        return true
    }

    mutating func release(_ topic: String) {
        inUse[topic] = inUse[topic].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Another producer has taken the place of the one that knew them.
    mutating func producerIsNew() { known = Set(inUse.keys) }
}

extension Publisher {
    static let tooManyTopics = KafkaError(
        code: KafkaError.Code.queueFull,
        message: "replies are on their way to \(OutsidersTopics.most) topics that outsiders named, and this is one more"
    )

    /// Puts a dead letter in the place of a reply that nobody of ours waits for.
    func giveUp(_ item: Item, _ error: KafkaError) {
        hooks.gaveUp()
        // There is always a dead letter for what is not one itself.
        guard let substitute = hooks.substitute(item.message, error) else { return send(item) }
        put(substitute, inPlaceOf: item)
    }

    // MARK: Giving memory back

    /// Whether the producer is to be replaced. What is new waits until everything that it has is told of.
    var isRenewing: Bool {
        producer != nil && failure.error == nil && outsiders.areTooMany
    }

    /// Replaces the producer when nothing is on its way with it: then nothing is sent twice, and the order stays.
    func renew() {
        let waiting = refusals.values.reduce(unsent.count) { $0 + $1.items.count }
        guard items.count <= waiting, refusals.values.allSatisfy({ $0.probe == nil }) else { return }
        logger.info(
            "the producer knows many topics of outsiders, a new one takes its place",
            metadata: ["event": "producer.renewed"])
        producer?.close(timeout: .zero)
        producer = nil
        failure.error = nil
        failure.restartAt = nil
        outsiders.producerIsNew()
        do {
            producer = try hooks.makeProducer(.ordered)
        } catch {
            failure.error = KafkaError(code: KafkaError.Code.fatal, message: "\(error)")
            failure.restartAt = hooks.now() + failure.pauses.next()
        }
    }
}
