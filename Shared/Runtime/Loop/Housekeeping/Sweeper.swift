// SPDX-License-Identifier: Apache-2.0

import Storage

/// Forgets what is old in small steps, each a transaction of its own, so that batches come in between: looks through the
/// inbox's oldest generation, empties it, then deletes the sagas whose commands it knew. One replica does it, the owner of the
/// first partition.
struct Sweeper {
    enum State {
        /// The newest generation is looked at. Can become `carrying`.
        case idle
        /// What must stay is carried over into the newest generation. Can become `pruning`, `idle`.
        case carrying(InboxSweep)
        /// A generation is gone, and perhaps sagas whose commands it knew are not. Can become `idle`.
        case pruning
    }

    /// - Returns: whether a generation of the inbox was forgotten.
    /// - Parameters:
    ///   - keeper: the claim of the first partition; `nil` where another replica has it.
    ///   - logTime: the highest time of all logs that the replica reads: an idle log makes nothing old.
    ///   - retention: how long the inbox remembers; both in milliseconds.
    ///   - limit: of rows in a step.
    /// - Throws: `StorageError`. The same step is tried again later; a sweep begins anew, except where somebody reads the
    ///   table that is to be emptied.
    mutating func step(
        keeper: HeldPartition?, logTime: Int64, retention: Int64, limit: Int, on database: any SQLDatabase
    ) throws -> Bool {
        hasMore = false
        guard let keeper else {
            if case .carrying = state { state = .idle }
            return false
        }
        switch state {
        case .pruning:
            let count = try database.transaction {
                try Sagas.prune(olderThan: logTime - retention, limit: limit, in: $0)
            }
            hasMore = count >= limit
            if !hasMore { state = .idle }
            return false
        case .carrying(let sweep):
            return try carry(sweep, keeper, limit, database)
        case .idle:
            let sweep = try database.transaction {
                try Inbox.beginSweep(keeper: keeper, retention: retention, in: $0)
            }
            hasMore = sweep != nil
            state = sweep.map { .carrying($0) } ?? .idle
            return false
        }
    }

    private(set) var state = State.idle
    /// Whether the next step need not wait.
    private(set) var hasMore = false

    private mutating func carry(
        _ sweep: InboxSweep, _ keeper: HeldPartition, _ limit: Int, _ database: any SQLDatabase
    ) throws -> Bool {
        do {
            if sweep.isDone {
                try database.exclusiveTransaction { try Inbox.turn(sweep, keeper: keeper, in: $0) }
                state = .pruning
            } else {
                var sweep = sweep
                try database.transaction { try Inbox.carryOver(&sweep, keeper: keeper, limit: limit, in: $0) }
                state = .carrying(sweep)
            }
        } catch let error as StorageError where error == .generationIsRead {
            // What was looked through need not be looked through again.
            hasMore = false
            return false
        } catch {
            if (error as? StorageError)?.isLockTimeout != true { state = .idle }
            throw error
        }
        hasMore = true
        return sweep.isDone
    }
}
