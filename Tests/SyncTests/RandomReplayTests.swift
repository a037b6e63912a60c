// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// The sync service has lagged. A replay that knows when each command was decided comes to the same rows, all of them, and so
/// to the same MPIDs (docs/loop.md, "A replay").
@Suite struct KnowingReplayTests {
    @Test func allRowsAreTheSame() throws {
        var differed = 0
        try runSequences(40, until: { differed > 20 }) { seed in
            var commands = RandomCommands(seed: seed, isOfPeople: seed % 2 == 0, isOfRepairs: seed % 3 == 0)
            var log = try LaggingLog(SyncService(aliasDelay: .zero), seed: seed, start: World.start)
            for _ in 0..<60 {
                for _ in 0..<Int.random(in: 0...3, using: &log.random) {
                    let (profiles, aliases) = try log.live.known()
                    commands.held = try log.live.held()
                    let step = commands.next(profiles: profiles, aliases: aliases)
                    let key = step.command.deviceID?.text ?? step.command.mpids.first?.description ?? "another"
                    log.tell(step.command, step.context, key: key)
                }
                try log.decideSome().forEach { commands.note($0) }
            }
            while !log.isDecided { try log.decideSome() }
            let live = try log.live.rows()
            #expect(try log.replayed().rows() == live, "seed \(seed)")
            // By the order of the log alone, they would be others.
            differed += try log.replayed(knowing: false).rows() == live ? 0 : 1
        }
        #expect(differed > 20)
    }
}

/// S125, where nothing tells when commands were decided: what a few people and the link service say is decided in any order, as a service that lags on some partitions
/// does; some of them are erased. A replay in the log's order has nobody who was erased, and all who were not.
@Suite struct RandomReplayTests: ErasingTests {
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation, .userIDThenEmail])
    func nobodyIsBroughtBack(_ strategy: SyncStrategy) throws {
        var (renumbered, kept) = (0, 0)
        try runSequences(20, until: { renumbered > 10 && kept > 10 }) { seed in
            var story = Lagging(seed: seed, live: people(strategy))
            try story.run()
            let replay = people(strategy)
            story.log.replay(in: replay)
            let there = Lagging.names(in: replay)
            let trace = "\(strategy.name), seed \(seed)"
            for name in story.gone where there.contains(name) { Issue.record("\(name) is there again: \(trace)") }
            for name in story.left where !there.contains(name) { Issue.record("\(name) is gone: \(trace)") }
            renumbered += story.erased.count { replay.profile($0) == nil }
            kept += story.gone.count
            // Once more, into the store that has it all.
            let before = Lagging.names(in: replay)
            for record in story.log.records where record.isKept { ReplayLog.decide(record, in: replay) }
            try #require(Lagging.names(in: replay) == before, "\(trace)")
        }
        #expect(renumbered > 10 && kept > 10, "\(renumbered), \(kept)")
    }

    private func people(_ strategy: SyncStrategy) -> World {
        let world = world(strategy)
        world.settings.loginIdentities.insert(.other)
        world.settings.uniqueIdentities.insert(.other)
        return world
    }
}

/// A log, and who is there when it was decided with lags.
private struct Lagging: RandomSource, ErasingTests {
    var random: SplitMix64
    let live: World
    var log = ReplayLog()
    /// By their MPIDs, or by a name.
    private(set) var erased: [MPID] = []
    /// The latest erasure of each name that somebody had by then: the number of its record.
    private var ends: [String: Int] = [:]
    /// How much was logged when the last erasure of each person was over.
    private var over: [Character: Int] = [:]
    /// The latest record that gives each.
    private var given: [String: Int] = [:]
    /// The names that only changes give, by an MPID: whose it is in a replay, and whether anybody's, the log's order tells.
    private var changed: Set<String> = []
    /// How often somebody of the name was erased: the next one is another user.
    private var past: [String: Int] = [:]
    /// What is logged and not decided, by partition.
    private var waiting: [String: [ReplayLog.Record]] = [:]

    init(seed: UInt64, live: World) { (random, self.live) = (SplitMix64(seed: seed), live) }

    /// But for what only devices are called.
    private static func names(of profile: Profile) -> [Identity] {
        profile.identities.filter { $0.type != .deviceApplicationStamp }
    }

    static func names(in world: World) -> Set<String> {
        Set(world.state.profiles.values.flatMap { names(of: $0) }.map(\.value.text))
    }

    /// The names that nobody has or was given since the erasure.
    var gone: [String] {
        let there = Self.names(in: live)
        return ends.filter { !there.contains($0.key) && given[$0.key] ?? -1 < $0.value }.map(\.key).sorted()
    }

