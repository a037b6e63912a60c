// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging

/// Publishes decided messages in order and tells for each ``Lane`` how far that has come. Confined to the loop's
/// thread.
///
/// Publishing does not block: messages are handed to the producer and their delivery reports are collected later.
/// Nothing that is ours is ever given up. What a topic refuses (it is missing, or forbidden) waits here, topic by
/// topic and in order, and is tried again with growing pauses; the other topics go on. Only a reply to a topic that an
/// outsider named is given up after ``grace``, and becomes a dead letter. When the producer fails, it is made anew
/// with growing pauses, and what is undelivered is sent again in order; a message may then stand twice on its topic,
/// with the same id and content (docs/guarantees.md, 1).
final class Publisher {
    /// What the publisher asks of its owner.
    struct Hooks {
        var makeProducer: (KafkaProducer.Batching) throws -> KafkaProducer
        /// What takes the place of a message that its topic can never accept, or of a dead letter that is too large.
        /// `nil` when nothing smaller is left: then it waits.
        var substitute: (OutboundMessage, KafkaError) -> OutboundMessage?
        /// A reply to an outsider's topic was given up.
        var gaveUp: () -> Void = {}
        var now: () -> ContinuousClock.Instant = { .now }
    }

    /// How long a reply to an outsider's topic is tried.
    static let grace = Duration.seconds(30)
    /// Replies to outsiders' topics that may wait so; beyond, the oldest are given up at once. Otherwise anybody could
    /// fill a lane with replies to topics that do not exist.
    static let maxWaitingReplies = 1000
    /// Messages that may wait in all lanes together before deciding pauses.
    private static let maxPending = 60_000
    /// Messages that wait for longer than this are worth telling.
    private static let patience = Duration.seconds(10)

    private final class Item {
        let token: Int
        let since: ContinuousClock.Instant
        var message: OutboundMessage
        let step: LaneProgress.Step?
        var isAlone = false

        init(token: Int, since: ContinuousClock.Instant, message: OutboundMessage, step: LaneProgress.Step?) {
            self.token = token
            self.since = since
            self.message = message
            self.step = step
        }
    }

    /// A topic that refuses: what waits for it, in order. The first one is tried now and then.
    private struct Refusal {
        var items: [Item] = []
        var error: KafkaError
        var since: ContinuousClock.Instant
        var nextTry: ContinuousClock.Instant
        var backoff: Backoff
        /// The token that is on its way to find out.
        var probe: Int?
    }

    private let hooks: Hooks
    private let logger: Logger
    private var producer: KafkaProducer?
    private var single: KafkaProducer?
    private var lanes: [Lane: LaneProgress] = [:]
    private var moved: Set<Lane> = []
    private var items: [Int: Item] = [:]
    private var nextToken = 1
    /// What the producer had no room for, in order. While there is any, everything new waits behind it.
    private var unsent: [Item] = []
    private var refusals: [String: Refusal] = [:]
    /// The topic that accepted last after it had refused.
    private var accepted: (topic: String, at: ContinuousClock.Instant)?
    private var failure: KafkaError?
    private var restartAt: ContinuousClock.Instant?
    private var restarts = Backoff(from: Publisher.firstPause, upTo: .seconds(30))

    private static let firstPause = Duration.milliseconds(100)
    private static let longestRefusalPause = Duration.seconds(2)

    /// Messages handed over and not yet delivered.
    var pending: Int { items.count }
    /// Of these, the ones that belong to no lane.
    private(set) var unbound = 0

    init(logger: Logger, hooks: Hooks) throws {
        self.logger = logger
        self.hooks = hooks
        producer = try hooks.makeProducer(.ordered)
    }

    // MARK: Handing over

