// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Sync

/// Load, decide, save on real databases.
@Suite struct SyncServiceTests {
    /// Sequences that failed once: an alias, or an erasure, waited when its command came again (S69).
    private static let failedOnce: [UInt64] = [
        16_115_109_799_232_968_444, 18_222_552_613_660_664_776, 18_222_552_613_660_664_945,
    ]

    /// However commands are grouped into batches, the answers, events and tables are the same.
    @Test(arguments: SQLEngine.allCases) func batchesOfAnySizeEqualOneByOne(_ engine: SQLEngine) throws {
        try runSequences(engine == .sqlite ? 12 : 4) { try compareBatches(engine, $0) }
        try runSequences(engine == .sqlite ? 12 : 4) { try compareBatches(engine, $0, isOfPeople: true) }
        try runSequences(engine == .sqlite ? 12 : 4) { try compareBatches(engine, $0, isOfRepairs: true) }
        try runSequences(engine == .sqlite ? 12 : 4) { try compareBatches(engine, $0, isOfRetention: true) }
    }

    @Test(arguments: SQLEngine.allCases, failedOnce) func batchesThatFailedOnce(
        _ engine: SQLEngine, _ seed: UInt64
    ) throws {
        try compareBatches(engine, seed)
    }

    /// The same rows under both engines.
    @Test func enginesKeepTheSameRows() throws {
        try runSequences(4) { try compareEngines($0, isOfRepairs: $0 % 2 == 0) }
    }

    @Test(arguments: failedOnce) func enginesThatFailedOnce(_ seed: UInt64) throws { try compareEngines(seed) }

