// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// Support gives somebody an external id that was another user's until then, of whom it is read later (docs/sync.md S122).
@Suite struct TakenNameTests: ErasingTests {
    /// The profile of `user-1`, who was anna and has got the name of `user-2`, and that of `user-2`, of whom it is yet to be read.
    private func taken(_ world: World) throws -> (mine: MPID, other: MPID, linkedAt: Int64) {
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        let other = try #require(world.login(["customerid": "annette"], on: "d2")?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(link("user-2", "annette", at: linkedAt))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 2))
        return (mine, other, linkedAt)
    }

    /// S122: the name was another user's until then, of whom it is read later. That user's profile is without it, and still
    /// that user's.
    @Test func whoLostTheNameBeforeKeepsTheMark() throws {
        let world = world()
        let (mine, other, linkedAt) = try taken(world)
        #expect(customers(world, mine) == ["annette"] && world.profile(mine)?.mark?.userID == "user-1")
        #expect(customers(world, other).isEmpty && world.profile(other)?.mark?.userID == "user-2")
        // A link of before does not take it back.
        world.run(link("user-2", "annette", at: linkedAt))
        #expect(world.profile(mine)?.mark?.userID == "user-1")
        // Another name of theirs is read.
        world.run(rename("user-2", "annette", to: "bert", at: linkedAt + 1))
        #expect(customers(world, other) == ["bert"] && world.profile(other)?.mark?.userID == "user-2")
        #expect(world.login(["customerid": "bert"], on: "d3")?.mpid == other)
    }

    /// S122: the same where the other user is erased, or was called so by mistake, and that is read later.
    @Test(arguments: [true, false]) func whoLostTheNameBeforeGoesWithItsPerson(_ isUnlinked: Bool) throws {
        let world = world()
        let (mine, other, linkedAt) = try taken(world)
        if isUnlinked {
            world.run(unlink("user-2", "annette", at: linkedAt + 1))
            #expect(world.profile(other)?.mark == nil && world.profile(mine)?.mark?.userID == "user-1")
            world.run(forget("user-2", nil, [:], at: world.now))
            #expect(gone(world).isEmpty)
            world.run(forget("user-1", "annette", ["anna": linkedAt + 2], at: world.now))
            #expect(gone(world) == [mine, other])
        } else {
            world.run(forget("user-2", "annette", [:], at: linkedAt + 1))
            #expect(gone(world) == [other])
            #expect(customers(world, mine) == ["annette"] && world.profile(mine)?.mark?.userID == "user-1")
        }
    }

    /// S122: two users got each other's names by three changes, of which the first is read last. They stay two persons,
    /// also when one of them has no user any more.
    @Test func whoseNamesWentRoundAreTwo() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let other = try #require(world.login(["customerid": "annette", "email": "n@b.io"], on: "d2")?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(link("user-2", "annette", at: linkedAt))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 2))
        world.run(rename("user-2", "annette", to: "bert", at: linkedAt + 1))
        #expect(world.profile(other)?.aliasedInto == [])
        world.run(rename("user-2", "bert", to: "anna", at: linkedAt + 3))
        world.run(unlink("user-2", "anna", at: linkedAt + 4))
        world.run(forget("user-1", "annette", ["anna": linkedAt + 2], at: world.now))
        #expect(gone(world) == [mine])
        #expect(world.profile(other)?.identities.contains(Identity(.email, "n@b.io")) == true)
    }

    /// S122: who was unlinked from the name before protects nothing of the person who has it.
    @Test func aMarkWithoutTheNameProtectsNothing() throws {
        let world = world()
        let (mine, other, linkedAt) = try taken(world)
        world.run(forget("user-1", "annette", ["anna": linkedAt + 2], at: world.now))
        #expect(gone(world) == [mine, other])
        // Nothing in clear is made anew.
        #expect(world.state.profiles.count == 2)
    }

    /// S122: another user got the name after this one had lost it again, and that was read first.
    @Test func whoGotTheNameLaterKeepsIt() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "ios_idfv": "1"])?.mpid)
        let other = try #require(world.login(["customerid": "annette"], on: "d2")?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(link("user-2", "annette", at: linkedAt + 3))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 1))
        #expect(customers(world, other) == ["annette"] && world.profile(other)?.mark?.userID == "user-2")
        #expect(world.profile(mine)?.identities == [] && world.profile(mine)?.mark?.userID == "user-1")
        #expect(world.identify(["ios_idfv": "1"])?.mpid != mine, "who uses the device next is not this person")
        world.run(rename("user-1", "annette", to: "ann", at: linkedAt + 2))
        #expect(customers(world, mine) == ["ann"] && world.profile(mine)?.isOrphaned == false)
        #expect(world.login(["customerid": "ann"])?.mpid == mine)
    }
}
