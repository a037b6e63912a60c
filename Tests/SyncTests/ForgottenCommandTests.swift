// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Sync

/// Commands that the inbox has forgotten come again, on real databases.
@Suite struct ForgottenCommandTests {
    /// S69. The second time with another window, as a source may that uses an id twice.
    @Test(arguments: SQLEngine.allCases) func anAliasThatWaitsIsAnsweredAsBefore(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.link))
        func step(_ command: SyncCommand) -> RandomCommands.Step {
            RandomCommands.Step(command: command, context: world.context)
        }
        var mpids: [MPID] = []
        for value in ["1", "2"] {
            let request = SyncRequest(deviceId: "d", knownIdentities: ["ios_idfv": value])
            let answer = Answer(try store.run([step(.move(.identify, request))])[0].outcome)
            guard case .sync(let result) = answer else { return #expect(Bool(false)) }
            mpids.append(result.mpid)
            world.count += 1
        }
        func alias(from start: Int64, to end: Int64) -> SyncCommand {
            .alias(
                AliasUsers(
                    sourceMPID: mpids[0], destinationMPID: mpids[1], startUnixtimeMs: World.start - start,
                    endUnixtimeMs: World.start - end))
        }
        let first = try store.run([step(alias(from: 2000, to: 1000))])[0]
        guard case .alias(let result) = Answer(first.outcome) else { return #expect(Bool(false)) }
        let rows = try store.rows()
        world.now += 500
        for again in [alias(from: 2000, to: 1000), alias(from: 4000, to: 3000)] {
            let decision = try store.run([step(again)])[0]
            #expect(Answer(decision.outcome) == .alias(result) && decision.events.isEmpty)
            #expect(try store.rows() == rows)
        }
        // Once it is applied, another one may wait under its id, also within one batch.
        let apply = SyncCommand.applyAlias(ApplyAlias(aliasId: result.aliasId, destinationMPID: mpids[1]))
        #expect(try store.run([step(apply), step(alias(from: 4000, to: 3000))]).map(\.events.count) == [1, 0])
        #expect(try store.count("aliases") == 1)
        #expect(try store.run([step(apply), step(apply)]).map(\.events.count) == [1, 0])
        #expect(try store.count("aliases") == 0)
    }

    /// S69. Whom it erased is not found any more, and what it waits for must not be lost over that.
    @Test(
        arguments: SQLEngine.allCases,
        [
            SyncCommand.erase(EraseProfile(identities: ["customerid": "anna"])),
            .forget(ForgetProfiles(externalId: "anna")),
        ])
    func anErasureThatWaitsIsAnsweredAsBefore(_ engine: SQLEngine, _ command: SyncCommand) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.conversion))
        func step(_ command: SyncCommand) -> RandomCommands.Step {
            RandomCommands.Step(command: command, context: world.context)
        }
        var mpids: [MPID] = []
        for name in ["anna", "bob"] {
            let request = SyncRequest(deviceId: DeviceID(name), knownIdentities: ["customerid": name])
            let answer = Answer(try store.run([step(.move(.login, request))])[0].outcome)
            guard case .sync(let result) = answer else { return #expect(Bool(false)) }
            mpids.append(result.mpid)
            world.count += 1
        }
        let first = try store.run([step(command)])[0]
        #expect(Answer(first.outcome) == .pending && !first.forwards.isEmpty)
        let rows = try store.rows()
        for again in [command, .erase(EraseProfile(mpid: mpids[0]))] {
            let decision = try store.run([step(again)])[0]
            #expect(Answer(decision.outcome) == .pending && decision.forwards.isEmpty && decision.events.isEmpty)
            #expect(try store.rows() == rows)
        }
        // Once it has ended, another one may wait under its id, also within one batch.
        let answers = first.forwards.map { forward in
            step(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part())))
        }
        let settled = try store.run(answers + [step(.erase(EraseProfile(mpid: mpids[1])))]).flatMap(\.settlements)
        guard settled.count == 1, case .certificate(let gone) = Answer(settled[0].outcome) else {
            Issue.record("not settled: \(settled)")
            return
        }
        #expect(gone.mpids == [mpids[0]] && gone.isComplete)
        let waiting = try store.database.transaction {
            try $0.query("SELECT certificate FROM erasures").map {
                try ErasureCertificate(storedBytes: $0.blob(0))
            }
        }
        #expect(waiting.map(\.subject.mpids) == [[mpids[1]]])
    }

    /// S97. A source goes with whom it was aliased into, and whoever erases one of them again finds one certificate.
    @Test(arguments: SQLEngine.allCases) func whoWentTogetherIsErasedAgain(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.link))
        func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            world.count += 1
            return try store.run([RandomCommands.Step(command: command, context: world.context)])[0]
        }
        let mpids = try ["1", "2"].map { value in
            let request = SyncRequest(deviceId: DeviceID("d\(value)"), knownIdentities: ["ios_idfv": value])
            guard case .sync(let result) = Answer(try run(.move(.identify, request)).outcome) else {
                throw Unexpected()
            }
            return result.mpid
        }
        let alias = AliasUsers(
            sourceMPID: mpids[0], destinationMPID: mpids[1], startUnixtimeMs: World.start - 2000,
            endUnixtimeMs: World.start - 1000)
        guard case .alias(let waiting) = Answer(try run(.alias(alias)).outcome) else { throw Unexpected() }
        _ = try run(.applyAlias(ApplyAlias(aliasId: waiting.aliasId, destinationMPID: mpids[1])))
        for mpid in [mpids[1], mpids[0], mpids[1]] {
            #expect(Answer(try run(.erase(EraseProfile(mpid: mpid))).outcome) == .pending)
            #expect(try store.count("certificates") == 2)
        }
    }

    /// S97. The link service's part may name profiles that went before, of the same person: they have a certificate.
    @Test(arguments: SQLEngine.allCases) func aPartMayNameWhoWentBefore(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.conversion))
        func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            world.count += 1
            return try store.run([RandomCommands.Step(command: command, context: world.context)])[0]
        }
        var gone: [MPID] = []
        for device in ["d1", "d2"] as [DeviceID] {
            let request = SyncRequest(deviceId: device, knownIdentities: ["customerid": "anna"])
            guard case .sync(let result) = Answer(try run(.move(.login, request)).outcome) else { throw Unexpected() }
            gone.append(result.mpid)
            var part = ErasureCertificate.part()
            part.subject.mpids = gone
            let ends = try run(.erase(EraseProfile(mpid: result.mpid))).forwards.flatMap { forward in
                let answer = ForwardAnswer(forwardID: forward.id, isPending: false, part: part)
                return try run(.answered(answer)).settlements
            }
            guard ends.count == 1, case .certificate(let certificate) = Answer(ends[0].outcome) else {
                throw Unexpected()
            }
            #expect(certificate.mpids == gone.sorted() && certificate.isComplete)
        }
        #expect(gone[0] != gone[1])
        #expect(try store.count("certificates") == 2)
    }

    private struct Unexpected: Error {}

    /// A command that the inbox has forgotten makes another profile: MPIDs are never used twice.
    @Test(arguments: SQLEngine.allCases) func aForgottenCommandGetsTheNextMPID(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = World(.worked(.conversion))
        let logout = SyncCommand.move(.logout, SyncRequest(deviceId: "d", knownIdentities: ["ios_idfv": "1"]))
        var made: Set<MPID> = []
        for _ in 0..<4 {
            let decision = try store.run([RandomCommands.Step(command: logout, context: world.context)])[0]
            guard case .sync(let result) = Answer(decision.outcome) else { return #expect(Bool(false)) }
            #expect(made.insert(result.mpid).inserted)
        }
        #expect(made == Set((0..<4).map { world.context.newMPID($0) }))
    }
}