    private func compareBatches(
        _ engine: SQLEngine, _ seed: UInt64, isOfPeople: Bool = false, isOfRepairs: Bool = false,
        isOfRetention: Bool = false
    ) throws {
        let trace = Comment(rawValue: "seed \(seed)")
        let single = try SyncTestStore(engine)
        let batched = try SyncTestStore(engine)
        let (all, expected) = try oneByOne(single, seed, isOfPeople, isOfRepairs, isOfRetention)
        var random = SplitMix64(seed: seed)
        var steps = all
        var place = 0
        while !steps.isEmpty {
            let size = min(Int.random(in: 1...25, using: &random), steps.count)
            for (step, decision) in zip(steps, try batched.run(Array(steps.prefix(size)))) {
                let there = Comment(rawValue: "\(trace), step \(place): \(step.command)")
                try #require(Answer(decision.outcome) == Answer(expected[place].outcome), there)
                try #require(
                    decision.events.map { AnyHashable($0) } == expected[place].events.map { AnyHashable($0) }, there)
                place += 1
            }
            steps.removeFirst(size)
        }
        try #require(try batched.rows() == single.rows(), trace)
    }

    private func compareEngines(_ seed: UInt64, isOfRepairs: Bool = false) throws {
        let stores = try SQLEngine.allCases.map { try SyncTestStore($0) }
        for store in stores { _ = try oneByOne(store, seed, false, isOfRepairs) }
        try #require(try stores[0].rows() == stores[1].rows(), "seed \(seed)")
    }

    private func oneByOne(
        _ store: SyncTestStore, _ seed: UInt64, _ isOfPeople: Bool, _ isOfRepairs: Bool, _ isOfRetention: Bool = false
    ) throws -> ([RandomCommands.Step], [SyncDecider.Decision]) {
        var source = RandomCommands(
            seed: seed, isOfPeople: isOfPeople, isOfRepairs: isOfRepairs, isOfRetention: isOfRetention)
        var steps: [RandomCommands.Step] = []
        var decisions: [SyncDecider.Decision] = []
        for _ in 0..<60 {
            let (profiles, aliases) = try store.known()
            if isOfRepairs { source.held = try store.held() }
            if isOfRetention { (source.heard, source.heardDevices) = try store.heard() }
            let step = source.next(profiles: profiles, aliases: aliases)
            steps.append(step)
            decisions += try store.run([step])
            decisions.last.map { source.note($0) }
        }
        return (steps, decisions)
    }

    // MARK: Due aliases

    @Test(arguments: SQLEngine.allCases) func anAliasIsDueWhenItsTimeHasComeAndIsDoneOnce(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.link))
        func step(_ command: SyncCommand) -> RandomCommands.Step {
            world.count += 1
            return RandomCommands.Step(command: command, context: world.context)
        }
        func identify(_ value: String) -> SyncCommand {
            .move(.identify, SyncRequest(deviceId: "d", knownIdentities: ["ios_idfv": value]))
        }
        let made = try store.run([step(identify("1"))]) + store.run([step(identify("2"))])
        let mpids = made.compactMap { decision -> MPID? in
            guard case .sync(let result) = Answer(decision.outcome) else { return nil }
            return result.mpid
        }
        let alias = AliasUsers(sourceMPID: mpids[0], destinationMPID: mpids[1])
        let accepted = try store.run([step(.alias(alias))])
        guard case .alias(let result) = Answer(accepted[0].outcome) else { return #expect(Bool(false)) }
        #expect(result.appliesAt == Timestamp(milliseconds: world.now + 1000))

        let service = SyncService(aliasDelay: .seconds(1))
        func due(at time: Int64) throws -> [DueCommand] {
            try store.database.transaction {
                try service.due(now: Timestamp(milliseconds: time), limit: 10, in: $0)
            }
        }
        #expect(try due(at: world.now + 999).isEmpty)
        let first = try due(at: world.now + 1000)
        #expect(first.map(\.id.text) == [result.aliasId.text] && first.map(\.app) == ["demo"])
        #expect(try due(at: world.now + 1000).isEmpty, "asked a moment ago")
        let again = try due(at: world.now + 31_000)
        #expect(again.map(\.id) == first.map(\.id), "nobody decided it: asked again")
        #expect(again.map(\.dueAt) == first.map(\.dueAt) && first.map(\.dueAt) == [result.appliesAt])
        let command = try #require(first.first?.command as? ApplyAlias)
        let events = try store.run([step(.applyAlias(command)), step(.applyAlias(command))]).map(\.events.count)
        #expect(events == [1, 0])
        #expect(try due(at: world.now + 1_000_000).isEmpty)
    }

    /// S86: in one instant somebody logs in again and again, is erased, and the next one comes; each in a batch of its own.
    @Test(arguments: SQLEngine.allCases) func movesGoOnWhereAnErasureForgotTheDevice(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.conversion))
        world.principal = Principal(kind: .service, scopes: Set(Scope.allCases))
        func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            world.count += 1
            return try #require(
                try store.run([RandomCommands.Step(command: command, context: world.context)]).first)
        }
        func login(_ name: String) throws -> SyncResult {
            let request = SyncRequest(deviceId: "d", knownIdentities: ["customerid": name])
            guard case .sync(let result) = Answer(try run(.move(.login, request)).outcome) else {
                throw Rejection(.internalError)
            }
            return result
        }
        var moves = try (0..<3).map { _ in try login("anna") }
        let erasure = try run(.erase(EraseProfile(mpid: moves[0].mpid)))
        let told = erasure.events.compactMap { $0 as? CurrentUserErased }
        let erased = try #require(told.first).move
        #expect(try store.database.transaction { try $0.query("SELECT 1 FROM devices").isEmpty })
        moves.append(try login("berta"))
        let numbers = moves.compactMap(\.move)
        #expect(numbers.count == 4 && numbers[2] < erased && erased < numbers[3])
    }

    /// A device that only asked is forgotten when its bucket is full again.
    @Test(arguments: SQLEngine.allCases) func devicesOnWhichNobodyWasSeenAreForgotten(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.conversion))
        func run(_ command: SyncCommand) throws {
            _ = try store.run([RandomCommands.Step(command: command, context: world.context)])
            world.count += 1
        }
        try run(.search(SyncRequest(deviceId: "asks", knownIdentities: ["email": "e@mail"])))
        try run(.move(.identify, SyncRequest(deviceId: "used", knownIdentities: ["ios_idfv": "1"])))
        func devices(at time: Int64) throws -> [String] {
            try store.database.transaction {
                _ = try SyncService(aliasDelay: .zero).due(now: Timestamp(milliseconds: time), limit: 10, in: $0)
                return try $0.query("SELECT device_id FROM devices ORDER BY device_id").map { try $0.text(0) }
            }
        }
        #expect(try devices(at: world.now + 3_600_000) == ["asks", "used"])
        #expect(try devices(at: world.now + 3_600_001) == ["used"])
    }

    // MARK: Wiring

    @Test func knowsItsCommandsAndTheirScopes() throws {
        #expect(SyncService.name == "sync")
        let scopes: [String: Scope] = [
            "identity.sync.identify.v1": .identitySync, "identity.sync.login.v1": .identitySync,
            "identity.sync.logout.v1": .identitySync, "identity.sync.search.v1": .identitySync,
            "identity.sync.modify.v1": .identitySync, "identity.sync.alias.v1": .identitySync,
            "identity.sync.apply-alias.v1": .internal, "identity.sync.get-users.v1": .identitySync,
            "identity.sync.erase-profile.v1": .userDelete, "identity.sync.forget.v1": .internal,
            "identity.sync.keep-erased.v1": .internal,
            "identity.sync.detach.v1": .support, "identity.sync.allow.v1": .support,
            "identity.sync.restrict.v1": .support, "identity.sync.import-profiles.v1": .importing,
            "identity.sync.get-erasure.v1": .userDelete, "identity.sync.get-profile.v1": .support,
            "identity.sync.facts.v1": .support, "identity.sync.file-request.v1": .userDelete,
            "identity.sync.get-request.v1": .userDelete, "identity.sync.get-requests.v1": .userDelete,
            "identity.sync.cancel-request.v1": .userDelete, "identity.sync.get-request-results.v1": .support,
            "identity.sync.process-request.v1": .internal, "identity.sync.expire-profile.v1": .internal,
            "identity.sync.expire-device.v1": .internal,
        ]
        #expect(SyncService.inputs.scopes() == scopes)
    }

    /// A later version of the others may have words that this one does not know: an erasure ends all the same.
    @Test(arguments: [
        (#""rejected","reason":"A_LATER_REASON""#, false, false), (#""postponed""#, false, false),
        (#""pending""#, true, false), (#""succeeded","result":{"later":1}"#, false, false),
        (
            #""succeeded","result":{"requestId":"f","erasedAt":"1970-01-01T00:00:00.000Z","#
                + #""completedAt":"1970-01-01T00:00:00.000Z","subject":{"userIds":[],"mpids":[]},"#
                + #""done":{"later":{"rows":1}},"heldByOthers":0,"remains":[],"later":1}"#, false, true
        ),
    ]) func readsAnyAnswer(_ status: String, isPending: Bool, saysWhat: Bool) throws {
        let data = try JSONValue(
            parsing: Array(#"{"commandId":"f","commandType":"t","commandDigest":"d","status":\#(status)}"#.utf8))
        guard case .answered(let answer) = try SyncService.inputs.read("identity.reply.v1", data) else {
            Issue.record("no answer")
            return
        }
        #expect(answer == ForwardAnswer(forwardID: "f", isPending: isPending, part: saysWhat ? .part() : nil))
    }

    @Test(arguments: ["-1", "1h", "0.5", "31536001", " 1"]) func badAliasDelays(_ text: String) {
        let problem = #expect(throws: ConfigurationProblem.self) {
            try SyncService(environment: ["ALIAS_DELAY": text])
        }
        #expect(problem?.variable == "ALIAS_DELAY")
    }
}
