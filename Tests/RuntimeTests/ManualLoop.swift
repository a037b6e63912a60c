// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Logging
import Messaging
import Observability
import Storage
import TestKit
import WireJSON

@testable import Runtime

/// A loop on a SQLite file that a test turns by hand, on the test's own thread: the group, the log, the producer and the
/// clock do what the test says, and nothing else happens.
final class ManualLoop {
    static let place = TopicPartition(topic: Fixture.topic, partition: 0)
    static let cluster = "cluster-1"

    let store: TestStore
    let database: RenumberedDatabase
    let health = LoopHealth()
    let signals = LoopSignals()
    let watch: BrokerWatch
    let producer = HandProducer()
    private let group: HandGroup
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "identitybus-manual-\(UUID().uuidString)")
    private(set) var now = ContinuousClock.now
    private var loop: ServiceLoop<FakeService>?

    /// - Parameters:
    ///   - store: of a process before, which is over.
    ///   - partitions: how many the commands topic has.
    ///   - assigned: how many of them this replica is given.
    ///   - isShared: the loop takes the store for PostgreSQL, where replicas share the partitions.
    init(
        _ service: FakeService, on store: TestStore? = nil, partitions: Int = 1, assigned: Int = 1,
        isShared: Bool = false, replayingUntil pastEnd: Timestamp? = nil, tracer: OTLPTracer? = nil
    ) throws {
        self.store = try store ?? TestStore(.sqlite)
        database = RenumberedDatabase(try self.store.open(.normal))
        try FakeService.migrator.run(on: database)
        watch = BrokerWatch(cluster: Self.cluster, partitions: [Fixture.topic: partitions])
        group = HandGroup(assigned: assigned)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: "apps.yaml")
        try Data(TestLoop.apps.utf8).write(to: file)
        var environment = KafkaConfiguration.embeddedEnvironment
        environment["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:9"
        environment["IDENTITYBUS_INTERNAL_KEY"] = "the-internal-key-of-the-tests"
        environment["IDENTITYBUS_APPS"] = file.path
        environment["DATA_DIR"] = folder.path
        if isShared { environment["DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/nowhere" }
        var configuration = try ServiceConfiguration(environment: environment, service: FakeService.name)
        configuration.replayUntil = pastEnd
        let apps = try AppsSource(
            path: configuration.appsPath, keys: configuration.keys, weakSecrets: configuration.weakSecrets,
            logger: .quiet)
        let clock = LoopClock(
            now: { [unowned self] in now }, time: { Fixture.now },
            sleep: { [unowned self] in now += $0 }, pause: { [unowned self] in now += $0 },
            random: SplitMix64(seed: testSeed))
        let seams = LoopSeams(
            makeConsumer: { [group] source, handler in group.join(source.topic, handler) },
            waitForRecords: { [unowned self] in now += $0 }, makeProducer: { [producer] _ in producer },
            clock: clock)
        var start = LoopStart(
            configuration: configuration, health: health, signals: signals, logger: .quiet, database: database,
            apps: apps, watch: watch, seams: seams, trial: Trial())
        start.tracer = tracer
        loop = try ServiceLoop(service: service, start: start)
        producer.wait = { [unowned self] in now += $0 }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// A store in which a replica that is no more did this.
    static func store(_ work: (any SQLTransaction) throws -> Void) throws -> TestStore {
        let store = try TestStore(.sqlite)
        let database = try store.open(.normal)
        defer { database.close() }
        try FakeService.migrator.run(on: database)
        try database.transaction(work)
        return store
    }

    /// That replica claims the partition.
    static func claim(in transaction: any SQLTransaction) throws -> [PartitionClaim] {
        let request = PartitionClaimRequest(topic: place.topic, partition: place.partition, highWatermark: nil)
        return try Storage.Progress.claim([request], clusterID: cluster, owner: "dead", in: transaction)
    }

    /// The process is gone, and has done nothing for its end.
    func crash() {
        loop = nil
        database.close()
    }

    /// An idle turn takes a quarter of a second.
    func turn(_ count: Int = 1) throws {
        for _ in 0..<count { _ = try loop?.step() }
    }

    /// The apps file changes.
    func write(apps text: String) throws { try Data(text.utf8).write(to: folder.appending(path: "apps.yaml")) }

    /// The group of this topic gives this replica its only partition, in whose log these records stand beside what stands in
    /// the others.
    func assign(_ topic: String, _ records: [KafkaRecord]) {
        group.assigned.append(TopicPartition(topic: topic, partition: 0))
        group.log += records
    }

    /// What stands in the log, from offset 0.
    func log(_ values: [String]) throws { try log([values]) }

    /// What stands in the logs of the partitions.
    /// - Parameter time: when a value was logged, in milliseconds.
    func log(_ partitions: [[String]], at time: (String) -> Int64 = { _ in 1 }) throws {
        group.log = try partitions.enumerated().flatMap { partition, values in
            try values.enumerated().map { offset, value in
                let record = try Fixture.record(
                    Fixture.attributes(id: "of-\(value)"), ["key": .string(value), "value": .string(value)],
                    offset: Int64(offset), partition: Int32(partition))
                return KafkaRecord(
                    topicPartition: record.topicPartition, offset: record.offset, timestampMs: time(value),
                    key: record.key, value: record.value, headers: record.headers)
            }
        }
    }

    /// The group says that the log does not have the position.
    func loseThePosition() { group.members.last?.loseThePosition() }

    /// The group gives this replica so many partitions from now on.
    func assign(_ count: Int) { group.assigned = HandGroup.places(count) }

    /// The group gives this replica the partition of that number, and no other.
    func assign(only partition: Int) { group.assigned = Array(HandGroup.places(partition + 1).suffix(1)) }

    /// The group has not heard of this replica for too long, and gives its partitions to others.
    func loseThePartitions() {
        group.isSessionOver = true
        assign(0)
    }

    /// How often a group was joined.
    var joins: Int { group.members.count }
    /// Where the loop had partitions read from, in order.
    var starts: [Int64] { group.members.flatMap(\.starts) }
    var replies: Int { producer.sent.count { $0.topic == "identity.replies.v1" } }
    /// What is decided and not known to be published.
    func outbox() throws -> Int {
        try database.transaction { Int(try $0.query("SELECT count(*) FROM outbox")[0].integer(0)) }
    }
    var isDatabaseWell: Bool { health.report.ready.contains { $0.name == "database" && $0.ok } }
}

/// Gives whoever is a member partitions of the topic that it reads, and takes away those that are not its any more.
final class HandGroup {
    var assigned: [TopicPartition]
    var log: [KafkaRecord] = []
    /// What is taken away is lost: the group did not wait for this member.
    var isSessionOver = false
    private(set) var members: [HandConsumer] = []

    init(assigned: Int) { self.assigned = Self.places(assigned) }

    static func places(_ count: Int) -> [TopicPartition] {
        (0..<Int32(count)).map { TopicPartition(topic: Fixture.topic, partition: $0) }
    }

    func join(_ topic: String, _ handler: any RebalanceHandler) -> HandConsumer {
        let member = HandConsumer(self, topic, handler)
        members.append(member)
        return member
    }
}

final class HandConsumer: RecordConsumer {
    private unowned let group: HandGroup
    private let topic: String
    private weak var handler: (any RebalanceHandler)?
    private var positions: [TopicPartition: Int64] = [:]
    private var paused: Set<TopicPartition> = []
    private var outOfRange: [TopicPartition] = []
    private(set) var starts: [Int64] = []
    private(set) var assignment: Set<TopicPartition> = []
    private(set) var isJoined = false

    init(_ group: HandGroup, _ topic: String, _ handler: any RebalanceHandler) {
        (self.group, self.topic, self.handler) = (group, topic, handler)
    }

    func poll(maxRecords: Int, timeout: Duration) throws(KafkaError) -> [KafkaRecord] {
        rebalance()
        return take(.max, of: assignment)
    }

    private func rebalance() {
        isJoined = true
        let assigned = group.assigned.filter { $0.topic == topic }
        let removed = assignment.subtracting(assigned)
        if !removed.isEmpty {
            if group.isSessionOver {
                handler?.partitionsLost(removed.sorted())
            } else {
                handler?.partitionsRevoked(removed.sorted())
            }
            for place in removed { positions[place] = nil }
            assignment.subtract(removed)
        }
        let added = assigned.filter { !assignment.contains($0) }
        if !added.isEmpty { read(handler?.partitionsAssigned(added) ?? [:]) }
        assignment.formUnion(added)
    }

    private func take(_ limit: Int, of places: Set<TopicPartition>) -> [KafkaRecord] {
        let records = group.log.filter { record in
            guard let position = positions[record.topicPartition] else { return false }
            return places.subtracting(paused).contains(record.topicPartition) && record.offset >= position
        }.prefix(limit)
        for record in records { positions[record.topicPartition] = record.offset + 1 }
        return Array(records)
    }

    func poll(_ partitions: Set<TopicPartition>, upTo share: Int) throws(KafkaError) -> [KafkaRecord] {
        rebalance()
        return partitions.sorted().flatMap { take(share, of: [$0]) }
    }

    func takeEnds() -> Set<TopicPartition> {
        assignment.filter { place in
            !group.log.contains { $0.topicPartition == place && $0.offset >= positions[place] ?? 0 }
        }
    }

    private func read(_ starts: [TopicPartition: Int64]) {
        for (place, start) in starts.sorted(by: { $0.key < $1.key }) {
            self.starts.append(start)
            positions[place] = start == KafkaOffset.beginning ? 0 : start
        }
    }

    func loseThePosition() {
        outOfRange = Array(assignment)
        positions = [:]
    }

    func takeOutOfRange() -> [TopicPartition] {
        defer { outOfRange = [] }
        return outOfRange
    }

    func takeVanished() -> Set<String> { [] }
    func restart(_ starts: [TopicPartition: Int64]) throws(KafkaError) { read(starts) }
    func pause(_ partitions: [TopicPartition]) throws(KafkaError) { paused.formUnion(partitions) }
    func resume(_ partitions: [TopicPartition]) throws(KafkaError) { paused.subtract(partitions) }
    func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool { true }

    func close(timeout: Duration) -> Bool {
        handler?.partitionsRevoked(assignment.sorted())
        (assignment, positions) = ([], [:])
        return true
    }
}

/// Delivers what it is given at once, or when it was waited for, or keeps quiet about it.
final class HandProducer: RecordProducer {
    private(set) var sent: [Record] = []
    private var reports: [DeliveryReport] = []
    private var unreported: [DeliveryReport] = []
    var isSilent = false
    /// Its reports come only to whoever waits for them.
    var isSlow = false
    /// Is told for how long it was waited.
    var wait: (Duration) -> Void = { _ in }
    var fatalError: KafkaError? { nil }

    func send(_ record: Record, token: Int) throws(KafkaError) {
        sent.append(record)
        let report = DeliveryReport(
            token: token, error: nil, topicPartition: TopicPartition(topic: record.topic, partition: 0), offset: 0)
        if isSilent { unreported.append(report) } else { reports.append(report) }
    }

    /// Tells what it kept quiet about.
    func deliverAll() {
        reports += unreported
        (unreported, isSilent) = ([], false)
    }

    func poll(timeout: Duration) -> [DeliveryReport] {
        if reports.isEmpty || isSlow { wait(timeout) }
        if isSlow, timeout == .zero { return [] }
        defer { reports = [] }
        return reports
    }

    func close(timeout: Duration) -> [DeliveryReport] { poll(timeout: timeout) }

    func hasSent(to topic: String) -> Bool { false }
}

/// A store whose connection can be said to be another one.
final class RenumberedDatabase: SQLDatabase {
    private let inner: any SQLDatabase
    var added = 0
    /// The server was away: whoever asks it next has another connection.
    var isConnectionLost = false
    /// What keeps it from taking writes.
    var obstacleMet: StorageError?
    /// No transaction comes to its end.
    var isAway = false

    init(_ inner: any SQLDatabase) { self.inner = inner }

    var engine: SQLEngine { inner.engine }
    var connectionNumber: Int { inner.connectionNumber + added }
    @discardableResult
    func transaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        if isConnectionLost { (isConnectionLost, added) = (false, added + 1) }
        if isAway { throw StorageError(kind: .unavailable, message: "away") }
        return try inner.transaction(body)
    }
    @discardableResult
    func exclusiveTransaction<T>(_ body: (any SQLTransaction) throws -> T) throws -> T {
        try inner.exclusiveTransaction(body)
    }
    func obstacle(to tables: [String], isSuspected: Bool) throws -> StorageError? { obstacleMet }
    func close() { inner.close() }
}
