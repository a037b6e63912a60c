// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
package import Contracts

/// What somebody asks who looks for a fault, and a service does not.
extension KafkaAdmin {
    /// The certificates that brokers have shown to this client, by `host:port`.
    package var certificates: [String: PeerCertificate] { handle.trouble.certificates }

    /// Why brokers could not be used: the newest cause of each.
    package var failures: [BrokerFailure] { handle.trouble.failures }

    /// Where the brokers say that clients find them, as `host:port`.
    ///
    /// - Throws: when no broker answers in time.
    package func brokerAddresses(timeout: Duration) throws(KafkaError) -> [String] {
        try checkOpen()
        var pointer: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(handle.pointer, 0, nil, &pointer, timeout.kafkaMilliseconds)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = pointer?.pointee else { throw KafkaError(code) }
        defer { rd_kafka_metadata_destroy(pointer) }
        return UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt)).compactMap { broker in
            broker.host.map { String(cString: $0) }.map { ($0.contains(":") ? "[\($0)]" : $0) + ":\(broker.port)" }
        }.sorted()
    }

    /// Asks whether these topics could be created, and creates none.
    ///
    /// - Throws: why not.
    package func tryToCreate(_ specs: [TopicSpec], timeout: Duration) throws(KafkaError) {
        try checkOpen()
        try TopicCreation(client: handle.pointer, specs: specs, timeout: timeout, isTrial: true).run()
    }
}
