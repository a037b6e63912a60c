// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Runtime
@testable import Storage

/// What is written down of partitions, and what is still owed.
@Suite struct PartitionsTests {
    private static let topic = "t"

    private func claim(
        _ partition: Int32, next: Int64? = 0, published: Int64 = -1, epoch: Int64 = 1, idle: Int64 = 1,
        suspect: Int64? = nil, unpublished: [SetAsideIncarnation] = [], lastTime: Int64? = nil
    ) -> PartitionClaim {
        PartitionClaim(
            topic: Self.topic, partition: partition, incarnation: 7, epoch: epoch, nextOffset: next, gap: nil,
            publishedThrough: published, idleClaims: idle, suspectOffset: suspect, suspectCount: suspect == nil ? 0 : 1,
            logTime: -1,
            forgottenBefore: -1, lastTime: lastTime, start: .resumed, unpublished: unpublished)
    }

    private func record(_ partition: Int32, _ offset: Int64, at time: Int64 = -1) -> KafkaRecord {
        KafkaRecord(topicPartition: place(partition), offset: offset, timestampMs: time, key: nil, value: nil)
    }

    private func lane(_ partition: Int32, _ incarnation: Int64 = 7) -> Lane {
        Lane(partition: place(partition), incarnation: incarnation)
    }

    /// Decides them, as a commit does.
    private func decide(_ records: [KafkaRecord], _ partitions: inout Partitions) {
        partitions.decided(partitions.updates(for: records, now: 1000))
    }

    private func place(_ partition: Int32) -> TopicPartition { TopicPartition(topic: Self.topic, partition: partition) }

    @Test func onlyOwnedAndUndecidedRecordsAreWanted() {
        var partitions = Partitions(batchSize: 500)
        #expect(!partitions.wants(record(0, 0)))
        partitions.add(claim(0, next: 5))
        #expect(!partitions.wants(record(0, 4)))
        #expect(partitions.wants(record(0, 5)))
        #expect(!partitions.wants(record(1, 5)))
        decide([record(0, 5), record(0, 6)], &partitions)
        #expect(!partitions.wants(record(0, 6)))
        #expect(partitions.wants(record(0, 7)))
        partitions.remove([place(0)])
        #expect(!partitions.wants(record(0, 7)))
        #expect(partitions.isEmpty)
    }

