// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Synchronization

/// Token buckets, one for each key, of which the least used are forgotten: a forgotten bucket is a full one. Safe from any
/// thread.
final class TokenBuckets<Key: Hashable & Sendable>: Sendable {
    typealias Rate = GatewaySettings.Limits.Rate

    private struct Bucket {
        var tokens: Double
        var filled: ContinuousClock.Instant

        func tokens(_ rate: Rate, _ now: ContinuousClock.Instant) -> Double {
            min(rate.burst, tokens + rate.perSecond * max(.zero, now - filled).inSeconds)
        }
    }

    /// Two generations: when the young one is full it becomes the old one, and who is seen again moves over. So the memory
    /// is bounded, and who comes often is never forgotten.
    private struct State {
        var young: [Key: Bucket] = [:]
        var old: [Key: Bucket] = [:]
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// - Parameter capacity: at least so many buckets are remembered, and at most twice as many.
    init(capacity: Int) { self.capacity = capacity }

    /// Takes one token.
    /// - Returns: `nil`, or after how many seconds there will be one.
    func take(_ key: Key, _ rate: Rate, at now: ContinuousClock.Instant) -> Int? {
        state.withLock { state in
            let tokens = (state.young[key] ?? state.old[key])?.tokens(rate, now) ?? rate.burst
            if state.young[key] == nil, state.young.count >= capacity {
                state.old = state.young
                state.young = [:]
            }
            state.young[key] = Bucket(tokens: tokens >= 1 ? tokens - 1 : tokens, filled: now)
            return Self.wait(tokens, rate)
        }
    }

    /// As ``take(_:_:at:)``, but takes nothing.
    func look(_ key: Key, _ rate: Rate, at now: ContinuousClock.Instant) -> Int? {
        state.withLock { state in
            Self.wait((state.young[key] ?? state.old[key])?.tokens(rate, now) ?? rate.burst, rate)
        }
    }

    /// How many buckets are remembered.
    var count: Int { state.withLock { $0.young.count + $0.old.count } }

    private static func wait(_ tokens: Double, _ rate: Rate) -> Int? {
        guard tokens < 1 else { return nil }
        return max(1, Int(((1 - tokens) / rate.perSecond).rounded(.up)))
    }
}
