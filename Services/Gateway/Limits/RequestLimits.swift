// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Metrics
import Runtime
import Synchronization

/// How many requests are let in before anything is read of them but their heads. Shared by all request handlers of this
/// process; replicas count each for itself.
final class RequestLimits: Sendable {
    /// What was too much.
    enum Limit: String, Sendable, CaseIterable {
        /// For one API key.
        case key
        /// For one client address.
        case address
        /// Wrong credentials from one client address.
        case credentials
    }

    /// A limit that was reached, as it is told (`RateLimit` and `RateLimit-Policy`, draft-ietf-httpapi-ratelimit-headers).
    struct Quota: Sendable, Equatable {
        let limit: Limit
        let rate: GatewaySettings.Limits.Rate
        /// After how many seconds there is room for one.
        let seconds: Int

        /// A bucket fills up once in the window.
        func tell(in response: inout APIResponse) {
            let window = max(1, Int((rate.burst / rate.perSecond).rounded(.up)))
            response.set("RateLimit-Policy", "\"\(limit.rawValue)\";q=\(Int(rate.burst));w=\(window)")
            response.set("RateLimit", "\"\(limit.rawValue)\";r=0;t=\(seconds)")
        }
    }

    private struct KeyBucket: Hashable {
        var id: KeyID
        /// A key that anybody can show has a bucket of its own: nobody empties that of those who prove that they hold it.
        var isProved: Bool
    }

    private struct AddressBucket: Hashable {
        /// `nil`: of what no app is asked about.
        var app: AppID?
        var network: IPAddress
    }

    private static let capacity = 32_768

    private let keys = TokenBuckets<KeyBucket>(capacity: capacity)
    private let addresses = TokenBuckets<AddressBucket>(capacity: capacity)
    private let guesses = TokenBuckets<IPAddress>(capacity: capacity)
    private let guessRate: GatewaySettings.Limits.Rate?
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter wrongCredentialsPerMinute: from one client address; 0: any number.
    init(
        wrongCredentialsPerMinute: Int = 60,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        let perMinute = Double(wrongCredentialsPerMinute)
        guessRate = perMinute > 0 ? .init(perSecond: perMinute / 60, burst: perMinute) : nil
        self.now = now
    }

    /// To be asked before a secret is compared: also a right one is not looked at after too many wrong ones, or the right
    /// one could be told from them.
    func checkGuessing(_ client: Client) throws(APIFailure) {
        guard let guessRate, client.isLimited, let address = client.address else { return }
        try refuse(.credentials, guessRate, guesses.look(address.network, guessRate, at: now()))
    }

    func countGuess(_ client: Client) {
        guard let guessRate, client.isLimited, let address = client.address else { return }
        _ = guesses.take(address.network, guessRate, at: now())
    }

    func takeKey(_ id: KeyID, isProved: Bool, of app: AppSettings) throws(APIFailure) {
        let rate = app.gateway.limits.key
        try refuse(.key, rate, keys.take(KeyBucket(id: id, isProved: isProved), rate, at: now()))
    }

    func takeAddress(_ client: Client, of app: AppSettings) throws(APIFailure) {
        try takeAddress(client, of: app.id, app.gateway.limits.address)
    }

    /// Of what anybody can send, whatever key it names: an app's own limit would tell that there is such a key.
    func takeAddress(_ client: Client) throws(APIFailure) {
        try takeAddress(client, of: nil, GatewaySettings.Limits().address)
    }

    private func takeAddress(
        _ client: Client, of app: AppID?, _ rate: GatewaySettings.Limits.Rate
    ) throws(APIFailure) {
        guard client.isLimited, let address = client.address else { return }
        let bucket = AddressBucket(app: app, network: address.network)
        try refuse(.address, rate, addresses.take(bucket, rate, at: now()))
    }

    private func refuse(_ limit: Limit, _ rate: GatewaySettings.Limits.Rate, _ seconds: Int?) throws(APIFailure) {
        guard let seconds else { return }
        Counter(label: "gateway_throttled", dimensions: [("limit", limit.rawValue)]).increment()
        throw .throttled(Quota(limit: limit, rate: rate, seconds: seconds))
    }
}

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
