// SPDX-License-Identifier: Apache-2.0

import Metrics
import Runtime

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

    private struct KeyBucket: Hashable {
        var id: String
        /// A key that anybody can show has a bucket of its own: nobody empties that of those who prove that they hold it.
        var isProved: Bool
    }

    private struct AddressBucket: Hashable {
        var app: String
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
        try refuse(.credentials, guesses.look(address.network, guessRate, at: now()))
    }

    func countGuess(_ client: Client) {
        guard let guessRate, client.isLimited, let address = client.address else { return }
        _ = guesses.take(address.network, guessRate, at: now())
    }

    func takeKey(_ id: String, isProved: Bool, of app: AppSettings) throws(APIFailure) {
        try refuse(.key, keys.take(KeyBucket(id: id, isProved: isProved), app.gateway.limits.key, at: now()))
    }

    /// Whether there is room for what may prove to be of this key.
    func lookAtKey(_ id: String, of app: AppSettings) throws(APIFailure) {
        try refuse(.key, keys.look(KeyBucket(id: id, isProved: true), app.gateway.limits.key, at: now()))
    }

    func takeAddress(_ client: Client, of app: AppSettings) throws(APIFailure) {
        guard client.isLimited, let address = client.address else { return }
        let bucket = AddressBucket(app: app.id, network: address.network)
        try refuse(.address, addresses.take(bucket, app.gateway.limits.address, at: now()))
    }

    private func refuse(_ limit: Limit, _ seconds: Int?) throws(APIFailure) {
        guard let seconds else { return }
        Counter(label: "gateway_throttled", dimensions: [("limit", limit.rawValue)]).increment()
        throw .throttled(limit, retryAfter: seconds)
    }
}
