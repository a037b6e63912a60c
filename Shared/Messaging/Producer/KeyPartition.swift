// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

extension KafkaConfiguration {
    /// The partition that a producer with these settings writes a key to.
    ///
    /// - Parameter count: of the topic's partitions.
    /// - Returns: `nil` when it cannot be told: the settings name a partitioner other than Java's murmur2, or there are
    ///   no partitions.
    public func partition(of key: [UInt8], among count: Int) -> Int32? {
        let name = "partitioner"
        let given = producer[name] ?? common[name] ?? ClientRole.producer.defaults[name] ?? ""
        guard ["murmur2", "murmur2_random"].contains(given), count > 0 else { return nil }
        return key.withUnsafeBytes { bytes in
            // It asks neither the topic nor the two pointers for anything.
            rd_kafka_msg_partitioner_murmur2(nil, bytes.baseAddress, bytes.count, Int32(clamping: count), nil, nil)
        }
    }
}
