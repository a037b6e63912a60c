// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit

/// Time, and who runs. Every replica has a thread, but only one thread of a simulation runs at any instant: whoever
/// pauses hands on to what is due next. So a run depends on nothing but its seed.
final class Scheduler {
    /// Microseconds since the simulation began.
    private(set) var now: Int64 = 0
    /// How many things happened.
    private(set) var steps = 0
    var random: SplitMix64

    /// Somebody with a thread.
    final class Actor {
        let name: String
        fileprivate let turn = DispatchSemaphore(value: 0)
        /// Which of its entries in the queue counts: the newest.
        fileprivate var entry = 0
        fileprivate(set) var isOver = false

        init(_ name: String) { self.name = name }
    }

    /// An event, or the end of somebody's pause.
    private struct Item {
        var time: Int64
        var number: Int
        var event: (() -> Void)?
        var actor: Actor?
        var entry = 0

        static func < (left: Item, right: Item) -> Bool { (left.time, left.number) < (right.time, right.number) }
    }

    private var queue: [Item] = []
    private var count = 0
    /// Who runs; nobody while something happens.
    private var current: Actor?

    /// - The caller's thread takes part, under the name `world`.
    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        current = Actor("world")
    }

    /// Does something later, on whichever thread is running then. It must not pause.
    func after(_ delay: Int64, _ event: @escaping () -> Void) { push(now + max(0, delay), event: event) }

    /// Runs `body` on a thread of its own, from now on.
    func start(_ name: String, _ body: @escaping () -> Void) -> Actor {
        let actor = Actor(name)
        let life = Life(self, actor, body)
        let thread = Thread { life.run() }
        thread.stackSize = 4 << 20
        thread.start()
        wake(actor)
        return actor
    }

    /// Lets the others run until this long has passed for the caller.
    func pause(_ delay: Int64) {
        guard let me = current else { preconditionFailure("what happens at an instant does not pause") }
        me.entry += 1
        push(now + max(1, delay), me)
        handOn(me)
    }

    /// Ends somebody's pause.
    func wake(_ actor: Actor) {
        if actor.isOver || actor === current { return }
        actor.entry += 1
        push(now, actor)
    }

    /// - Returns: whether it is so with this probability, in percent.
    func chance(_ percent: Double) -> Bool { Double.random(in: 0..<100, using: &random) < percent }

    func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }

    func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &random)] }

    // MARK: The queue, a binary heap

    fileprivate func handOn(_ me: Actor?) {
        current = nil
        while let item = pop() {
            steps += 1
            now = max(now, item.time)
            item.event?()
            guard let actor = item.actor, item.entry == actor.entry, !actor.isOver else { continue }
            current = actor
            if actor === me { return }
            actor.turn.signal()
            me?.turn.wait()
            return
        }
        preconditionFailure("nothing is left to happen")
    }

    private func push(_ time: Int64, _ actor: Actor? = nil, event: (() -> Void)? = nil) {
        count += 1
        queue.append(Item(time: time, number: count, event: event, actor: actor, entry: actor?.entry ?? 0))
        var place = queue.count - 1
        while place > 0, queue[place] < queue[(place - 1) / 2] {
            queue.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private func pop() -> Item? {
        guard let first = queue.first else { return nil }
        let last = queue.removeLast()
        if queue.isEmpty { return first }
        queue[0] = last
        var place = 0
        while true {
            var child = 2 * place + 1
            guard child < queue.count else { break }
            if child + 1 < queue.count, queue[child + 1] < queue[child] { child += 1 }
            guard queue[child] < queue[place] else { break }
            queue.swapAt(place, child)
            place = child
        }
        return first
    }

    /// Nothing of what was to happen happens.
    func forgetAll() { queue = [] }
}

extension Scheduler {
    /// What somebody's thread does.
    /// `@unchecked Sendable`: only one thread of a simulation runs at a time, and a semaphore stands between one and the
    /// next.
    private final class Life: @unchecked Sendable {
        private let scheduler: Scheduler
        private let actor: Actor
        private var body: (() -> Void)?

        init(_ scheduler: Scheduler, _ actor: Actor, _ body: @escaping () -> Void) {
            (self.scheduler, self.actor, self.body) = (scheduler, actor, body)
        }

        func run() {
            actor.turn.wait()
            body?()
            // Nothing of it may be let go while the next one runs.
            body = nil
            actor.isOver = true
            scheduler.handOn(nil)
        }
    }
}
