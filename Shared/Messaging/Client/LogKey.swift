// SPDX-License-Identifier: Apache-2.0

/// The metadata keys of this library's log lines.
enum LogKey {
    /// librdkafka's name for the part of it that speaks.
    static let facility = "kafka_facility"
    static let group = "kafka_group"
    static let topic = "kafka_topic"
    static let partitions = "kafka_partitions"
}
