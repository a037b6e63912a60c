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
        var makeProducer: (KafkaProducer.Batching) throws -> any RecordProducer
        /// What takes the place of a message that its topic can never accept, or of a dead letter that is too large.
        /// `nil` when nothing smaller is left: then it waits.
        var substitute: (OutboxRecord, KafkaError) -> OutboxRecord?
        /// A reply to an outsider's topic was given up.
        var gaveUp: () -> Void = {}
        /// What Kafka has taken or refused; `nil` where nobody counts it.
        var reported: (([SendAttempt]) -> Void)?
        var now: () -> ContinuousClock.Instant = { .now }
        /// Lets time pass while there is no producer that could report anything.
        var pause: (Duration) -> Void = { _ in }
    }

    /// How long a reply to an outsider's topic is tried.
    static let grace = Duration.seconds(30)
    /// Replies to outsiders' topics that may wait so; beyond, the oldest are given up at once. Otherwise anybody could
    /// fill a lane with replies to topics that do not exist.
    static let maxWaitingReplies = 1000
    /// Messages that wait for longer than this are worth telling.
    private static let patience = Duration.seconds(10)

    final class Item {
        let token: Int
        let since: ContinuousClock.Instant
        var message: OutboxRecord
        let step: LaneProgress.Step?
        var isAlone = false

        init(token: Int, since: ContinuousClock.Instant, message: OutboxRecord, step: LaneProgress.Step?) {
            self.token = token
            self.since = since
            self.message = message
            self.step = step
        }
    }

    /// What the producer failed with, and when it is made anew.
    struct Failure {
        /// `nil` while it works.
        var error: KafkaError?
        var restartAt: ContinuousClock.Instant?
        var pauses = Backoff(from: Publisher.firstPause, upTo: .seconds(30))
    }

    /// A topic that refuses: what waits for it, in order. The first one is tried now and then.
    final class RefusingTopic {
        var items: [Item]
        var error: KafkaError
        let since: ContinuousClock.Instant
        var nextTry: ContinuousClock.Instant
        var backoff: Backoff
        /// The token that is on its way to find out.
        var probe: Int?

        init(_ item: Item, _ error: KafkaError, since now: ContinuousClock.Instant, backoff: Backoff) {
            items = [item]
            self.error = error
            since = now
            self.backoff = backoff
            nextTry = now + self.backoff.next()
        }

        /// Where it belongs: what was on its way comes back message by message, and some of it only when there is a new
        /// producer, behind what was decided meanwhile.
        func insert(_ item: Item) {
            let before = items.lastIndex { $0.token < item.token }
            items.insert(item, at: before.map { $0 + 1 } ?? 0)
        }
    }

    let hooks: Hooks
    let logger: Logger
    var producer: (any RecordProducer)?
    var single: (any RecordProducer)?
    private var lanes = Lanes()
    var items: [Int: Item] = [:]
    private var nextToken = 1
    /// What the producer had no room for, in order. While there is any, everything new waits behind it.
    var unsent: [Item] = []
    var refusals: [String: RefusingTopic] = [:]
    /// When the replies that wait are looked through next: all of them in every turn would cost more than the turn.
    var nextGivingUp: ContinuousClock.Instant?
    /// The topic that accepted last after it had refused.
    var accepted: (topic: String, at: ContinuousClock.Instant)?
    var failure = Failure()
    var outsiders = OutsidersTopics()

    static let firstPause = Duration.milliseconds(100)
    static let longestRefusalPause = Duration.seconds(2)

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
    func publish(_ messages: [OutboxRecord], in lane: Lane, through: Int64) {
        let step = LaneProgress.Step(lane: lane, through: through, messages: messages, since: hooks.now())
        lanes.append(step)
        if !messages.isEmpty { collect(timeout: .zero) }
        for message in messages { add(message, step) }
    }

    /// Hands over messages that belong to no lane: who needs them asks again.
    func publish(_ messages: [OutboxRecord]) {
        if !messages.isEmpty { collect(timeout: .zero) }
        for message in messages { add(message, nil) }
    }

    /// The last offset of the lane that was handed over and is not known to be delivered, or `publishedThrough`, whichever
    /// is later: a partition that comes back to this process is not published again behind its own back.
    func handed(_ lane: Lane, publishedThrough: Int64) -> Int64 {
        lanes.handed(lane, publishedThrough: publishedThrough)
    }

    /// Nobody asks for the lane's progress any more. What is on its way is still delivered.
    func forget(_ lane: Lane) { lanes.forget(lane) }

    /// Whether something of the lane is not delivered yet.
    func isDelivering(_ lane: Lane) -> Bool { lanes.pending(lane) > 0 }

    /// Whether a lane has so much to deliver that nothing should be added.
    func isFull(_ lane: Lane) -> Bool { lanes.pending(lane) >= lanes.limit }

    /// Whether a lane that was full has room again.
    func hasRoom(_ lane: Lane) -> Bool { lanes.pending(lane) <= lanes.limit / 2 }

    private func add(_ message: OutboxRecord, _ step: LaneProgress.Step?) {
        let item = Item(token: nextToken, since: hooks.now(), message: message, step: step)
        nextToken += 1
        items[item.token] = item
        if step == nil { unbound += 1 }
        guard message.mayBeGivenUp else { return send(item) }
        guard outsiders.admit(message.topic) else { return giveUp(item, Self.tooManyTopics) }
        send(item)
    }

    // MARK: Reports

    /// Collects delivery reports, waiting at most `timeout` for the first, and tries again what is due.
    /// - Returns: the offset through which everything of a lane is delivered, for each that moved.
    func poll(timeout: Duration) -> [Lane: Int64] {
        collect(timeout: timeout)
        if failure.error != nil { restart() }
        if isRenewing { renew() }
        if producer != nil, !isRenewing {
            sendUnsent()
            if !refusals.isEmpty { tryRefused() }
        }
        return lanes.advance()
    }

    /// What the client gave back waits from now on. So this comes before anything new is handed over: the topic may take it
    /// again by then, and would have the new before the old.
    private func collect(timeout: Duration) {
        if let producer {
            settle(producer.poll(timeout: timeout))
        } else if timeout > .zero {
            hooks.pause(timeout)
        }
        if let single { settle(single.poll(timeout: .zero)) }
        failure.error = failure.error ?? producer?.fatalError ?? single?.fatalError
    }

    /// Whether it was written to the topic, not too long ago.
    func hasWritten(to topic: String) -> Bool { producer?.hasSent(to: topic) ?? false }

    /// What keeps messages that are ours from their topics; `nil` when nothing does.
    var problem: String? {
        let now = hooks.now()
        if let error = failure.error, producer == nil { return "the producer failed and is made anew: \(error)" }
        let refused = refusals.filter { $0.value.items.contains { !$0.message.mayBeGivenUp } }
        if let (topic, refusal) = refused.min(by: { $0.key < $1.key }) {
            let seconds = (now - refusal.since).components.seconds
            return "topic \(topic) has refused messages for \(seconds) s: \(refusal.error.unwritable(topic))"
        }
        guard let oldest = lanes.waitingSince, now - oldest > Self.patience else { return nil }
        return "\(pending) messages wait for delivery, the oldest for \((now - oldest).components.seconds) s"
    }

    func close(timeout: Duration) {
        _ = producer?.close(timeout: timeout)
        _ = single?.close(timeout: .zero)
        producer = nil
        single = nil
    }

    private func settle(_ reports: [DeliveryReport]) {
        if let reported = hooks.reported, !reports.isEmpty {
            let now = hooks.now()
            reported(
                reports.compactMap { report in
                    items[report.token].map { item in
                        // Those of a batch were handed over together.
                        let since = item.step?.since ?? item.since
                        return SendAttempt(topic: item.message.topic, report.error, took: since.duration(to: now))
                    }
                })
        }
        for report in reports { delivered(report) }
    }

    private func delivered(_ report: DeliveryReport) {
        guard let item = items[report.token] else { return }
        if let error = report.error { return failed(item, error) }
        failure.pauses.reset()
        delivered(item)
        if !refusals.isEmpty { accepts(item) }
    }

    private func delivered(_ item: Item) {
        items[item.token] = nil
        if item.message.mayBeGivenUp { outsiders.release(item.message.topic) }
        guard let step = item.step else {
            unbound -= 1
            return
        }
        lanes.delivered(step, isOurs: !item.message.mayBeGivenUp)
    }

    // MARK: Sending

    func send(_ item: Item) {
        if let refusal = refusals[item.message.topic], refusal.probe != item.token {
            return refusal.insert(item)
        }
        // Without a producer it is sent when there is one.
        guard producer != nil, failure.error == nil else { return }
        if unsent.isEmpty, !isRenewing { hand(item) } else { unsent.append(item) }
    }

    func hand(_ item: Item) {
        let record = item.message.record
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
        // Each as if it were new: its topic may refuse by now what came before it.
        for item in waiting { send(item) }
    }

    private func failed(_ item: Item, _ error: KafkaError, wasSent: Bool = true) {
        switch error.disposition {
        case .retry where !wasSent: unsent.append(item)
        // librdkafka tries without end; a message that it gives back is one that it cannot keep in order any more.
        case .retry, .failed, .fatal: failure.error = failure.error ?? error
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
            "a message cannot be delivered as it is; a dead letter takes its place",
            metadata: ["event": "publishing.undeliverable", "topic": "\(item.message.topic)", "error": "\(error)"])
        put(substitute, inPlaceOf: item)
    }

    func put(_ substitute: OutboxRecord, inPlaceOf item: Item) {
        if item.message.mayBeGivenUp, !substitute.mayBeGivenUp {
            item.step?.undeliveredOurs += 1
            outsiders.release(item.message.topic)
        }
        item.message = substitute
        item.isAlone = false
        send(item)
    }
}