    /// Hands over what was decided in one lane, in order.
    /// - Parameter through: the last offset that is concluded by it.
    func publish(_ messages: [OutboundMessage], in lane: Lane, through: Int64) {
        let step = LaneProgress.Step(lane: lane, through: through, messages: messages, since: hooks.now())
        lanes[lane, default: LaneProgress(handedThrough: through)].append(step)
        if messages.isEmpty { moved.insert(lane) }
        for message in messages { add(message, step) }
    }

    /// Hands over messages that belong to no lane: who needs them asks again.
    func publish(_ messages: [OutboundMessage]) {
        for message in messages { add(message, nil) }
    }

    /// The last offset of the lane that was handed over and is not known to be delivered, or `publishedThrough`, whichever
    /// is later: a partition that comes back to this process is not published again behind its own back.
    func handed(_ lane: Lane, publishedThrough: Int64) -> Int64 {
        guard let progress = lanes[lane] else { return publishedThrough }
        if progress.steps.isEmpty, progress.handedThrough < publishedThrough { lanes[lane] = nil }
        return max(publishedThrough, progress.handedThrough)
    }

    /// Nobody asks for the lane's progress any more. What is on its way is still delivered.
    func forget(_ lane: Lane) {
        if lanes[lane]?.steps.isEmpty == true { lanes[lane] = nil }
    }

    /// Whether a lane has so much to deliver that nothing should be added.
    func isFull(_ lane: Lane) -> Bool { (lanes[lane]?.pending ?? 0) >= laneLimit }

    /// Whether a lane that was full has room again.
    func hasRoom(_ lane: Lane) -> Bool { (lanes[lane]?.pending ?? 0) <= laneLimit / 2 }

    private var laneLimit: Int { max(500, min(5000, Self.maxPending / max(1, lanes.count))) }

    private func add(_ message: OutboundMessage, _ step: LaneProgress.Step?) {
        let item = Item(token: nextToken, since: hooks.now(), message: message, step: step)
        nextToken += 1
        items[item.token] = item
        if step == nil { unbound += 1 }
        send(item)
    }

    // MARK: Reports

    /// Collects delivery reports, waiting at most `timeout` for the first, and tries again what is due.
    /// - Returns: the offset through which everything of a lane is delivered, for each that moved.
    func poll(timeout: Duration) -> [Lane: Int64] {
        if let producer { for report in producer.poll(timeout: timeout) { settle(report) } }
        if let single { for report in single.poll(timeout: .zero) { settle(report) } }
        if failure == nil, let error = producer?.fatalError ?? single?.fatalError { failure = error }
        if failure != nil { restart() }
        if producer != nil {
            sendUnsent()
            tryRefused()
        }
        return progress()
    }

    /// What keeps messages that are ours from their topics; `nil` when nothing does.
    var problem: String? {
        let now = hooks.now()
        if let failure, producer == nil { return "the producer failed and is made anew: \(failure)" }
        let refused = refusals.filter { $0.value.items.contains { !$0.message.mayBeGivenUp } }
        if let (topic, refusal) = refused.min(by: { $0.key < $1.key }) {
            let seconds = (now - refusal.since).components.seconds
            return "topic \(topic) has refused messages for \(seconds) s: \(refusal.error)"
        }
        guard let oldest = lanes.values.compactMap(\.waitingSince).min(), now - oldest > Self.patience else {
            return nil
        }
        return "\(pending) messages wait for delivery, the oldest for \((now - oldest).components.seconds) s"
    }

    func close(timeout: Duration) {
        _ = producer?.close(timeout: timeout)
        _ = single?.close(timeout: .zero)
        producer = nil
        single = nil
    }

    private func progress() -> [Lane: Int64] {
        var through: [Lane: Int64] = [:]
        for lane in moved {
            if let offset = lanes[lane]?.advance() { through[lane] = offset }
        }
        moved = []
        return through
    }

    private func settle(_ report: DeliveryReport) {
        guard let item = items[report.token] else { return }
        if let error = report.error { return failed(item, error) }
        restarts.reset()
        delivered(item)
        accepts(item)
    }

