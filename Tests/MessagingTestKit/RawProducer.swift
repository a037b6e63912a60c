// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
import Contracts

/// Produces messages as no client of ours would.
package enum RawProducer {
    /// Without an acknowledgement, by one connection, each when the one before it is sent and `next` has returned.
    package static func produceUnacknowledged(
        topic: String, values: [[UInt8]], servers: String, next: ([UInt8]) throws -> Void
    ) throws {
        let conf = rd_kafka_conf_new()
        rd_kafka_conf_set(conf, "bootstrap.servers", servers, nil, 0)
        rd_kafka_conf_set(conf, "acks", "0", nil, 0)
        guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nil, 0) else { throw TestBroker.Unavailable() }
        defer { rd_kafka_destroy(client) }
        let handle = rd_kafka_topic_new(client, topic, nil)
        defer { rd_kafka_topic_destroy(handle) }
        for value in values {
            var value = value
            rd_kafka_produce(handle, 0, RD_KAFKA_MSG_F_COPY, &value, value.count, nil, 0, nil)
            rd_kafka_flush(client, 30_000)
            try next(value)
        }
    }

    /// With a header name that is not UTF-8.
    package static func produce(topic: String, headerName: [UInt8], headerValue: [UInt8], servers: String) throws {
        let conf = rd_kafka_conf_new()
        rd_kafka_conf_set(conf, "bootstrap.servers", servers, nil, 0)
        guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nil, 0) else { throw TestBroker.Unavailable() }
        defer { rd_kafka_destroy(client) }
        let handle = rd_kafka_topic_new(client, topic, nil)
        defer { rd_kafka_topic_destroy(handle) }
        let headers = rd_kafka_headers_new(1)
        headerName.withUnsafeBytes { name in
            _ = rd_kafka_header_add(
                headers, name.assumingMemoryBound(to: CChar.self).baseAddress, name.count, headerValue,
                headerValue.count)
        }
        var arguments = [rd_kafka_vu_t](repeating: rd_kafka_vu_t(), count: 3)
        arguments[0].vtype = RD_KAFKA_VTYPE_RKT
        arguments[0].u.rkt = handle
        arguments[1].vtype = RD_KAFKA_VTYPE_PARTITION
        arguments[1].u.i32 = 0
        arguments[2].vtype = RD_KAFKA_VTYPE_HEADERS
        arguments[2].u.headers = headers
        if let error = rd_kafka_produceva(client, arguments, arguments.count) {
            rd_kafka_error_destroy(error)
            throw TestBroker.Unavailable()
        }
        rd_kafka_flush(client, 30_000)
    }
}
