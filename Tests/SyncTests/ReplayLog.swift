// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import Sync

/// What is told to the sync service, in its order, a second apart. Whoever lags decides it in another one.
struct ReplayLog {
    struct Record {
        var number: Int
        var command: SyncCommand
    }

    private(set) var records: [Record] = []
    /// What the last command that was decided sends to others.
    private(set) var forwards: [Forward] = []

    mutating func append(_ command: SyncCommand) -> Record {
        records.append(Record(number: records.count, command: command))
        return records[records.count - 1]
    }

    /// As it was decided once: what the service tells itself is logged, and decided.
    @discardableResult
    mutating func live(_ record: Record, in world: World) -> Answer {
        let answer = Self.decide(record, in: world, late: Int64(records.count - 1 - record.number))
        let last = world.last
        for due in last?.due ?? [] {
            guard let kept = due.command as? KeepErased else { continue }
            live(append(.keepErased(kept)), in: world)
        }
        (world.last, forwards) = (last, last?.forwards ?? [])
        return answer
    }

    @discardableResult
    mutating func live(_ command: SyncCommand, in world: World) -> Answer { live(append(command), in: world) }

    /// - Parameter late: how many seconds after it was logged.
    @discardableResult
    static func decide(_ record: Record, in world: World, late: Int64 = 0) -> Answer {
        let logged = World.start + 1000 * Int64(record.number)
        (world.count, world.now, world.lateness) = (record.number - 1, logged + 1000 * (late - 1), 1000 * late)
        return world.run(record.command)
    }

    func replay(in world: World) {
        for record in records { Self.decide(record, in: world) }
    }
}
