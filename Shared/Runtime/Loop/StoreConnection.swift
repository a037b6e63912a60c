// SPDX-License-Identifier: Apache-2.0

import Apps
import Storage

/// What the loop has from its store, and how the store behaves.
struct StoreConnection {
    /// The database connection that everything owned was claimed on.
    var claimedConnection = 0
    /// With the salt of the store that the partitions were claimed in.
    var secrets: DerivedSecrets
    /// The number of the apps file and the version by which is decided, see ``Deciders``; 0 while it is to be looked up.
    var decider: Int64 = 0
    /// What the last look met that keeps the store from taking writes.
    private var seen: StorageError?
    /// The last time that a lock was waited for in vain. No look sees that of a row.
    private var inVain: (error: StorageError, at: ContinuousClock.Instant)?
    /// Whether the last batch could not be decided for the database's sake. That it answers something else says nothing then.
    private(set) var isDecidingFailing = false
    /// How long to wait when the database fails again although it answered.
    private var pause = Backoff(from: .milliseconds(50), upTo: .seconds(3))

    /// What keeps the store from taking writes, as far as is known.
    var obstacle: StorageError? { seen ?? inVain?.error }

    init(secrets: DerivedSecrets) { self.secrets = secrets }

    /// A batch is decided: the next pause is the shortest again.
    mutating func committed() {
        pause.reset()
        isDecidingFailing = false
        inVain = nil
    }

    /// Partitions are claimed: the locks that this takes are free.
    mutating func claimed() { inVain = nil }

    /// It was looked for what keeps the store from taking writes.
    mutating func looked(_ obstacle: StorageError?, now: ContinuousClock.Instant) {
        // What was waited for in vain was the table that has become free. If a row of it is not, that is met again.
        if seen != nil, obstacle == nil { inVain = nil }
        seen = obstacle
        if let at = inVain?.at, at.duration(to: now) >= .seconds(10) { inVain = nil }
    }

    /// A lock did not become free in time.
    mutating func waitedInVain(_ error: StorageError, now: ContinuousClock.Instant) { inVain = (error, now) }

    /// A lock that a batch needs did not become free in time.
    mutating func heldUp() { isDecidingFailing = true }

    /// Nothing is to be decided.
    mutating func isIdle() { isDecidingFailing = false }

    /// - Returns: how long to wait, longer each time.
    mutating func failed(using random: inout any RandomNumberGenerator) -> Duration {
        isDecidingFailing = true
        return pause.nextSpread(using: &random)
    }
}
