// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// The library that speaks to Kafka.
public enum KafkaLibrary {
    /// Its version, such as `2.0.2`.
    public static var version: String { rd_kafka_version_str().map { String(cString: $0) } ?? "unknown" }
}
