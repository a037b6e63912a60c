// SPDX-License-Identifier: Apache-2.0

/// The part of librdkafka's statistics document that becomes metrics.
struct ClientStatistics: Decodable {
    let replyQueue: Int
    let queuedMessages: Int
    let brokers: [String: Broker]
    let topics: [String: Topic]
    let group: Group?

    enum CodingKeys: String, CodingKey {
        case replyQueue = "replyq"
        case queuedMessages = "msg_cnt"
        case brokers
        case topics
        case group = "cgrp"
    }

    struct Broker: Decodable {
        /// -1 for the addresses of the bootstrap list, which are not brokers yet.
        let nodeid: Int
        let rtt: Window
    }

    /// Microseconds over the last interval.
    struct Window: Decodable {
        let p95: Int
        let p99: Int
        let cnt: Int
    }

    struct Topic: Decodable {
        let partitions: [String: Partition]
    }

    struct Partition: Decodable {
        let partition: Int32
        let committedLag: Int64
        /// Behind the last message that was polled; negative before the first.
        let position: Int64
        let nextFetch: Int64
        let stableEnd: Int64
        let end: Int64

        enum CodingKeys: String, CodingKey {
            case partition
            case committedLag = "consumer_lag"
            case position = "app_offset"
            case nextFetch = "next_offset"
            case stableEnd = "ls_offset"
            case end = "hi_offset"
        }

        /// Messages that were not polled yet; before the first those that were not fetched, and before that those that the
        /// group has not committed, `nil` while that is not known either. Committed offsets are told rarely, so they would
        /// show a lag where there is none.
        var lag: Int64? {
            let end = stableEnd >= 0 ? stableEnd : end
            let next = position >= 0 ? position : nextFetch
            if next >= 0, end >= 0 { return max(0, end - next) }
            return committedLag >= 0 ? committedLag : nil
        }
    }

    struct Group: Decodable {
        let rebalances: Int

        enum CodingKeys: String, CodingKey {
            case rebalances = "rebalance_cnt"
        }
    }
}
