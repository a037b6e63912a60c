// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// What a few installs say is decided in any order, as a service that lags on some partitions does. A replay in the log's
/// order, which reads what was told then, comes to the same people (L80).
@Suite struct RandomReplayTests {
    @Test func theSamePeopleComeOutOfIt() throws {
        var (moved, erased) = (0, 0)
        try runSequences(60, until: { moved > 20 && erased > 20 }) { seed in
            for erases in [false, true] {
                var story = try Lagging(seed: seed, erases: erases)
                try story.run()
                let (live, replay) = (try People(story.live), try People(story.replayed()))
                let trace = "seed \(seed)"
                if !erases { #expect(replay == live, "\(trace)") }
                #expect(replay.named == live.named, "\(trace)")
                #expect(replay.alive.isDisjoint(with: story.erased), "\(trace)")
                // Without what was told, they would be others.
                moved += try People(story.replayed(recalls: false)) == live ? 0 : 1
                erased += story.erased.count
            }
        }
        #expect(moved > 20 && erased > 20, "\(moved), \(erased)")
    }
}

/// Who is there: user ids by external id and by install.
private struct People: Equatable {
    var named: [ExternalID: UserID] = [:]
    var installed: [InstallID: UserID] = [:]

    init(_ store: LinkTestStore) throws {
        let state = try store.database.transaction { transaction in
            LinkState(
                installs: try Install.table.find("app = $1", ["demo"], in: transaction),
                persons: try Person.table.find("app = $1", ["demo"], in: transaction))
        }
        for person in state.persons.values where !person.isErased {
            if let externalID = person.externalID { named[externalID] = person.userID }
        }
        for install in state.installs.values { installed[install.id] = install.userID }
    }

    var alive: Set<UserID> { Set(named.values).union(installed.values) }
}

/// A log, and the store that it was decided into with lags.
private struct Lagging: RandomSource {
    private struct Record {
        var number: Int
        var command: LinkCommand
    }

    var random: SplitMix64
    let live: LinkTestStore
    private let erases: Bool
    private(set) var erased: Set<UserID> = []
    private var log: [Record] = []
    private var waiting: [String: [Record]] = [:]
    private var events: [RecordedEvent] = []

    init(seed: UInt64, erases: Bool) throws {
        (random, self.erases) = (SplitMix64(seed: seed), erases)
        live = try LinkTestStore(.sqlite)
    }

    mutating func run() throws {
        for _ in 0..<30 {
            for _ in 0..<Int.random(in: 0...3, using: &random) { tell(command()) }
            for _ in 0..<Int.random(in: 0...3, using: &random) { try decideSomething() }
            if erases, chance(20), let user = try People(live).alive.sorted().first {
                erased.insert(user)
                tell(.eraseUser(EraseUser(userId: user)))
            }
        }
        while !waiting.isEmpty { try decideSomething() }
    }

    /// In the log's order, into an empty store.
    func replayed(recalls: Bool = true) throws -> LinkTestStore {
        let store = try LinkTestStore(.sqlite)
        if recalls { try store.database.transaction { try LinkService.keep(events, in: $0) } }
        for record in log {
            var context = context(record, late: 0)
            context.isPast = true
            _ = try store.run(LinkService(), [(record.command, context)])
        }
        return store
    }

    private mutating func tell(_ command: LinkCommand) {
        let record = Record(number: log.count, command: command)
        log.append(record)
        waiting[Self.lane(of: command), default: []].append(record)
    }

    /// Commands with one Kafka key are decided in order.
    private static func lane(of command: LinkCommand) -> String {
        switch command {
        case .eraseUser(let erase): erase.partitionSubject
        default: command.installID?.text ?? ""
        }
    }

    private mutating func decideSomething() throws {
        guard !waiting.isEmpty else { return }
        let lane = pick(waiting.keys.sorted())
        guard var records = waiting.removeValue(forKey: lane) else { return }
        let record = records.removeFirst()
        if !records.isEmpty { waiting[lane] = records }
        let context = context(record, late: Int64(log.count - 1 - record.number))
        let decision = try live.run(LinkService(), [(record.command, context)])[0]
        for (index, event) in decision.events.enumerated() {
            let id = CommandID(DerivedID.message(of: context.command, index: index))
            events.append(try Self.recorded(event, id, at: context.now))
        }
    }

    private static func recorded<Event: EventMessage>(
        _ event: Event, _ id: CommandID, at time: Timestamp
    ) throws -> RecordedEvent {
        RecordedEvent(
            id: id, type: Event.type, time: time, data: try JSONView(parsing: try WireJSONEncoder().encode(event)))
    }

    /// - Parameter late: how many seconds after it was logged it is decided.
    private func context(_ record: Record, late: Int64) -> DecisionContext {
        let logged = 1_000_000 + 1000 * Int64(record.number)
        return Fixture.context(
            id: CommandID("c\(record.number)"), moment: Moment(milliseconds: logged, isBrokers: true),
            now: logged + 1000 * late)
    }

    private mutating func command() -> LinkCommand {
        let install = InstallID("i\(Int.random(in: 0...5, using: &random))")
        let externalID = pick(["anna", "bert", "carl"] as [ExternalID])
        switch Int.random(in: 0..<10, using: &random) {
        case 0...1: return .registerInstall(RegisterInstall(installId: install, device: Fixture.phone, user: .none))
        case 2: return .registerInstall(RegisterInstall(installId: install, device: Fixture.phone, user: .new))
        case 3: return .detachInstall(DetachInstall(installId: install, cause: .reset))
        case 4:
            return .establish(
                EstablishLink(installId: install, device: Fixture.phone, externalId: externalID, mode: .create))
        default: return Fixture.request(install, externalID)
        }
    }
}
