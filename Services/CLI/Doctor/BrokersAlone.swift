// SPDX-License-Identifier: Apache-2.0

import Messaging
import Supervision

/// Brokers, each looked for at its own address and at no other, side by side.
struct BrokersAlone {
    let addresses: [String]
    private let kafka: KafkaConfiguration

    init(_ kafka: KafkaConfiguration, _ addresses: [String]) {
        self.kafka = kafka
        self.addresses = addresses
    }

    /// Those that cannot be used, and why. Blocks for some five seconds at most.
    var failures: [(address: String, failure: BrokerFailure)] {
        let kafka = kafka
        let works = addresses.map { address in
            { @Sendable () -> BrokerFailure? in
                var alone = kafka
                alone.bootstrapServers = address
                let access = KafkaAccess(alone)
                do {
                    try access.connect(within: .seconds(3), whenKnown: .seconds(1))?.admin.close(timeout: .zero)
                    return nil
                } catch {
                    return (error as? KafkaError)?.failure ?? BrokerFailure(.other, at: address, words: "\(error)")
                }
            }
        }
        let found = SideBySide(works).results(by: .now + .seconds(5))
        return zip(addresses, found).compactMap { address, result -> (address: String, failure: BrokerFailure)? in
            guard let result else { return (address, BrokerFailure(.timedOut, at: address)) }
            return result.map { (address, $0) }
        }
    }
}
