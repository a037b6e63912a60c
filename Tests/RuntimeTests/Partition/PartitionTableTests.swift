// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import TestKit
import Testing

@testable import Runtime
@testable import Storage

/// The table in docs/loop.md "A partition": every state and every event of it.
@Suite struct PartitionTableTests {
    private static let place = TopicPartition(topic: "t", partition: 0)

    private static func record(_ offset: Int64, at time: Int64 = 77) -> KafkaRecord {
        KafkaRecord(topicPartition: place, offset: offset, timestampMs: time, key: nil, value: nil)
    }

    private static let position = Position(
        PartitionClaim(
            topic: place.topic, partition: place.partition, incarnation: 7, epoch: 1, nextOffset: 10, gap: nil,
            publishedThrough: 4, idleClaims: 1, suspectOffset: nil, suspectCount: 0, logTime: -1, forgottenBefore: -1,
            lastTime: 77, start: .resumed, unpublished: []),
        isSeen: false, batchSize: 500)

    private static let owed = [Partition.Owed(incarnation: 7, after: 4)]

    /// The events, by the page's words.
    private static let events: [(name: String, event: Partition.Event)] = [
        ("claimed, owes", .claimed(position, owed: owed, room: .enough)),
        ("claimed", .claimed(position, owed: [], room: .enough)),
        ("claimed, no room", .claimed(position, owed: [], room: .none)),
        ("doubted", .doubted),
        ("vanished", .displaced(.vanished)),
        ("out of range", .displaced(.outOfRange)),
        ("a part handed over", .handedOver(incarnation: 7, through: 6, isAll: false, room: .enough)),
        ("all handed over", .handedOver(incarnation: 7, through: 9, isAll: true, room: .enough)),
        ("alone", .alone(room: .enough)),
        ("filled", .filled),
        ("drained", .drained),
        ("records", .records([record(10)])),
        ("records of another log", .records([record(9, at: 78)])),
    ]

    /// The states, by the page's words, each as it comes about.
    private static func partition(_ state: String) throws -> Partition {
        var partition = Partition(isAlone: state != "shared")
        func reach(_ events: Partition.Event...) { for event in events { _ = partition.handle(event) } }
        switch state {
        case "assigned": break
        case "unclaimed": reach(.claimed(position, owed: [], room: .enough), .doubted)
        case "displaced": reach(.claimed(position, owed: [], room: .enough), .displaced(.replaced))
        case "backlog": reach(.claimed(position, owed: owed, room: .enough))
        case "shared", "live": reach(.claimed(position, owed: [], room: .enough))
        case "full": reach(.claimed(position, owed: [], room: .enough), .filled)
        default: Issue.record("there is no state \(state)")
        }
        try #require(name(partition.state) == state)
        return partition
    }

    private static func name(_ state: Partition.State) -> String {
        switch state {
        case .assigned: "assigned"
        case .unclaimed: "unclaimed"
        case .displaced: "displaced"
        case .backlog: "backlog"
        case .shared: "shared"
        case .full: "full"
        case .live: "live"
        }
    }

    private static func name(_ action: Partition.Action) -> String {
        switch action {
        case .restart: "restart"
        case .pause: "pause"
        case .resume: "resume"
        case .decide: "decide"
        }
    }

    @Test func everyCellIsAsThePageSays() throws {
        let grid = try Self.grid()
        #expect(grid.first.map { Array($0.dropFirst()) } == Self.events.map(\.name))
        for row in grid.dropFirst() {
            let state = row[0].trimmingCharacters(in: ["`"])
            for ((name, event), cell) in zip(Self.events, row.dropFirst()) {
                var partition = try Self.partition(state)
                let actions = partition.handle(event).map(Self.name)
                let after = Self.name(partition.state)
                let words = (after == state ? [] : ["→ \(after)"]) + actions
                #expect((words.isEmpty ? "–" : words.joined(separator: ", ")) == cell, "\(state) x \(name)")
            }
        }
    }

