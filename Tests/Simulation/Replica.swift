// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Logging
import Runtime
import Storage
import TestKit

/// A process of a service: the real loop and decider, in a world that is made up. Every call to that world is a point
/// where others may run, and where this one may crash.
final class Replica: CustomStringConvertible {
    let name: String
    unowned let world: World
    let signals = LoopSignals()
    let health = LoopHealth()
    let watch: BrokerWatch
    private(set) var actor: Scheduler.Actor?
    private var consumers: [SimulatedConsumer] = []
    private var producers: [SimulatedProducer] = []
    /// Nothing that it does has an effect any more; it runs to its end by itself.
    private(set) var isDead = false
    /// How far its clock is ahead, in milliseconds.
    var skew: Int64 = 0
    var frozenUntil: Int64 = 0
    var cutOffFromBrokerUntil: Int64 = 0
    var cutOffFromStoreUntil: Int64 = 0
    /// Calls that it makes before it crashes.
    var callsToLive: Int?
    var storeFaults: [StoreFault] = []
    var queueLimit = Int.max
    private var isWaiting = false
    /// To stop.
    private(set) var isAsked = false

    init(_ name: String, _ world: World) {
        self.name = name
        self.world = world
        watch = BrokerWatch(
            cluster: world.log.cluster, partitions: world.log.topics.mapValues(\.count))
    }

    var description: String { name }
    private var scheduler: Scheduler { world.scheduler }
    var isOver: Bool { actor?.isOver ?? false }
    var isCutOffFromBroker: Bool { scheduler.now < cutOffFromBrokerUntil }
    var isCutOffFromStore: Bool { scheduler.now < cutOffFromStoreUntil }

    func start<Service: CommandService>(
        _ service: Service, _ configuration: ServiceConfiguration, _ store: SimulatedStore, _ apps: AppsSource
    ) {
        actor = scheduler.start(name) { [self] in
            let logger = world.logger(of: self)
            let connection = SimulatedConnection(store, self)
            let start = LoopStart(
                configuration: configuration, health: health, signals: signals, logger: logger, database: connection,
                apps: apps, watch: watch, seams: seams(), trial: Trial())
            do {
                let loop = try ServiceLoop(service: service, start: start)
                while try loop.step() {}
            } catch {
                if !isDead { world.violations.append("ENDED: \(name): \(error)") }
            }
            producers.forEach { $0.die() }
            consumers.forEach { $0.die() }
            (producers, consumers) = ([], [])
        }
        askForBounds()
    }

    private func seams() -> LoopSeams {
        LoopSeams(
            makeConsumer: { [self] source, handler in
                let consumer = SimulatedConsumer(world.group(source.group, source.topic), world.log, self, handler)
                consumers.append(consumer)
                if isDead { consumer.die() }
                return consumer
            },
            waitForRecords: { [self] in if !consumers.contains(where: \.hasNews) { wait($0) } },
            makeProducer: { [self] batching in
                let producer = SimulatedProducer(world.log, self, batching)
                producers.append(producer)
                if isDead { producer.die() }
                return producer
            },
            clock: LoopClock(
                now: { [scheduler] in World.start + .microseconds(scheduler.now) },
                time: { [self] in Timestamp(milliseconds: world.log.wall + skew) },
                sleep: { [self] in wait($0) }, pause: { [self] in wait($0) },
                random: SplitMix64(seed: scheduler.random.next())))
    }

    /// The thread that watches the brokers: sees where logs begin and end, and tells it a little later.
    private func askForBounds() {
        scheduler.after(100_000) { [self] in
            guard !isDead, !isOver else { return }
            let places = watch.unanswered
            if !isCutOffFromBroker {
                watch.tell(cluster: world.log.cluster, partitions: [:])
                var bounds: [TopicPartition: BrokerWatch.Bounds] = [:]
                for place in places {
                    guard !world.log.missing.contains(place.topic), let partition = world.log[place],
                        !partition.isLeaderless
                    else { continue }
                    bounds[place] = (partition.start, partition.end)
                }
                scheduler.after(scheduler.number(0...300_000)) { [self] in watch.tell(bounds) }
            }
            askForBounds()
        }
    }

    // MARK: Yielding

    enum Call { case poll, store, committed, other }

    /// A call to the world: it takes its time, mostly very little.
    func yield(_ call: Call) {
        if isDead { return }
        if let left = callsToLive {
            callsToLive = left - 1
            if left <= 0 { return crash() }
        }
        let cost: Int64 =
            switch scheduler.number(0...99) {
            case 0..<60: 5
            case 60..<90: scheduler.number(10...1000)
            case 90..<99: scheduler.number(1000...10_000)
            default: scheduler.number(10_000...200_000)
            }
        scheduler.pause(cost)
        thaw()
    }

    /// Sleeps, unless it is woken.
    func wait(_ duration: Duration) {
        if isDead { return }
        // Who is asked to stop sleeps no more; but time passes, or a loop that waits for an instant never gets there.
        if isAsked { return scheduler.pause(1000) }
        isWaiting = true
        scheduler.pause(max(1, duration.inMicroseconds))
        isWaiting = false
        thaw()
    }

    private func thaw() {
        while !isDead, frozenUntil > scheduler.now { scheduler.pause(frozenUntil - scheduler.now) }
    }

    /// There is something to poll.
    func stir() {
        guard isWaiting else { return }
        scheduler.after(500) { [self] in
            if isWaiting, frozenUntil <= scheduler.now, let actor { scheduler.wake(actor) }
        }
    }

    func takeStoreFault() -> StoreFault? {
        guard !storeFaults.isEmpty else { return nil }
        return storeFaults.removeFirst()
    }

    // MARK: What befalls it

    func crash() {
        if isDead || isOver { return }
        world.note("\(name) crashes")
        isDead = true
        signals.stopAtOnce()
        consumers.forEach { $0.die() }
        producers.forEach { $0.die() }
        if let actor { scheduler.wake(actor) }
    }

    func stop() {
        world.note("\(name) is asked to stop")
        isAsked = true
        signals.stop()
        stir()
    }

    func evict(toldAfter delay: Int64) { consumers.forEach { $0.evict(toldAfter: delay) } }
    func breakConsumer() { consumers.filter { _ in scheduler.chance(60) }.forEach { $0.isBroken = true } }
    func failProducer() { producers.last?.fail() }
    func giveBack() { producers.last?.giveBack() }
    func reads(_ topic: String) -> Bool { consumers.contains { $0.topic == topic } }
    func noticeMissing(_ topic: String) {
        for consumer in consumers where consumer.topic == topic { consumer.noticeMissingTopic() }
    }

    func heal() {
        frozenUntil = 0
        cutOffFromBrokerUntil = 0
        cutOffFromStoreUntil = 0
        callsToLive = nil
        storeFaults = []
        queueLimit = .max
        if isWaiting || !isDead, let actor { scheduler.wake(actor) }
    }
}
