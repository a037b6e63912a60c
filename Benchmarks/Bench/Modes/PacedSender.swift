// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Synchronization

/// Sends each record when it is due, from a thread of its own.
final class PacedSender: Sendable {
    private struct Outcome {
        var isOver = false
        var delay = Duration.zero
        var problem: String?
    }

    private let records: [Record]
    private let kafka: KafkaConfiguration
    private let start: ContinuousClock.Instant
    private let interval: Duration
    private let outcome = Mutex(Outcome())

    init(records: [Record], kafka: KafkaConfiguration, start: ContinuousClock.Instant, interval: Duration) {
        self.records = records
        self.kafka = kafka
        self.start = start
        self.interval = interval
    }

    func begin() {
        let thread = Thread { [self] in
            var worst = Duration.zero
            var problem: String?
            do {
                worst = try send()
            } catch {
                problem = "\(error)"
            }
            outcome.withLock { $0 = Outcome(isOver: true, delay: worst, problem: problem) }
        }
        thread.start()
    }

    /// - Returns: how late the latest record was sent.
    func finish() throws -> Duration {
        while !outcome.withLock(\.isOver) { usleep(1000) }
        let result = outcome.withLock { $0 }
        if let problem = result.problem { throw BenchError(problem) }
        return result.delay
    }

    private func send() throws -> Duration {
        let producer = try KafkaProducer(configuration: kafka, logger: .quiet)
        defer { producer.close(timeout: .seconds(5)) }
        var worst = Duration.zero
        for (number, record) in records.enumerated() {
            let due = start + interval * number
            while true {
                let left = due - ContinuousClock.now
                if left <= .zero { break }
                // The last moment is spun away: sleeping wakes up too late.
                if left > .microseconds(200) { usleep(UInt32((left.inSeconds - 0.0001) * 1e6)) }
            }
            worst = max(worst, ContinuousClock.now - due)
            try producer.send(record, token: number)
            if let error = producer.poll(timeout: .zero).lazy.compactMap(\.error).first { throw error }
        }
        return worst
    }
}
