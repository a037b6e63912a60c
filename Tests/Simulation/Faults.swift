// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit

/// Something that goes wrong. What and when are planned; whom it hits, and for how long, comes from its own seed, so
/// that one can be left out without changing the others.
struct Fault {
    enum Kind: String, CaseIterable {
        // A process.
        case crash, crashSoon, stop, freeze, skew
        // Its group.
        case rebalance, evict, breakConsumer
        // Its connections.
        case cutOffFromBroker, cutOffFromStore
        // The store.
        case storeDown, readOnly, lostBefore, lostAnswer, conflict, copyStore, putStoreBack
        // Its producer, and what topics take.
        case failProducer, giveBack, fullQueue, refuse
        // The log.
        case leaderless, retention, truncate, recreate, newCluster
    }

    var time: Int64
    var kind: Kind
    var seed: UInt64
}

extension Fault {
    func happen(in world: World) {
        var random = SplitMix64(seed: seed)
        func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
        let second: Int64 = 1_000_000
        let now = world.scheduler.now
        guard let replica = world.replicas.randomElement(using: &random),
            let deployment = world.deployments.randomElement(using: &random)
        else { return }
        func later(_ delay: Int64, _ event: @escaping () -> Void) { world.scheduler.after(delay, event) }
        let target: String
        switch kind {
        case .crash, .crashSoon, .stop, .freeze, .skew, .evict, .breakConsumer, .cutOffFromBroker, .cutOffFromStore,
            .lostBefore, .lostAnswer, .conflict, .failProducer, .giveBack, .fullQueue:
            target = replica.name
        case .storeDown, .readOnly, .copyStore, .putStoreBack: target = "the store of \(deployment.service.rawValue)"
        default: target = ""
        }
        world.note("FAULT \(kind.rawValue) \(target)")
        switch kind {
        case .crash: replica.crash()
        case .crashSoon: replica.callsToLive = Int(number(0...60))
        case .stop: replica.stop()
        case .freeze:
            replica.frozenUntil = now + number(second / 2...12 * second)
            if number(0...9) < 6 {
                later(number(0...2 * second)) { replica.evict(toldAfter: 0) }
            }
        case .skew: replica.skew = number(-120_000...120_000)
        case .rebalance: world.allGroups.forEach { $0.rebalance(shuffling: true) }
        case .evict: replica.evict(toldAfter: number(0...4 * second))
        case .breakConsumer: replica.breakConsumer()
        case .cutOffFromBroker:
            replica.cutOffFromBrokerUntil = now + number(second / 5...8 * second)
            if number(0...9) < 5 { later(2 * second) { replica.evict(toldAfter: 3 * second) } }
        case .cutOffFromStore: replica.cutOffFromStoreUntil = now + number(second / 5...5 * second)
        case .storeDown:
            deployment.store.isDown = true
            later(number(second / 10...4 * second)) { deployment.store.isDown = false }
        case .readOnly:
            deployment.store.isReadOnly = true
            later(number(second / 10...3 * second)) { deployment.store.isReadOnly = false }
        case .lostBefore: replica.storeFaults += Array(repeating: .lostBefore, count: Int(number(1...2)))
        case .lostAnswer: replica.storeFaults.append(.lostAnswer)
        case .conflict: replica.storeFaults += Array(repeating: .conflict, count: Int(number(1...5)))
        case .copyStore: deployment.store.takeCopy()
        case .putStoreBack:
            do {
                if try deployment.store.putBack() { world.note("the store is an earlier copy now") }
            } catch {
                world.violations.append("the store cannot be put back: \(error)")
            }
        case .failProducer: replica.failProducer()
        case .giveBack: replica.giveBack()
        case .fullQueue:
            replica.queueLimit = Int(number(1...4))
            later(number(second / 2...5 * second)) { replica.queueLimit = .max }
        case .refuse:
            let service = deployment.service.rawValue
            let topics = Topics()
            let topic = [topics.replies, topics.events(service), topics.deadLetters(service)]
                .randomElement(using: &random)
            let refusal = SimulatedLog.Refusal.allCases.randomElement(using: &random)
            guard let topic, let refusal else { return }
            world.note("\(topic) refuses: \(refusal)")
            world.log.refusals[topic] = refusal
            later(number(second / 5...6 * second)) { world.log.refusals[topic] = nil }
        case .leaderless:
            let partition = Self.anyPartition(in: world, &random, inputsOnly: false)
            world.note("\(partition.place) has no leader")
            partition.isLeaderless = true
            later(number(second / 5...5 * second)) { partition.isLeaderless = false }
        case .retention:
            let partition = Self.anyPartition(in: world, &random)
            partition.removeFirst(Int(number(1...10)))
            world.note("\(partition.place) begins at \(partition.start)")
        case .truncate:
            let partition = Self.anyPartition(in: world, &random)
            partition.removeLast(Int(number(1...4)))
            world.note("\(partition.place) ends at \(partition.end)")
        case .recreate:
            let topic = Self.anyPartition(in: world, &random).place.topic
            world.note("\(topic) is made anew")
            world.remake([topic], after: number(second / 2...3 * second))
        case .newCluster:
            world.note("another cluster takes over")
            world.log.cluster = "cluster-2"
            world.remake(world.log.topics.keys.sorted(), after: number(second / 2...3 * second))
        }
    }

    /// A log that a service reads; `inputsOnly`: whose records their senders send again.
    private static func anyPartition(
        in world: World, _ random: inout SplitMix64, inputsOnly: Bool = true
    ) -> SimulatedPartition {
        var topics: [String] = []
        for service in world.deployments.map(\.service.rawValue) {
            topics += [Topics().commands(service), Topics().commands(service), Topics().replies(to: service)]
            if !inputsOnly { topics += [Topics().events(service), Topics().replies] }
        }
        let partitions = topics.flatMap { world.log.topics[$0] ?? [] }
        return partitions[Int.random(in: partitions.indices, using: &random)]
    }
}

extension World {
    /// Topics are gone for a while, and come back empty.
    func remake(_ topics: [String], after delay: Int64) {
        for topic in topics {
            log.missing.insert(topic)
            log.topics[topic]?.forEach { $0.reset() }
            replicas.forEach { $0.noticeMissing(topic) }
        }
        scheduler.after(delay) { [self] in log.missing.subtract(topics) }
    }

    /// Nothing goes wrong any more.
    func heal() {
        replicas.forEach { $0.heal() }
        for deployment in deployments {
            deployment.store.isDown = false
            deployment.store.isReadOnly = false
        }
        log.refusals = [:]
        log.missing = []
        log.topics.values.joined().forEach { $0.isLeaderless = false }
    }
}
