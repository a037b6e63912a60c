// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import Messaging
package import Testing

/// How long the tests wait for something that does come, on a machine that may be very busy. Only what hangs takes as long.
package let patience: Duration = .seconds(180)

/// Repeats `step` until `condition` holds; a failed requirement when that takes too long.
package func wait(
    until condition: @autoclosure () throws -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation,
    step: () throws -> Void
) throws {
    let end = ContinuousClock.now.advanced(by: patience)
    while try !condition() {
        try #require(ContinuousClock.now < end, "this did not happen in time", sourceLocation: sourceLocation)
        try step()
    }
}

extension KafkaConsumer {
    /// Polls until that many records have come.
    package func collect(_ count: Int) throws -> [KafkaRecord] {
        var records: [KafkaRecord] = []
        try wait(until: records.count >= count) {
            records += try poll(maxRecords: 500, timeout: .milliseconds(100))
        }
        return records
    }

    /// Polls until that many partitions are assigned; returns what was read meanwhile.
    @discardableResult
    package func join(_ partitions: Int) throws -> [KafkaRecord] {
        var records: [KafkaRecord] = []
        try wait(until: assignment.count == partitions) {
            records += try poll(maxRecords: 500, timeout: .milliseconds(100))
        }
        return records
    }
}

extension KafkaProducer {
    /// Sends the records, numbered from 0, and waits for all reports.
    @discardableResult
    package func deliver(_ records: [Record]) throws -> [DeliveryReport] {
        for (token, record) in records.enumerated() { try send(record, token: token) }
        var reports: [DeliveryReport] = []
        try wait(until: reports.count == records.count) { reports += poll(timeout: .milliseconds(100)) }
        return reports
    }
}

/// The time that `body` takes.
package func time(_ body: () throws -> Void) rethrows -> Duration {
    try ContinuousClock().measure { try body() }
}
