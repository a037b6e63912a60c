// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Synchronization

/// The requests that wait for a reply, by command id. Shared by the request handlers and the two Kafka threads.
final class Waiters: Sendable {
    private struct Waiter {
        var app: String
        var acceptsPending: Bool
        var isPending = false
        var deadline: ContinuousClock.Instant
        var continuation: CheckedContinuation<Answer, Never>
    }

    private struct State {
        /// Several for one id: the same Idempotency-Key may come twice at once.
        var waiters: [String: [Waiter]] = [:]
        var count = 0
    }

    private let state = Mutex(State())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { state.withLock(\.count) }

    /// Waits for the reply to a command.
    /// - Parameters:
    ///   - acceptsPending: whether the word that the command is pending is the answer; otherwise the final reply is.
    ///   - send: called once the waiter is in place, so that no reply can come too early. Not called when full.
    func wait(
        for id: String, app: String, acceptsPending: Bool, until deadline: ContinuousClock.Instant, send: () -> Void
    ) async -> Answer {
        await withCheckedContinuation { continuation in
            let isAdmitted = state.withLock { state in
                guard state.count < limit else { return false }
                state.count += 1
                state.waiters[id, default: []].append(
                    Waiter(
                        app: app, acceptsPending: acceptsPending, deadline: deadline, continuation: continuation))
                return true
            }
            if isAdmitted { send() } else { continuation.resume(returning: .full) }
        }
    }

    func isAwaited(_ id: String) -> Bool { state.withLock { $0.waiters[id] != nil } }

    /// Hands a reply to those who wait for it. Others' replies are on the same topic and are passed over.
    func resolve(_ reply: CommandReply) {
        if reply.status == .pending { note(reply) }
        finish(reply.commandID, with: .reply(reply)) { waiter in
            waiter.app == reply.app && (reply.status != .pending || waiter.acceptsPending && reply.awaitsCaller)
        }
    }

    /// What they wait for has begun.
    private func note(_ reply: CommandReply) {
        state.withLock { state in
            for index in (state.waiters[reply.commandID] ?? []).indices {
                if state.waiters[reply.commandID]?[index].app == reply.app {
                    state.waiters[reply.commandID]?[index].isPending = true
                }
            }
        }
    }

    func fail(_ id: String) { finish(id, with: .unavailable) { _ in true } }

    /// Answers those whose time is over.
    func sweep(now: ContinuousClock.Instant) {
        let due = state.withLock { state in
            state.waiters.compactMap { id, waiters in waiters.contains { $0.deadline <= now } ? id : nil }
        }
        for id in due {
            finish(id, with: .timedOut) { $0.deadline <= now && !$0.isPending }
            finish(id, with: .stillPending) { $0.deadline <= now }
        }
    }

    func failAll() {
        let ids = state.withLock { Array($0.waiters.keys) }
        for id in ids { fail(id) }
    }

    private func finish(_ id: String, with answer: Answer, where isMeant: (Waiter) -> Bool) {
        let done: [Waiter] = state.withLock { state in
            guard let waiters = state.waiters[id] else { return [] }
            let done = waiters.filter(isMeant)
            let rest = waiters.filter { !isMeant($0) }
            state.waiters[id] = rest.isEmpty ? nil : rest
            state.count -= done.count
            return done
        }
        for waiter in done { waiter.continuation.resume(returning: answer) }
    }
}
