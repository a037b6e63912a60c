// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Link
@testable import User

/// Whoever was active stays active until somebody else is, across both services. Random sequences found these
/// (``RandomSequenceTests``, ``Holders``).
@Suite struct GivingBackTests {
    /// How the phone's creation comes to nothing.
    enum End: CaseIterable { case confirmedAsFailure, reset, expired }

    /// U77, U79, L50. A tablet that a phone's creation has superseded asks for its user anew meanwhile, and waits for the
    /// phone from then on.
    @Test(arguments: End.allCases) func aTabletThatWaitsForAFailingCreationIsActiveAgain(_ end: End) throws {
        var world = World(seed: 1)
        try create("tablet", Fixture.tablet, in: &world)
        let user = try #require(world.links.install("demo", "tablet")?.userID)
        let command = CreateUser(installId: "phone", device: Fixture.phone, appSecret: Fixture.secret, linking: .linker)
        run(.create(command), "phone", in: &world)
        world.send(.request(LinkRequest(installId: "phone", externalId: "anna")), "request", Fixture.app)
        world.drain()
        #expect(world.links.install("demo", "phone")?.isActive == true)

        try create("tablet", Fixture.tablet, in: &world, number: 2)
        #expect(world.final["create 2"] == .user(user.text, isLinked: true, isRemoteEnabled: false))
        #expect(world.users.install("demo", "tablet")?.facts.inactiveBecause == .waitsForPhone)

        switch end {
        case .confirmedAsFailure: run(.confirmLink(ConfirmLink(installId: "phone", success: false)), "end", in: &world)
        case .reset: run(.reset(ResetUser(installId: "phone")), "end", in: &world)
        case .expired:
            world.now.milliseconds += 11 * Fixture.minute
            world.sendDue()
            world.drain()
        }
        #expect(world.links.install("demo", "phone")?.userID == nil)
        #expect(world.links.install("demo", "tablet")?.isActive == true)
        #expect(world.users.install("demo", "tablet")?.facts.isRemoteEnabled == true)
        #expect(world.events.last { $0 is UserActivated } as? UserActivated == .init(installId: "tablet", userId: user))
        try Invariants.check(world, "\(end)")
    }

    /// U77, U79, L24. A phone that lost its user for good stays inactive when a later creation on its successor is refused
    /// and a reset waits behind it, whichever of the two is decided first.
    @Test(arguments: 0..<20 as Range<UInt64>) func aRefusedCodeGivesNothingBack(_ seed: UInt64) throws {
        var world = World(seed: seed)
        for (number, phone) in ["old", "new", "newest"].enumerated() {
            try create(InstallID(phone), Fixture.phone, in: &world, number: number)
        }
        run(.reset(ResetUser(installId: "newest")), "reset", in: &world)
        #expect(world.links.installs.values.filter(\.isActive).isEmpty)
        let command = CreateUser(
            installId: "new", device: Fixture.phone, authCode: try code(of: "bert", "code of bert", in: &world))
        world.send(.create(command), "refused", Fixture.app)
        world.send(.reset(ResetUser(installId: "new")), "behind it", Fixture.app)
        world.drain()
        #expect(world.final["behind it"] == .reset)
        #expect(world.links.install("demo", "old")?.activity == .deactivated)
    }

    /// U77, U79. A code makes a phone active anew, and a reset ends that: the one that it took the user from has it again.
    @Test func anElectionThatAResetEndsIsUndone() throws {
        var undone = 0
        for seed in 0..<20 as Range<UInt64> {
            var world = World(seed: seed)
            for (number, phone) in ["old", "new"].enumerated() {
                try create(InstallID(phone), Fixture.phone, in: &world, number: number)
            }
            let text = try code(of: "anna", "code", in: &world)
            let command = CreateUser(installId: "old", device: Fixture.phone, authCode: text)
            world.send(.create(command), "anew", Fixture.app)
            world.send(.reset(ResetUser(installId: "old")), "behind it", Fixture.app)
            world.drain()
            #expect(world.links.install("demo", "old")?.userID == nil)
            // When the reset came in time; else it was one of a user that is there.
            guard world.final["anew"] == .rejected(.sdkResetInProgress) else { continue }
            undone += 1
            #expect(world.links.install("demo", "new")?.isActive == true, "seed \(seed)")
        }
        #expect(undone > 0)
    }

    /// By a code of Anna's.
    private func create(_ install: InstallID, _ device: Device, in world: inout World, number: Int = 1) throws {
        let text = try code(of: "anna", CommandID("code \(number)"), in: &world)
        let command = CreateUser(installId: install, device: device, authCode: text)
        run(.create(command), CommandID("create \(number)"), in: &world)
    }

    private func code(of externalID: ExternalID, _ id: CommandID, in world: inout World) throws -> String {
        run(.requestAuthCode(RequestAuthCode(externalId: externalID)), id, in: &world)
        guard case .code(let text)? = world.final[id] else { throw NoCode() }
        return text
    }

    private struct NoCode: Error {}

    private func run(_ command: UserCommand, _ id: CommandID, in world: inout World) {
        world.send(command, id, Fixture.app)
        world.drain()
    }
}
