// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging

/// What is done now and then, between batches: each with its time, and what it remembers from one time to the next.
struct Housekeeping {
    /// What is cheap, and nearly always comes to nothing.
    var round: Ticker
    /// The groups are told how far this replica has come.
    var commit: Ticker
    /// The apps file is looked at.
    var reload: Ticker
    /// The store is looked at, and what is old in it.
    var store: Ticker
    var sweeper = Sweeper()
    var lateDryRuns = LateDryRuns()
    var keys = KeyExpiry()
    /// Others are told how this replica is doing.
    var status: Ticker
    /// What was decided since they were told last.
    var tally: StatusTally
    /// How many records of the past are replayed by the log's time, and when that is said.
    var untold = 0
    var untoldSaid: Ticker
    /// `nil` where replicas share the store, and so the topics.
    var soleReader: SoleReader?
    /// Whether each group has given what this replica is to have, since its start.
    var isSettled = false

    init(_ configuration: ServiceConfiguration, now: ContinuousClock.Instant) {
        round = Ticker(every: .seconds(1), from: now)
        commit = Ticker(every: .seconds(1), from: now)
        reload = Ticker(every: .seconds(2), from: now)
        store = Ticker(every: .seconds(5), from: now)
        status = Ticker(every: ReplicaStatus.period, from: now - ReplicaStatus.period + .seconds(2))
        tally = StatusTally(from: now)
        untoldSaid = Ticker(every: .seconds(10), from: now)
        if !configuration.database.isShared {
            soleReader = SoleReader(sessionTimeout: configuration.kafka.sessionTimeout)
        }
    }
}