    private func delivered(_ item: Item) {
        items[item.token] = nil
        guard let step = item.step else {
            unbound -= 1
            return
        }
        step.undelivered -= 1
        if !item.message.mayBeGivenUp { step.undeliveredOurs -= 1 }
        lanes[step.lane]?.pending -= 1
        if step.undelivered == 0 { moved.insert(step.lane) }
    }

    // MARK: Sending

    private func send(_ item: Item) {
        if let refusal = refusals[item.message.topic], refusal.probe != item.token {
            refusals[item.message.topic]?.items.append(item)
            return
        }
        // Without a producer it is sent when there is one.
        guard producer != nil, failure == nil else { return }
        if unsent.isEmpty { hand(item) } else { unsent.append(item) }
    }

    private func hand(_ item: Item) {
        let message = item.message
        let record = ProducerRecord(
            topic: message.topic, key: message.key, value: message.value,
            headers: message.headers.map(KafkaHeader.init))
        do {
            if isForSingle(item) {
                if single == nil { single = try hooks.makeProducer(.single) }
                try single?.send(record, token: item.token)
            } else {
                try producer?.send(record, token: item.token)
            }
        } catch let error as KafkaError {
            failed(item, error, wasSent: false)
        } catch {
            failed(item, KafkaError(code: KafkaError.Code.fatal, message: "\(error)"), wasSent: false)
        }
    }

    /// A producer that keeps the order ends itself when a broker refuses one of its messages for good. So whether a topic
    /// accepts again is found out with the other one. What no broker is asked for, because the topic is known to be
    /// missing, ends nobody.
    private func isForSingle(_ item: Item) -> Bool {
        guard let refusal = refusals[item.message.topic], refusal.probe == item.token else { return item.isAlone }
        return item.isAlone || !refusal.error.isUnknownTopic
    }

    private func sendUnsent() {
        let waiting = unsent
        unsent = []
        for (place, item) in waiting.enumerated() {
            hand(item)
            if !unsent.isEmpty {
                unsent += waiting[(place + 1)...]
                return
            }
        }
    }

    private func failed(_ item: Item, _ error: KafkaError, wasSent: Bool = true) {
        switch error.disposition {
        case .retry where !wasSent: unsent.append(item)
        // librdkafka tries without end; a message that it gives back is one that it cannot keep in order any more.
        case .retry, .failed, .fatal: failure = failure ?? error
        case .refused: refuse(item, error)
        case .unacceptable: replace(item, error, wasSent: wasSent)
        }
    }

    /// A broker refuses a whole request for one message in it that is too large, so each is tried alone before that is
    /// believed.
    private func replace(_ item: Item, _ error: KafkaError, wasSent: Bool) {
        if wasSent, !item.isAlone {
            item.isAlone = true
            return refuse(item, error)
        }
        guard let substitute = hooks.substitute(item.message, error) else { return refuse(item, error) }
        logger.error(
            "a message can never be delivered as it is, a dead letter takes its place",
            metadata: ["topic": "\(item.message.topic)", "error": "\(error)"])
        put(substitute, inPlaceOf: item)
    }

    private func put(_ substitute: OutboundMessage, inPlaceOf item: Item) {
        if item.message.mayBeGivenUp, !substitute.mayBeGivenUp { item.step?.undeliveredOurs += 1 }
        item.message = substitute
        item.isAlone = false
        send(item)
    }

    // MARK: Topics that refuse

