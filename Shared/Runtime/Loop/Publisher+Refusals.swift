// SPDX-License-Identifier: Apache-2.0

import Logging
import Messaging

/// What happens to messages that a topic, or the producer itself, does not take.
extension Publisher {
    // MARK: Topics that refuse

    func refuse(_ item: Item, _ error: KafkaError) {
        let (topic, now) = (item.message.topic, hooks.now())
        guard let refusal = refusals[topic] else {
            // A producer may learn a little later than another that the topic accepts again.
            let isNew = accepted.map { $0.topic != topic || now - $0.at > .seconds(10) } ?? true
            logger.log(
                level: isNew ? .warning : .debug, "a topic refuses messages, they wait",
                metadata: ["event": "publishing.refused", "topic": "\(topic)", "error": "\(error)"])
            let backoff = Backoff(
                from: isNew ? Self.firstPause : Self.firstPause * 5, upTo: Self.longestRefusalPause)
            refusals[topic] = RefusingTopic(item, error, since: now, backoff: backoff)
            return
        }
        refusal.error = error
        if refusal.probe == item.token {
            refusal.probe = nil
            refusal.nextTry = now + refusal.backoff.next()
        } else {
            refusal.insert(item)
        }
    }

    func tryRefused() {
        giveUp()
        let now = hooks.now()
        for (topic, refusal) in refusals where refusal.probe == nil && refusal.nextTry <= now {
            guard let first = refusal.items.first else {
                refusals[topic] = nil
                continue
            }
            refusal.probe = first.token
            hand(first)
        }
    }

    /// The topic of a delivered message accepts again: what waits for it follows, in order. Those that have to be
    /// tried alone go one after the other.
    func accepts(_ item: Item) {
        let topic = item.message.topic
        guard let refusal = refusals[topic], refusal.probe == item.token else { return }
        refusal.items.removeAll { $0 === item }
        // As long as one of them has to: it goes with another producer, and would overtake the others.
        if let next = refusal.items.first, refusal.items.contains(where: \.isAlone) {
            refusal.probe = next.token
            return hand(next)
        }
        refusals[topic] = nil
        accepted = (topic, hooks.now())
        logger.info(
            "a topic accepts messages again", metadata: ["event": "publishing.accepted", "topic": "\(topic)"])
        for waiting in refusal.items { send(waiting) }
    }

    private func giveUp() {
        let now = hooks.now()
        guard nextGivingUp.map({ $0 <= now }) ?? true else { return }
        nextGivingUp = now + Self.firstPause
        let waiting = refusals.values.flatMap { $0.items.filter { $0.message.mayBeGivenUp } }
            .sorted { $0.token < $1.token }
        let surplus = max(0, waiting.count - Self.maxWaitingReplies)
        for (place, item) in waiting.enumerated() where place < surplus || now - item.since > Self.grace {
            giveUp(item)
        }
    }

    private func giveUp(_ item: Item) {
        let topic = item.message.topic
        guard let refusal = refusals[topic], refusal.probe != item.token else { return }
        refusal.items.removeAll { $0 === item }
        if refusal.items.isEmpty { refusals[topic] = nil }
        logger.error(
            "gave up a reply: the topic that its command names refuses it",
            metadata: ["event": "publishing.gave-up", "topic": "\(topic)", "error": "\(refusal.error)"])
        giveUp(item, refusal.error)
    }

    // MARK: A producer that failed

    func restart() {
        let now = hooks.now()
        if let failed = producer {
            // The check `publishing` says for how long it goes on.
            logger.log(
                level: failure.pauses.pause == Self.firstPause ? .warning : .debug,
                "the producer failed, making a new one",
                metadata: [
                    "event": "producer.failed", "error": "\(failure.error.map { "\($0)" } ?? "unknown")",
                    "pause": "\(failure.pauses.pause)",
                ])
            failed.close(timeout: .zero)
            single?.close(timeout: .zero)
            producer = nil
            single = nil
            failure.restartAt = now + failure.pauses.next()
        }
        if let restartAt = failure.restartAt, now < restartAt { return }
        do {
            producer = try hooks.makeProducer(.ordered)
            failure.error = nil
            outsiders.producerIsNew()
        } catch {
            logger.error("no new producer", metadata: ["event": "producer.none", "error": "\(error)"])
            failure.restartAt = now + failure.pauses.next()
            return
        }
        sendAgain()
    }

    /// Reports of the old producer are gone with it: everything undelivered is sent again, in its first order.
    private func sendAgain() {
        unsent = []
        var waiting: Set<Int> = []
        for refusal in refusals.values {
            refusal.probe = nil
            waiting.formUnion(refusal.items.map(\.token))
        }
        for item in items.values.filter({ !waiting.contains($0.token) }).sorted(by: { $0.token < $1.token }) {
            send(item)
        }
    }
}

extension KafkaError {
    /// The client knows of no such topic, and asks no broker to take the message.
    var isUnknownTopic: Bool {
        [Code.unknownTopic, Code.unknownPartition, Code.unknownTopicOrPartition].contains(code)
    }
}
