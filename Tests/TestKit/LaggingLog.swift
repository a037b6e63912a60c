// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime
import Storage

/// What a service is told stands in a few partitions and is decided with lags, as by one that is behind on some of them. Then
/// it is decided once more, as a replay does it.
public struct LaggingLog<Service: CommandService>: RandomSource {
    public typealias Step = (command: Service.Command, context: DecisionContext)

    private struct Entry {
        var record: KafkaRecord
        var step: Step
        var decidedAt: Int64 = 0
    }

    public var random: SplitMix64
    /// What the service came to with its lags.
    public let live: ServiceStore<Service>
    private let service: Service
    private var log: [[Entry]] = Array(repeating: [], count: 4)
    /// How many of each partition are decided.
    private var decided = [0, 0, 0, 0]
    /// How many were told.
    public private(set) var count: Int64 = 0
    private var now: Int64

    /// When the first command is logged, in milliseconds.
    private let start: Int64

    public init(_ service: Service, seed: UInt64, start: Int64 = 0) throws {
        random = SplitMix64(seed: seed)
        self.service = service
        self.start = start
        now = start
        live = try ServiceStore(.sqlite)
    }

    private var latest: Int64 { start + count * 1000 }

    /// - Parameter key: commands with one key are decided in order.
    public mutating func tell(_ command: Service.Command, _ context: DecisionContext, key: String) {
        count += 1
        let partition = key.utf8.reduce(0) { ($0 + Int($1)) % log.count }
        var context = context
        context.command = CommandKey(app: context.app.id, source: "test", id: CommandID("c\(count)"))
        context.moment = Moment(milliseconds: latest, isBrokers: true)
        context.told = context.moment
        let record = KafkaRecord(
            topicPartition: TopicPartition(topic: "commands", partition: Int32(partition)),
            offset: Int64(log[partition].count), timestampMs: latest, key: nil, value: nil, headers: [])
        log[partition].append(Entry(record: record, step: (command, context)))
    }

    /// One batch: of some partitions what comes next, in their order, at one time.
    @discardableResult
    public mutating func decideSome() throws -> [Decision<Service.State.Change>] {
        now = max(now + 1, latest)
        var batch: [(Service.Command, DecisionContext)] = []
        for partition in log.indices where chance(40) {
            for place in (decided[partition]..<log[partition].count).prefix(Int.random(in: 1...3, using: &random)) {
                log[partition][place].decidedAt = now
                batch.append(Self.decided(log[partition][place].step, at: now))
                decided[partition] += 1
            }
        }
        return batch.isEmpty ? [] : try live.run(service, batch)
    }

    public var isDecided: Bool { decided == log.map(\.count) }

    /// Into an empty store.
    /// - Parameter knowing: whether it is told when each was decided.
    public func replayed(knowing: Bool = true) throws -> ServiceStore<Service> {
        let store = try ServiceStore<Service>(.sqlite)
        var replay = Replay(until: Timestamp(milliseconds: .max))
        let places = log.indices.map { TopicPartition(topic: "commands", partition: Int32($0)) }
        replay.assign(Set(places), of: "commands")
        for entry in log.joined() { replay.add(entry.record, decidedAt: knowing ? entry.decidedAt : nil) }
        places.forEach { replay.reachedEnd($0) }
        while let record = replay.next() {
            let entry = log[Int(record.topicPartition.partition)][Int(record.offset)]
            let time = knowing ? entry.decidedAt : record.timestampMs
            _ = try store.run(service, [Self.decided(entry.step, at: time)])
        }
        return store
    }

    private static func decided(_ step: Step, at time: Int64) -> (Service.Command, DecisionContext) {
        var step = step
        step.context.now = Timestamp(milliseconds: time)
        return (step.command, step.context)
    }
}
