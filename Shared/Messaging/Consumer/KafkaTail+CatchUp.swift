// SPDX-License-Identifier: Apache-2.0

public import Contracts

extension KafkaTail {
    /// Kafka gives nothing more of a partition, although it ends later.
    public struct Silence: Error {
        public var partition: TopicPartition
    }

    /// Reads to where its partitions end at this moment.
    ///
    /// - Parameters:
    ///   - admin: is asked for the ends.
    ///   - limit: for how long at most.
    ///   - patience: for how long nothing may come.
    ///   - stop: asked before each look. What it throws ends the reading too.
    ///   - take: gets the records, never none.
    /// - Returns: whether it got there: not, when it was stopped or the limit was over.
    /// - Throws: ``KafkaError`` when Kafka does not say where a partition ends, ``Silence``, and what `stop` and `take` throw.
    public func catchUp(
        _ admin: KafkaAdmin, within limit: Duration? = nil, patience: Duration = .seconds(10),
        unless stop: () throws -> Bool, take: ([KafkaRecord]) throws -> Void
    ) throws -> Bool {
        let partitions = positions.keys.sorted()
        let bounds = try admin.bounds(of: partitions, timeout: .seconds(10))
        if let silent = partitions.first(where: { bounds[$0] == nil }) {
            throw KafkaError(code: KafkaError.Code.timedOut, message: "\(silent) does not say where it ends")
        }
        let ends = bounds.filter { $0.value.low < $0.value.high }.mapValues(\.high)
        let start = ContinuousClock.now
        var lastNews = start
        while let behind = ends.first(where: { positions[$0.key] ?? 0 < $0.value })?.key {
            if try stop() { return false }
            let records = poll(maxRecords: 500, timeout: .milliseconds(100))
            if !records.isEmpty {
                try take(records)
                lastNews = .now
            }
            if let limit, .now - start > limit { return false }
            if .now - lastNews > patience { throw Silence(partition: behind) }
        }
        return true
    }
}
