// SPDX-License-Identifier: Apache-2.0

import Logging
import Messaging

/// Replies to topics that outsiders name: they may name as many as they like.
extension Publisher {
    static let tooManyTopics = KafkaError(
        code: KafkaError.Code.queueFull,
        message: "replies are on their way to \(maxOutsidersTopics) topics that outsiders named, and this is one more")

    /// Whether a reply may go to this topic now; it is counted until ``release(_:)``.
    func admit(_ topic: String) -> Bool {
        if let count = outsidersTopics[topic] {
            outsidersTopics[topic] = count + 1
            return true
        }
        guard outsidersTopics.count < Self.maxOutsidersTopics else { return false }
        outsidersTopics[topic] = 1
        knownOutsidersTopics.insert(topic)
        return true
    }

    func release(_ topic: String) {
        outsidersTopics[topic] = outsidersTopics[topic].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

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
        producer != nil && failure == nil && knownOutsidersTopics.count > Self.maxKnownOutsidersTopics
    }

    /// Replaces the producer when nothing is on its way with it: then nothing is sent twice, and the order stays.
    func renew() {
        let waiting = refusals.values.reduce(unsent.count) { $0 + $1.items.count }
        guard items.count <= waiting, refusals.values.allSatisfy({ $0.probe == nil }) else { return }
        logger.info("the producer knows many topics of outsiders, a new one takes its place")
        producer?.close(timeout: .zero)
        producer = nil
        failure = nil
        restartAt = nil
        knownOutsidersTopics = Set(outsidersTopics.keys)
        do {
            producer = try hooks.makeProducer(.ordered)
        } catch {
            failure = KafkaError(code: KafkaError.Code.fatal, message: "\(error)")
            restartAt = hooks.now() + restarts.next()
        }
    }
}
