// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Observability
import Supervision

/// Reads topics for somebody who watches: first what is there already, in the order of time, then what comes. Ends by
/// itself when it was told until when, or how much.
final class Follower {
    struct Limits {
        var until: Timestamp?
        var count: Int?
    }

    private let kafka: KafkaAccess
    private let admin: KafkaAdmin
    private let tail: KafkaTail
    private let filter: RecordFilter
    private let limits: Limits
    private let show: (KafkaRecord) -> Void

    /// Where reading is in each partition.
    private var positions: [TopicPartition: Int64]
    /// Up to where partitions are read before what was found is shown; `nil` when it is shown as it comes.
    private var goal: [TopicPartition: Int64]?
    /// Whether nothing is read behind it.
    private var isGoalLast = false
    private var found: [KafkaRecord] = []
    private var shown = 0
    /// Topics that we may not read.
    private var denied: Set<String> = []
    private var lastNews = ContinuousClock.now
    private var awaySince: ContinuousClock.Instant?

    /// So much is kept to be put in order.
    private static let most = 200_000
    /// After so long without a record a broker is asked whether it is there.
    private static let quiet: Duration = .seconds(5)

    init(
        _ kafka: KafkaAccess, admin: KafkaAdmin, partitions: [String: Int], from start: KafkaTail.Start,
        filter: RecordFilter, limits: Limits, show: @escaping (KafkaRecord) -> Void
    ) throws {
        self.kafka = kafka
        self.admin = admin
        self.filter = filter
        self.limits = limits
        self.show = show
        do {
            tail = try KafkaTail(
                configuration: kafka.configuration, partitions: partitions, from: start, logger: .quiet)
        } catch let error as KafkaError {
            throw kafka.problem(error)
        }
        positions = tail.starts
        if start != .end { try setGoal() }
    }

    /// Returns when all that was asked for is shown, or when it shall stop.
    /// - Throws: `Problem` when Kafka gave less than it has.
    func run(unless stop: () -> Bool) throws {
        defer { tail.close() }
        while !stop() {
            take(tail.poll(maxRecords: 500, timeout: .milliseconds(200)))
            try tellDenied()
            if isGoalReached {
                showFound()
                if isGoalLast { return try endWithAll() }
            }
            if isDone { return }
            if !isGoalLast, let until = limits.until, until <= .now { try setGoal() }
            try lookWhetherKafkaIsThere()
        }
        showFound()
    }

    /// What we may not read is missing from what is shown: nobody shall take that for nothing.
    private func tellDenied() throws {
        let new = tail.unreadable.filter {
            $0.value.code == KafkaError.Code.topicAuthorizationFailed && !denied.contains($0.key)
        }.keys.sorted()
        guard !new.isEmpty else { return }
        denied.formUnion(new)
        let problem = kafka.noRight(to: "read", "Read", new)
        if positions.keys.allSatisfy({ denied.contains($0.topic) }) { throw problem }
        complain(problem.what.harmless)
        goal = goal?.filter { !denied.contains($0.key.topic) }
    }

    private func endWithAll() throws {
        guard !denied.isEmpty else { return }
        var problem = kafka.noRight(to: "read", "Read", denied.sorted())
        problem.what = "what is shown is not all: \(problem.what)"
        throw problem
    }

    private var isDone: Bool { limits.count.map { shown >= $0 } ?? false }

    private func take(_ records: [KafkaRecord]) {
        if !records.isEmpty { lastNews = .now }
        for record in records {
            positions[record.topicPartition] = record.offset + 1
            guard filter.passes(record) else { continue }
            if goal == nil { showOne(record) } else { found.append(record) }
        }
        if found.count >= Self.most {
            complain(
                "more than \(Self.most) records: they are in order only so many at a time. --since, --key or --id narrow it."
            )
            showFound(isLast: false)
        }
    }

    private func showOne(_ record: KafkaRecord) {
        if isDone { return }
        shown += 1
        show(record)
    }

    private func showFound(isLast: Bool = true) {
        for record in found.sorted(by: { Self.order($0) < Self.order($1) }) { showOne(record) }
        found = []
        if isLast { goal = nil }
    }

    private static func order(_ record: KafkaRecord) -> (Int64, TopicPartition, Int64) {
        (record.timestampMs, record.topicPartition, record.offset)
    }

    // MARK: Ends

    /// What is in the partitions now is read to its end. That is all, when it is already the time until which is read.
    private func setGoal() throws {
        isGoalLast = limits.until.map { $0 <= .now } ?? false
        do {
            // What is empty has nothing to wait for.
            goal = try admin.bounds(
                of: positions.keys.filter { !denied.contains($0.topic) }, timeout: .seconds(10)
            )
            .filter { $0.value.low < $0.value.high }.mapValues(\.high)
        } catch {
            throw kafka.problem(error)
        }
    }

    private var isGoalReached: Bool { goal.map { missing(of: $0).isEmpty } ?? false }

    private func missing(of goal: [TopicPartition: Int64]) -> [TopicPartition] {
        goal.filter { positions[$0.key] ?? 0 < $0.value }.map(\.key)
    }

    // MARK: Silence

    private func lookWhetherKafkaIsThere() throws {
        guard ContinuousClock.now - lastNews > Self.quiet else { return }
        do {
            _ = try admin.existingTopics(timeout: .seconds(2))
            lastNews = .now
            if let since = awaySince {
                complain("Kafka answers again, after \((ContinuousClock.now - since).components.seconds) s")
            }
            awaySince = nil
        } catch {
            if limits.until.map({ $0 <= .now }) == true { throw kafka.problem(error) }
            if awaySince == nil {
                awaySince = lastNews
                complain("\(kafka.problem(error).what) Waiting for it.".harmless)
            }
            return
        }
        guard let goal else { return }
        // It is there, and gives nothing more: records may be gone that were there when it was asked.
        let missing = missing(of: goal).sorted().map(\.description).joined(separator: " ")
        complain("nothing more comes of \(missing): what is shown of it may be incomplete")
        for (partition, end) in goal { positions[partition] = end }
    }
}