    private func refuse(_ item: Item, _ error: KafkaError) {
        let (topic, now) = (item.message.topic, hooks.now())
        guard var refusal = refusals[topic] else {
            // A producer may learn a little later than another that the topic accepts again.
            let isNew = accepted.map { $0.topic != topic || now - $0.at > .seconds(10) } ?? true
            logger.log(
                level: isNew ? .warning : .debug, "a topic refuses messages, they wait",
                metadata: ["topic": "\(topic)", "error": "\(error)"])
            var backoff = Backoff(
                from: isNew ? Self.firstPause : Self.firstPause * 5, upTo: Self.longestRefusalPause)
            refusals[topic] = Refusal(
                items: [item], error: error, since: now, nextTry: now + backoff.next(), backoff: backoff)
            return
        }
        refusal.error = error
        if refusal.probe == item.token {
            refusal.probe = nil
            refusal.nextTry = now + refusal.backoff.next()
        } else {
            // What was on its way comes back message by message, and belongs before what came later.
            let before = refusal.items.lastIndex { $0.token < item.token }
            refusal.items.insert(item, at: before.map { $0 + 1 } ?? 0)
        }
        refusals[topic] = refusal
    }

    private func tryRefused() {
        guard !refusals.isEmpty else { return }
        giveUp()
        let now = hooks.now()
        for (topic, refusal) in refusals where refusal.probe == nil && refusal.nextTry <= now {
            guard let first = refusal.items.first else {
                refusals[topic] = nil
                continue
            }
            refusals[topic]?.probe = first.token
            hand(first)
        }
    }

    /// The topic of a delivered message accepts again: what waits for it follows, in order. Those that have to be
    /// tried alone go one after the other.
    private func accepts(_ item: Item) {
        let topic = item.message.topic
        guard var refusal = refusals[topic], refusal.probe == item.token else { return }
        refusal.items.removeAll { $0 === item }
        if let next = refusal.items.first, next.isAlone {
            refusal.probe = next.token
            refusals[topic] = refusal
            return hand(next)
        }
        refusals[topic] = nil
        accepted = (topic, hooks.now())
        logger.info("a topic accepts messages again", metadata: ["topic": "\(topic)"])
        for waiting in refusal.items { send(waiting) }
    }

    private func giveUp() {
        let now = hooks.now()
        let waiting = refusals.values.flatMap(\.items).filter(\.message.mayBeGivenUp).sorted { $0.token < $1.token }
        let surplus = max(0, waiting.count - Self.maxWaitingReplies)
        for (place, item) in waiting.enumerated() where place < surplus || now - item.since > Self.grace {
            giveUp(item)
        }
    }

    private func giveUp(_ item: Item) {
        let topic = item.message.topic
        guard let refusal = refusals[topic], refusal.probe != item.token,
            let substitute = hooks.substitute(item.message, refusal.error)
        else { return }
        refusals[topic]?.items.removeAll { $0 === item }
        if refusals[topic]?.items.isEmpty == true { refusals[topic] = nil }
        hooks.gaveUp()
        logger.error(
            "a reply is given up, the topic that its command names refuses it",
            metadata: ["topic": "\(topic)", "error": "\(refusal.error)"])
        put(substitute, inPlaceOf: item)
    }

    // MARK: A producer that failed

    private func restart() {
        let now = hooks.now()
        if let failed = producer {
            logger.warning(
                "the producer failed, making a new one",
                metadata: ["error": "\(failure.map { "\($0)" } ?? "unknown")", "pause": "\(restarts.pause)"])
            failed.close(timeout: .zero)
            single?.close(timeout: .zero)
            producer = nil
            single = nil
            restartAt = now + restarts.next()
        }
        if let restartAt, now < restartAt { return }
        do {
            producer = try hooks.makeProducer(.ordered)
            failure = nil
        } catch {
            logger.error("no new producer", metadata: ["error": "\(error)"])
            restartAt = now + restarts.next()
            return
        }
        sendAgain()
    }

    /// Reports of the old producer are gone with it: everything undelivered is sent again, in its first order.
    private func sendAgain() {
        unsent = []
        var waiting: Set<Int> = []
        for topic in refusals.keys {
            refusals[topic]?.probe = nil
            waiting.formUnion(refusals[topic]?.items.map(\.token) ?? [])
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