    @Test func aNewPartitionIsReadFromAnyOffset() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: nil))
        #expect(partitions.wants(record(0, 0)))
        #expect(partitions.wants(record(0, 1000)))
    }

    @Test func updatesNameEpochLastOffsetAndWhatIsPublished() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(1, next: 3, published: 2, epoch: 4))
        partitions.add(claim(0, next: 0, epoch: 9))
        partitions.published([lane(1): 2, lane(0): 5])
        let updates = partitions.updates(
            for: [record(1, 3), record(0, 8, at: 50), record(1, 4), record(2, 1)], now: 1000)
        #expect(
            updates == [
                ProgressUpdate(
                    topic: Self.topic, partition: 0, epoch: 9, expectedOffset: 0, nextOffset: 9, publishedThrough: 5,
                    logTime: 50, lastTime: 50),
                ProgressUpdate(
                    topic: Self.topic, partition: 1, epoch: 4, expectedOffset: 3, nextOffset: 5, publishedThrough: 2,
                    logTime: -1, lastTime: -1),
            ])
    }

    @Test func publishingIsSavedOnce() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 3, published: 2))
        // What the store had published may have left rows.
        #expect(partitions.unsaved.map(\.publishedThrough) == [2])
        #expect(partitions.unremoved([place(0)]).map(\.through) == [2])
        partitions.removed(partitions.unremoved([place(0)]))
        #expect(partitions.unsaved.isEmpty)
        partitions.published([lane(0): 9, lane(5): 1])
        #expect(
            partitions.unsaved == [PublishedUpdate(topic: Self.topic, partition: 0, epoch: 1, publishedThrough: 9)])
        partitions.saved(partitions.unsaved)
        #expect(partitions.unsaved.isEmpty)
    }

    /// Whoever measures the lag by the groups' offsets sees each partition from its claim on, as the store has it.
    @Test func theGroupIsToldWhatTheStoreHas() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 3, published: 2))
        partitions.add(claim(1, next: nil))
        #expect(partitions.uncommitted == [place(0): 3, place(1): 0])
        partitions.committed([place(0)])
        #expect(partitions.uncommitted == [place(1): 0], "what was not handed over is handed over later")
        partitions.committed([place(1)])
        #expect(partitions.uncommitted.isEmpty)
        partitions.decided(partitions.updates(for: [record(0, 4)], now: 1000))
        #expect(partitions.uncommitted == [place(0): 5])
    }

    /// The next commit expects what the last one left, and the first one what the claim found.
    @Test func updatesExpectWhatTheStoreHolds() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: nil))
        #expect(partitions.updates(for: [record(0, 4)], now: 1000).map(\.expectedOffset) == [nil])
        decide([record(0, 4)], &partitions)
        #expect(partitions.updates(for: [record(0, 9)], now: 1000).map(\.expectedOffset) == [5])
    }

    /// Reading goes on one record earlier than deciding, to see whether it is still the same log.
    @Test func aLogIsKnownByItsLastRecord() {
        var partitions = Partitions(batchSize: 500)
        for partition in Int32(0)..<4 {
            partitions.add(claim(partition, next: 10, lastTime: partition == 3 ? nil : 77))
        }
        #expect((Int32(0)..<4).map { partitions.start(of: place($0)) } == [9, 9, 9, 10])
        let replaced = partitions.check([record(0, 9, at: 77), record(1, 9, at: 78), record(2, 10), record(3, 10)])
        #expect(replaced == [place(1)])
        #expect(partitions.start(of: place(0)) == 10, "seen")
        #expect(partitions.start(of: place(1)) == 9)
        #expect(partitions.start(of: place(2)) == 10, "the record before is gone, which proves nothing")
        #expect(!partitions.wants(record(0, 9, at: 77)))
        _ = partitions.check([record(1, 9, at: 77)])
        #expect(partitions[place(1)]?.state == .displaced(.replaced), "until it is claimed again")
    }

    /// A record from the future makes nothing old.
    @Test func theLogsTimeNeverRunsAheadOfNow() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0))
        #expect(partitions.updates(for: [record(0, 0, at: 5000)], now: 1000).map(\.logTime) == [1000])
        decide([record(0, 0, at: 700)], &partitions)
        #expect(partitions.updates(for: [record(0, 1, at: 20)], now: 1000).map(\.logTime) == [700])
    }

    /// Everything of before comes first, oldest first, and what this process has on its way already is left out.
    @Test func whatIsOwedIsWorkedOffInOrder() {
        var partitions = Partitions(batchSize: 500)
        let old = SetAsideIncarnation(incarnation: 5, publishedThrough: 3)
        partitions.add(claim(0, next: 10, published: 4, unpublished: [old])) { lane, through in
            lane.incarnation == 7 ? max(through, 6) : through
        }
        #expect(partitions.owing == [place(0)])
        #expect(
            partitions.owed(place(0)) == [
                Partition.Owed(incarnation: 5, after: 3), Partition.Owed(incarnation: 7, after: 6),
            ])
        partitions.handedOver(place(0), 5, through: 8, isAll: false)
        partitions.published([lane(0, 5): 8])
        #expect(partitions.unsavedSetAside.map(\.isAll) == [false])
        partitions.handedOver(place(0), 5, through: 9, isAll: true)
        #expect(partitions.owed(place(0)).map(\.incarnation) == [7])
        partitions.published([lane(0, 5): 9])
        #expect(partitions.unsavedSetAside.map(\.through) == [9])
        #expect(partitions.unsavedSetAside.map(\.isAll) == [true])
        partitions.savedSetAside(lane(0, 5))
        #expect(partitions.unsavedSetAside.isEmpty)
        #expect(partitions.position(place(0))?.publishedThrough == 4)
        partitions.handedOver(place(0), 7, through: 9, isAll: true)
        #expect(partitions.owing.isEmpty)
        partitions.published([lane(0): 9])
        #expect(partitions.unsavedSetAside.isEmpty)
        #expect(partitions.position(place(0))?.publishedThrough == 9)
    }

    /// The store is an earlier copy: what was handed over after it says nothing about what is decided again.
    @Test func deliveriesOfAStoreThatWentBackDoNotCount() throws {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 20, published: 19))
        let before = try #require(partitions.lane(place(0)))
        partitions.add(claim(0, next: 10, published: 7, epoch: 2)) { $0 == before ? 25 : $1 }
        #expect(partitions.lane(place(0)) != before)
        #expect(partitions.owed(place(0)) == [Partition.Owed(incarnation: 7, after: 7)])
        partitions.published([before: 25])
        #expect(partitions.unsavedSetAside.isEmpty)
        #expect(partitions.position(place(0))?.publishedThrough == 7)
        partitions.published([try #require(partitions.lane(place(0))): 9])
        #expect(partitions.position(place(0))?.publishedThrough == 9)
    }

    @Test func nothingIsOwedWhenAllIsPublished() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 10, published: 9))
        partitions.add(claim(1, next: nil))
        #expect(partitions.owing.isEmpty)
        partitions.add(claim(3, next: 10, published: 8))
        #expect(partitions.owing == [place(3)], "the last one is owed")
    }

    /// Nothing is published twice, and what was delivered while the partition was nobody's is known by the end behind it.
    @Test func whatWasHandedOverBeforeIsOwedItsEnd() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 10, published: 4)) { max($1, 9) }
        #expect(partitions.owed(place(0)) == [Partition.Owed(incarnation: 7, after: 9)])
    }

    @Test func publishingNeverGoesBack() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 10, published: 9))
        partitions.published([lane(0): 4])
        #expect(partitions.position(place(0))?.publishedThrough == 9)
        #expect(partitions.unsaved.map(\.publishedThrough) == [9])
    }

    /// Claims alone say little: one batch is tried with a mark, and with progress the doubt is over.
    @Test func aPartitionThatNobodyGetsPastIsDoubtful() {
        var partitions = Partitions(batchSize: 500)
        for idle in Int64(1)...5 {
            partitions.add(claim(0, next: 4, idle: idle))
            #expect(partitions.position(place(0))?.isDoubtful == (idle >= Position.doubtfulClaims))
            #expect(partitions.position(place(0))?.isSuspicious == false)
        }
        #expect(Position.doubtfulClaims == 3)
        partitions.add(claim(1, next: 4, idle: 9))
        decide([record(0, 4)], &partitions)
        #expect(partitions.position(place(0))?.isDoubtful == false)
        #expect(partitions.position(place(1))?.isDoubtful == true)
    }

    /// With a mark it is clear that a process ended while it tried: no more batches there.
    @Test func aMarkedPartitionIsSuspicious() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 4, idle: 9, suspect: 4))
        #expect(
            partitions.position(place(0))?.isSuspicious == true && partitions.position(place(0))?.isDoubtful == false)
        partitions.add(claim(0, next: 5, idle: 9, suspect: 4))
        #expect(partitions.position(place(0))?.isSuspicious == false, "the marked one is passed")
    }

    /// The deadly record may be any of the batch: with one record passed the next one is as suspicious.
    @Test func aPartitionStaysSuspiciousForAWholeBatch() {
        var partitions = Partitions(batchSize: 500)
        partitions.add(claim(0, next: 4, suspect: 4))
        for offset in Int64(4)..<14 {
            #expect(partitions.position(place(0))?.isSuspicious == true, "\(offset)")
            decide([record(0, offset)], &partitions)
        }
        decide((14..<1000).map { record(0, $0) }, &partitions)
        #expect(partitions.position(place(0))?.isSuspicious == false)
    }

    /// Against a naive model: whatever happens, nothing that is not published counts as published, nothing is decided
    /// twice, and in the end everything is saved.
    @Test func randomSequences() {
        var random = SplitMix64(seed: testSeed)
        for _ in 0..<300 {
            var partitions = Partitions(batchSize: 500)
            var next: [Int32: Int64] = [:]
            var published: [Int32: Int64] = [:]
            var stored: [Int32: (next: Int64, published: Int64)] = [:]
            for _ in 0..<60 {
                let partition = Int32.random(in: 0..<3, using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0 where next[partition] == nil:
                    let row = stored[partition] ?? (0, -1)
                    partitions.add(claim(partition, next: row.next, published: row.published))
                    (next[partition], published[partition]) = (row.next, row.published)
                case 1:
                    partitions.remove([place(partition)])
                    (next[partition], published[partition]) = (nil, nil)
                case 2, 3:
                    let start = next[partition] ?? 0
                    let records = (0..<3).map { record(partition, start + Int64($0) - 1) }.filter(partitions.wants)
                    #expect(
                        records.map(\.offset)
                            == (next[partition].map { n in [n - 1, n, n + 1].filter { $0 >= n && $0 >= 0 } } ?? []))
                    for update in partitions.updates(for: records, now: 1000) {
                        stored[update.partition] = (
                            update.nextOffset, max(stored[update.partition]?.published ?? -1, update.publishedThrough)
                        )
                    }
                    decide(records, &partitions)
                    if let last = records.last { next[partition] = last.offset + 1 }
                case 4:
                    guard let upTo = next[partition], let from = published[partition], upTo - 1 > from else { continue }
                    let through = Int64.random(in: from + 1...upTo - 1, using: &random)
                    partitions.published([lane(partition): through])
                    published[partition] = through
                default:
                    for update in partitions.unsaved {
                        stored[update.partition]?.published = update.publishedThrough
                    }
                    partitions.saved(partitions.unsaved)
                    for (partition, through) in published where through >= 0 {
                        #expect(stored[partition]?.published == through)
                    }
                }
                for state in partitions.positions {
                    let partition = state.partition
                    #expect(state.nextOffset == next[partition.partition])
                    #expect(state.publishedThrough == published[partition.partition])
                    #expect(state.savedThrough <= state.publishedThrough)
                    #expect(state.publishedThrough < state.nextOffset)
                }
            }
        }
    }
}

extension Partitions {
    /// As a rebalance does.
    fileprivate mutating func add(
        _ claim: PartitionClaim, isSeen: Bool = false, handed: (Lane, Int64) -> Int64 = { $1 }
    ) {
        assign([TopicPartition(topic: claim.topic, partition: claim.partition)], isAlone: true)
        _ = claimed(claim, isSeen: isSeen, handed: handed)
    }

    fileprivate var owing: [TopicPartition] { places(\.isBacklog) }

    fileprivate func owed(_ partition: TopicPartition) -> [Partition.Owed] {
        if case .backlog(let owed)? = self[partition]?.state { owed } else { [] }
    }

    fileprivate mutating func handedOver(
        _ partition: TopicPartition, _ incarnation: Int64, through: Int64, isAll: Bool
    ) {
        _ = handle(.handedOver(incarnation: incarnation, through: through, isAll: isAll, room: .enough), at: partition)
    }

    fileprivate func start(of partition: TopicPartition) -> Int64? { position(partition)?.start }

    /// - Returns: the partitions that have another record at the place of the last one decided.
    fileprivate mutating func check(_ records: [KafkaRecord]) -> Set<TopicPartition> {
        _ = take(records)
        return Set(places { $0 == .displaced(.replaced) })
    }
}
