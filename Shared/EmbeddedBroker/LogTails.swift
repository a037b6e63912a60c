// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
import Synchronization

/// The ends of all partitions' logs, and who waits for something new there. librdkafka's test broker looks for an offset from
/// the beginning of a partition's log, record by record, at every fetch of every partition: the longer it has run, the
/// more of its time. Nearly all is read soon after it was appended, so that is kept here. Any thread.
final class LogTails: Sendable {
    final class Wait: Sendable {
        let topics: [String]
        let news = DispatchSemaphore(value: 0)

        init(_ topics: [String]) { self.topics = topics }
    }

    /// What fetches have brought, by topic and partition.
    typealias Found = [String: [Int32: KafkaResponse.Fetched]]

    private struct Partition {
        /// `nil` while its end is not known.
        var tail: LogTail?
        /// How often its end may have changed.
        var changes = 0
    }

    private struct Topic {
        var waits: [ObjectIdentifier: Wait] = [:]
        var partitions: [Int32: Partition] = [:]
    }

    private let topics = Mutex<[String: Topic]>([:])

    // MARK: Appending

    /// Before the broker is asked.
    func begin(_ produce: KafkaRequest.Produce) { change(produce) { _, _, _ in } }

    /// - Parameter offsets: where the broker has put what was to be appended; `nil` when that is not known.
    func end(_ produce: KafkaRequest.Produce, at offsets: [String: [Int32: Int64]]?) {
        change(produce) { topic, records, partition in
            guard let offsets else {
                partition.tail = nil
                return
            }
            guard let offset = offsets[topic]?[records.number] else { return }
            guard let batch = RecordBatch(records.records) else {
                partition.tail = nil
                return
            }
            var tail = partition.tail ?? LogTail(at: offset)
            tail.append(batch, at: offset)
            partition.tail = tail
        }
        for wait in waits(for: produce.topics.map(\.name)) { wait.news.signal() }
    }

    private func change(
        _ produce: KafkaRequest.Produce,
        _ body: (_ topic: String, KafkaRequest.Produce.Partition, inout Partition) -> Void
    ) {
        topics.withLock { topics in
            for (name, partitions) in produce.topics {
                for records in partitions {
                    topics[name, default: Topic()].partitions[records.number, default: Partition()].changes += 1
                    body(
                        name, records, &topics[name, default: Topic()].partitions[records.number, default: Partition()])
                }
            }
        }
    }

    // MARK: Reading

    /// What is known before the broker is asked for the rest.
    struct Reading {
        var found: Found = [:]
        fileprivate var changes: [String: [Int32: Int]] = [:]
    }

    func read(_ fetch: KafkaRequest.Fetch, version: Int16) -> Reading {
        topics.withLock { topics in
            var reading = Reading()
            var left = fetch.maxBytes
            for (name, partitions) in fetch.topics {
                let topic = topics[name]
                for asked in partitions {
                    let partition = topic?.partitions[asked.number] ?? Partition()
                    reading.changes[name, default: [:]][asked.number] = partition.changes
                    guard let tail = partition.tail,
                        let batches = tail.batches(
                            from: asked.offset, atMost: min(asked.maxBytes, left), isFirst: left == fetch.maxBytes)
                    else { continue }
                    left -= batches.reduce(0) { $0 + $1.count }
                    reading.found[name, default: [:]][asked.number] = KafkaResponse.Fetched(
                        asked.number, end: tail.end, batches: batches, version: version)
                }
            }
            return reading
        }
    }

    /// Where partitions end that nothing was known of.
    /// - Parameter found: by the broker, behind the reading.
    func learn(_ found: Found, after reading: Reading) {
        topics.withLock { topics in
            for (name, partitions) in found {
                for (number, fetched) in partitions {
                    let partition = topics[name]?.partitions[number] ?? Partition()
                    guard partition.tail == nil, let end = fetched.end,
                        partition.changes == reading.changes[name]?[number]
                    else { continue }
                    topics[name, default: Topic()].partitions[number, default: Partition()].tail = LogTail(at: end)
                }
            }
        }
    }

    // MARK: Waiting

    func expect(_ names: [String]) -> Wait {
        let wait = Wait(names)
        topics.withLock { topics in
            for name in names { topics[name, default: Topic()].waits[ObjectIdentifier(wait)] = wait }
        }
        return wait
    }

    func forget(_ wait: Wait) {
        topics.withLock { topics in
            for name in wait.topics { topics[name]?.waits[ObjectIdentifier(wait)] = nil }
        }
    }

    private func waits(for names: [String]) -> [Wait] {
        topics.withLock { topics in names.flatMap { topics[$0].map { Array($0.waits.values) } ?? [] } }
    }

    func endAllWaits() {
        let all = topics.withLock { topics in topics.values.flatMap { Array($0.waits.values) } }
        for wait in all { wait.news.signal() }
    }
}