    /// The page's table, the head first.
    private static func grid() throws -> [[String]] {
        let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: repository.appending(path: "docs/loop.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("A partition\n") })
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("|") && !$0.hasPrefix("|-") }.map { line in
            line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
        let grid = rows.filter { $0.count == events.count + 1 }
        try #require(grid.count == 8, "a head and a row for each state")
        return grid
    }

    // MARK: What the table does not show

    /// What is to be done, with the offsets.
    private static func words(_ actions: [Partition.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .restart(let offset): "restart at \(offset)"
            case .decide(let records): "decide \(records.map { "\($0.offset)" }.joined(separator: " "))"
            case .pause, .resume: name(action)
            }
        }
    }

    /// What came while nothing could be decided is decided before what comes next, in order and once.
    @Test func whatWasHeldComesFirst() throws {
        var partition = try Self.partition("backlog")
        func tell(_ event: Partition.Event) -> [String] { Self.words(partition.handle(event)) }
        #expect(tell(.records([Self.record(10), Self.record(11)])) == ["pause"])
        #expect(tell(.records([Self.record(12)])) == [])
        let all = tell(.handedOver(incarnation: 7, through: 9, isAll: true, room: .enough))
        #expect(all == ["decide 10 11 12", "resume"])
        #expect(tell(.records([Self.record(13)])) == ["decide 13"])
    }

    /// A partition that had to wait goes on when half of its lane is free, and not at the first message.
    @Test func aLaneThatWasFullIsEmptiedByHalf() throws {
        var partition = try Self.partition("backlog")
        func tell(_ event: Partition.Event) -> [String] { Self.words(partition.handle(event)) }
        #expect(tell(.records([Self.record(10)])) == ["pause"])
        #expect(tell(.handedOver(incarnation: 7, through: 9, isAll: true, room: .little)) == [])
        #expect(partition.state == .full)
        #expect(tell(.drained) == ["decide 10", "resume"])
    }

    /// What another claim says comes before all that was read by an earlier one.
    @Test func aClaimBeginsAnew() throws {
        var partition = try Self.partition("backlog")
        func tell(_ event: Partition.Event) -> [String] { Self.words(partition.handle(event)) }
        #expect(tell(.records([Self.record(10)])) == ["pause"])
        #expect(tell(.doubted) == [])
        #expect(partition.held.isEmpty)
        #expect(tell(.claimed(Self.position, owed: [], room: .enough)) == ["restart at 9", "resume"])
    }

    /// Everything of before is handed over, oldest first.
    @Test func anEarlierIncarnationIsHandedOverToo() throws {
        var partition = Partition(isAlone: true)
        let owed = [Partition.Owed(incarnation: 5, after: 3)] + Self.owed
        _ = partition.handle(.claimed(Self.position, owed: owed, room: .enough))
        _ = partition.handle(.handedOver(incarnation: 5, through: 8, isAll: true, room: .enough))
        #expect(partition.state == .backlog(Self.owed))
        #expect(partition.position?.setAsideEnds == [5: 8])
    }

    /// Whatever comes in whatever order: reading is paused exactly while records may not be decided and some have come,
    /// and every record is decided once, in order.
    @Test func randomEvents() {
        runSequences(300) { seed in
            var random = SplitMix64(seed: seed)
            var partition = Partition(isAlone: Bool.random(using: &random))
            var (read, decided) = (Int64(10), Int64(10))
            var isPaused = false
            for _ in 0..<200 {
                var event = Self.events[Int.random(in: 0..<Self.events.count, using: &random)].event
                if case .records = event {
                    if isPaused { continue }
                    let count = Int64.random(in: 1...3, using: &random)
                    event = .records((read..<read + count).map { Self.record($0) })
                    read += count
                }
                for action in partition.handle(event) {
                    switch action {
                    case .restart(let offset): (read, decided) = (offset, offset)
                    case .pause:
                        #expect(!isPaused, "seed \(seed)")
                        isPaused = true
                    case .resume:
                        #expect(isPaused, "seed \(seed)")
                        isPaused = false
                    case .decide(let records):
                        for record in records {
                            #expect(record.offset >= decided, "seed \(seed)")
                            decided = record.offset + 1
                        }
                    }
                }
                #expect(partition.isPaused == isPaused, "seed \(seed)")
                if partition.state == .live { #expect(partition.held.isEmpty && !isPaused, "seed \(seed)") }
            }
        }
    }
}
