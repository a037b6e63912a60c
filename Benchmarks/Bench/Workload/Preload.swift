// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// Puts records into topics before anything is measured.
enum Preload {
    /// Sends all records in large compressed batches and waits for every acknowledgement.
    static func send(_ records: [Record], to broker: Broker) throws {
        var kafka = broker.kafka
        kafka.producer["linger.ms"] = "20"
        kafka.producer["batch.size"] = "500000"
        kafka.producer["compression.type"] = "zstd"
        let producer = try KafkaProducer(configuration: kafka, logger: .quiet)
        defer { producer.close(timeout: .seconds(5)) }
        for (number, record) in records.enumerated() {
            try producer.send(record, token: number)
            if number.isMultiple(of: 1000) { try check(producer.poll(timeout: .zero)) }
        }
        try check(producer.flush(timeout: .seconds(60)))
        guard producer.outstanding == 0 else {
            throw BenchError("\(producer.outstanding) records were not acknowledged")
        }
    }

    /// Reads the topic from its beginning.
    /// - Throws: when it does not hold `count` records: the embedded broker drops the oldest when a partition is full.
    static func verify(_ count: Int, in topic: String, of broker: Broker) throws {
        let tail = try broker.tail([topic], from: .beginning)
        defer { tail.close() }
        var found = 0
        var lowest: [TopicPartition: Int64] = [:]
        let deadline = ContinuousClock.now + .seconds(60)
        while found < count, ContinuousClock.now < deadline {
            // Nothing for a while says nothing: the machine may be busy.
            let records = tail.poll(maxRecords: 5000, timeout: .seconds(2))
            found += records.count
            for record in records where lowest[record.topicPartition] == nil {
                lowest[record.topicPartition] = record.offset
            }
        }
        guard found == count, lowest.values.allSatisfy({ $0 == 0 }) else {
            throw BenchError(
                "\(topic) holds \(found) of \(count) records: the embedded broker dropped some; use more --partitions")
        }
    }

    private static func check(_ reports: [DeliveryReport]) throws {
        if let error = reports.lazy.compactMap(\.error).first { throw error }
    }
}