    /// The names that are there, and were given since the person's last erasure was over.
    var left: [String] {
        Self.names(in: live).filter { name in
            guard let number = given[name], let person = name.first, !changed.contains(name) else { return false }
            return number >= over[person] ?? 0
        }.sorted()
    }

    mutating func run() throws {
        for _ in 0..<40 {
            for _ in 0..<Int.random(in: 0...3, using: &random) { tell(command()) }
            if chance(30) { tellByMPID() }
            for _ in 0..<Int.random(in: 0...4, using: &random) { try decideSomething() }
        }
        while !waiting.isEmpty { try decideSomething() }
    }

    private mutating func tell(_ command: SyncCommand) {
        let record = log.append(command)
        waiting[lane(of: command), default: []].append(record)
        for identity in command.identities where !command.isErasure { given[identity.value.text] = record.number }
    }

    private func lane(of command: SyncCommand) -> String {
        switch command {
        case .linked: "link"
        case .answered: "answers"
        default: command.deviceID?.text ?? command.mpids.first?.description ?? "another"
        }
    }

    private mutating func decideSomething() throws {
        guard !waiting.isEmpty else { return }
        let lane = pick(waiting.keys.sorted())
        guard var records = waiting.removeValue(forKey: lane) else { return }
        let record = records.removeFirst()
        if !records.isEmpty { waiting[lane] = records }
        let before = live.state.profiles.values.filter { !$0.isErased }
        ReplayLog.decide(record, in: live, late: Int64(log.records.count - 1 - record.number))
        let gone = before.filter { live.profile($0.mpid)?.isErased == true }
        for profile in gone { note(profile, record) }
        for forward in live.last?.forwards ?? [] {
            let users = (forward.command as? ForgetPerson)?.userId.map { [$0] } ?? []
            tell(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part(users: users))))
        }
        for case let kept as KeepErased in (live.last?.due ?? []).map(\.command) { tell(.keepErased(kept)) }
        for name in gone.flatMap(\.identities).compactMap(\.value.text.first) { over[name] = log.records.count }
    }

    /// The profile went with what the record tells.
    private mutating func note(_ profile: Profile, _ record: ReplayLog.Record) {
        var end = record.number
        if case .keepErased(let kept) = record.command {
            end = Int((kept.erasedAt.milliseconds - World.start) / 1000)
        } else {
            erased.append(profile.mpid)
        }
        for identity in Self.names(of: profile) {
            let since = profile.namedAt(identity, live.settings) ?? .max
            if identity.type == .customerID { past[identity.value.text, default: 0] += 1 }
            guard since <= World.start + 1000 * Int64(end) else { continue }
            ends[identity.value.text] = max(ends[identity.value.text] ?? 0, end)
        }
    }

    private mutating func tellByMPID() {
        let named = live.state.profiles.values.filter { !Self.names(of: $0).isEmpty }.sorted { $0.mpid < $1.mpid }
        guard !named.isEmpty else { return }
        let profile = pick(named)
        let name = Self.names(of: profile)[0]
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2:
            let change = ModifyIdentities.Change(identityType: "other", newValue: "\(name.value.text)@late")
            changed.insert("\(name.value.text)@late")
            tell(.modify(ModifyIdentities(mpid: profile.mpid, changes: [change])))
        case 3...4: tell(.erase(EraseProfile(identities: [name.type.rawValue: name.value.text])))
        default: tell(.erase(EraseProfile(mpid: profile.mpid)))
        }
    }

    /// Where a login makes an anonymous profile known, an MPID may be another person's in a replay (docs/operations.md).
    private var converts: Bool { live.settings.strategy.newLogin == .convertAnonymous }

    private mutating func command() -> SyncCommand {
        let (name, device) = (pick(["a", "b", "c", "d", "e"]), pick(["d1", "d2", "d3", "d4", "d5"]))
        func move(_ operation: SyncCommand.Operation, _ identities: [String: String]) -> SyncCommand {
            let stamp = converts ? [:] : ["device_application_stamp": device]
            let request = SyncRequest(
                deviceId: DeviceID(device), knownIdentities: identities.merging(stamp) { $1 }.mapValues(Optional.some))
            return .move(operation, request)
        }
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2:
            return link(
                UserID("\(name)-\(past[name] ?? 0)"), ExternalID(name),
                at: World.start + 1000 * Int64(log.records.count))
        case 3...4: return move(.login, ["customerid": name])
        case 5: return move(.login, ["customerid": name, "email": "\(name)@x"])
        case 6: return move(.login, ["email": pick(["f@x", "g@x"])])
        case 7 where !converts: return move(.identify, [:])
        case 8 where !converts: return move(.logout, [:])
        default: return move(.login, ["customerid": name])
        }
    }
}

extension ReplayLog.Record {
    var isKept: Bool { if case .keepErased = command { true } else { false } }
}
