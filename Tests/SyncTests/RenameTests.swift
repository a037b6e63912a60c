// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

extension ErasingTests {
    func rename(_ user: UserID, _ old: ExternalID?, to new: ExternalID, at moment: Int64) -> SyncCommand {
        .renamed(
            ExternalIDChanged(
                userId: user, externalId: new, previousExternalId: old,
                linkedAt: Timestamp(milliseconds: moment), author: "kim", reason: "typo"))
    }

    func unlink(_ user: UserID, _ old: ExternalID, at moment: Int64) -> SyncCommand {
        .unlinked(
            ExternalIDRemoved(
                userId: user, externalId: old, unlinkedAt: Timestamp(milliseconds: moment), author: "kim",
                reason: "wrong"))
    }

    func forget(_ user: UserID, _ present: ExternalID?, _ former: [ExternalID: Int64], at moment: Int64)
        -> SyncCommand
    {
        let names = former.sorted { $0.key < $1.key }.map {
            FormerExternalID(externalId: $0.key, until: Timestamp(milliseconds: $0.value))
        }
        return .forget(
            ForgetProfiles(
                userId: user, externalId: present, former: names.isEmpty ? nil : names,
                erasedAt: Timestamp(milliseconds: moment)))
    }

    func customers(_ world: World, _ mpid: MPID?) -> [String] {
        world.profile(mpid)?.values(of: .customerID).map(\.value.text) ?? []
    }
}

/// Support gives people other external ids, and others had these before, have them still, or come by the old ones.
@Suite struct RenameTests: ErasingTests {
    // MARK: Who has the old name

    /// S121, as S95 of the present one: the name is free since the erasure, and a link of since then that is read first gives
    /// nobody the profile of the person who had it.
    @Test(arguments: [true, false])
    func whoHasTheOldNameSinceTheErasureIsSomebodyElse(_ isRenameReadFirst: Bool) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.now += 1000
        world.run(link("user-2", "anna", at: linkedAt + 3))
        let rename = rename("user-1", "anna", to: "annette", at: linkedAt + 1)
        if isRenameReadFirst { world.run(rename) }
        world.run(forget("user-1", "annette", ["anna": linkedAt + 1], at: linkedAt + 2))
        if !isRenameReadFirst { world.run(rename) }
        #expect(world.profile(mine)?.isErased == true)
        let heir = try #require(world.login(["customerid": "anna"], on: "d2")?.mpid)
        let own = try #require(world.profile(heir))
        #expect(own.mark?.userID == "user-2" && own.values(of: .email).isEmpty)
        #expect(world.state.profiles.values.filter { !$0.isErased }.map(\.mpid) == [heir])
    }

    /// S115: each of those who were linked since with one of the person's names has a profile, and everybody is told of it.
    @Test func allWhoCameLaterAreTold() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        let late = try #require(world.login(["customerid": "bob"], on: "d2")?.mpid)
        let linkedAt = world.now
        world.run(link("user-2", "anna", at: linkedAt + 3))
        world.run(link("user-3", "bob", at: linkedAt + 3))
        world.run(forget("user-1", "anna", ["bob": linkedAt + 1], at: linkedAt + 2))
        #expect(gone(world) == [mine, late])
        let told = world.events.compactMap { $0.base as? ProfileCreated }
        #expect(Set(told.map(\.mpid)) == Set(world.state.profiles.values.filter { $0.mark != nil }.map(\.mpid)))
        #expect(told.count == 2)
    }

    // MARK: Who has the new name

    /// S122: it was the person's already. Nobody finds the other profile any more, on the device whose user it is neither, and
    /// an erasure takes it along.
    @Test(arguments: [nil, "user-1"] as [UserID?], [true, false])
    func whoHasTheNewNameIsTheSamePerson(_ marked: UserID?, _ isByProfile: Bool) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let other = try #require(world.login(["customerid": "annette", "ios_idfv": "1"], on: "d2")?.mpid)
        let (linkedAt, renamedAt) = (world.now, world.now + 1)
        world.run(link("user-1", "anna", at: linkedAt))
        if let marked { world.run(link(marked, "annette", at: renamedAt)) }
        world.run(rename("user-1", "anna", to: "annette", at: renamedAt))
        #expect(world.profile(mine)?.mark?.userID == "user-1" && customers(world, mine) == ["annette"])
        let left = try #require(world.profile(other))
        #expect(left.isOrphaned && left.identities.isEmpty && left.mark == nil && left.aliasedInto == [mine])
        let told = world.events.compactMap { $0.base as? CurrentUserChanged }
        #expect(told.map(\.deviceId) == ["d2"] && told.map(\.isLoggedIn) == [false])
        #expect(world.events.contains(AnyHashable(ProfileOrphaned(mpid: other, cause: .link, takenBy: mine))))
        #expect(world.login(["customerid": "annette"], on: "d2")?.mpid == mine)
        if isByProfile {
            world.run(.erase(EraseProfile(mpid: mine)))
        } else {
            world.run(forget("user-1", "annette", ["anna": renamedAt], at: world.now))
        }
        #expect(gone(world) == [mine, other])
    }

    /// S122, S96: whoever was aliased into the one that loses the name goes too; and what has another login identity stays known.
    @Test func whoWasAliasedIntoTheOtherGoesToo() throws {
        let world = world()
        let visitor = try #require(world.identify(["ios_idfv": "1"], on: "d2")?.mpid)
        let other = try #require(world.login(["customerid": "annette", "email": "a@b.io"], on: "d3")?.mpid)
        world.run(.alias(AliasUsers(sourceMPID: visitor, destinationMPID: other)))
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: world.now))
        world.run(rename("user-1", "anna", to: "annette", at: world.now + 1))
        #expect(world.profile(other)?.identities == [Identity(.email, "a@b.io")])
        #expect(world.events.allSatisfy { !($0.base is CurrentUserChanged) })
        world.run(.erase(EraseProfile(mpid: mine)))
        #expect(gone(world) == [mine, other, visitor])
    }

    /// S118, S122: renamed by mistake and back, while a login by the old name was on its way.
    @Test func whoIsRenamedBackHasTheProfile() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 1))
        let late = try #require(world.login(["customerid": "anna"], on: "d2")?.mpid)
        #expect(late != mine)
        let back = world.now
        world.run(rename("user-1", "annette", to: "anna", at: back))
        #expect(customers(world, mine) == ["anna"] && world.profile(mine)?.mark?.userID == "user-1")
        #expect(world.login(["customerid": "anna"], on: "d3")?.mpid == mine)
        world.run(forget("user-1", "anna", ["annette": back], at: world.now))
        #expect(gone(world) == [mine, late])
    }

    /// S118: the mark tells whose the profile is, also where a name between was not read.
    @Test func theMarkedProfileIsRenamed() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: world.now))
        world.run(rename("user-1", "ann", to: "annette", at: world.now + 2))
        #expect(customers(world, mine) == ["annette"] && world.profile(mine)?.mark?.externalID == "annette")
    }

    /// S118: who has no profile yet gets one.
    @Test func whoHasNoProfileGetsOneByTheNewName() throws {
        let world = world()
        world.run(rename("user-1", "anna", to: "annette", at: world.now))
        let made = try #require(world.state.profiles.values.first { _ in true })
        #expect(customers(world, made.mpid) == ["annette"] && made.mark?.userID == "user-1")
    }

    // MARK: Whose it was before

    /// What support and backends do of user-2, who was linked as anna after user-1 was gone.
    private func next(_ linkedAt: Int64, renamed count: Int) -> [SyncCommand] {
        let names: [ExternalID] = ["anna", "annette", "ann"]
        return [link("user-2", "anna", at: linkedAt + 3)]
            + (0..<count).map { rename("user-2", names[$0], to: names[$0 + 1], at: linkedAt + 4 + Int64($0)) }
    }

    /// S123: the erasure of who was called so before is read before all that became of the next one, in between, or after it,
    /// and so is the link of who goes. It leads to the same always.
    @Test(arguments: [0, 1, 2], [0, 1, 2, 3]) func whoIsRenamedTakesNobodysProfileAlong(_ renames: Int, _ place: Int)
        throws
    {
        for isLinkRead in [true, false] { try isRenamedAlone(renames, place, isLinkRead) }
    }

    private func isRenamedAlone(_ renames: Int, _ place: Int, _ isLinkRead: Bool) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        world.now += 1000
        if isLinkRead { world.run(link("user-1", "anna", at: linkedAt)) }
        var story = next(linkedAt, renamed: renames)
        story.insert(forget("user-1", "anna", [:], at: linkedAt + 2), at: min(place, story.count))
        for command in story { world.run(command) }
        world.run(link("user-1", "anna", at: linkedAt))
        #expect(gone(world) == [mine])
        let own = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-2" })
        let name = ["anna", "annette", "ann"][renames]
        #expect(own.identities == [Identity(.customerID, IdentityValue(name))] && own.mark?.linkedAt == linkedAt + 3)
        #expect(own.namedAt == [linkedAt + (renames == 0 ? 3 : 3 + Int64(renames))])
        #expect(world.state.profiles.count == 2 && world.login(["customerid": name], on: "d2")?.mpid == own.mpid)
    }

    /// S123, S124: with a store, in which each command finds what those before it have written.
    @Test(arguments: SQLEngine.allCases, [true, false])
    func theStoreLeadsToWhoWasCalledSo(_ engine: SQLEngine, _ isErased: Bool) throws {
        let store = try SyncTestStore(engine)
        let world = world()
        let linkedAt = world.now
        let login = SyncRequest(deviceId: "d1", knownIdentities: ["customerid": "anna", "email": "a@b.io"])
        let end =
            isErased
            ? forget("user-1", "anna", [:], at: linkedAt + 2) : rename("user-1", "anna", to: "anders", at: linkedAt + 1)
        for command in [.move(.login, login), link("user-1", "anna", at: linkedAt)] + next(linkedAt, renamed: 2) + [end]
        {
            world.count += 1
            _ = try store.run([RandomCommands.Step(command: command, context: world.context)])
        }
        let rows = try store.database.transaction { transaction in
            try transaction.query("SELECT link_external_id, user_id, is_erased FROM profiles").map {
                [try $0.optionalText(0), try $0.optionalText(1), "\(try $0.integer(2))"]
            }
        }
        let mine = isErased ? [nil, nil, "1"] : ["anders", "user-1", "0"]
        #expect(Set(rows) == [mine, ["ann", "user-2", "0"]])
        #expect(try store.liveTexts().contains("a@b.io") != isErased)
    }

    /// S119: who was called so by mistake had no profile.
    @Test func whoWasUnlinkedLeavesTheProfileToTheNext() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        for command in next(linkedAt, renamed: 1) { world.run(command) }
        world.run(unlink("user-1", "anna", at: linkedAt + 2))
        world.run(forget("user-1", nil, [:], at: linkedAt + 2))
        #expect(gone(world).isEmpty && customers(world, mine) == ["annette"])
        #expect(world.profile(mine)?.mark?.userID == "user-2")
    }

    /// S123: who was erased later than the next one was linked, or before anybody logged in, was not called so.
    @Test(arguments: [-1, 3, 4]) func whoWasNotCalledSoThenIsNobodysPast(_ erasedAfter: Int64) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        for command in next(linkedAt, renamed: 1) { world.run(command) }
        world.run(forget("user-9", "anna", [:], at: linkedAt + erasedAfter))
        #expect(gone(world).isEmpty && customers(world, mine) == ["annette"])
    }

    /// S123: so it is where a third one got the name of the second: both took it from who was before.
    @Test func whoseNameWasTakenWasSomebodyElseBefore() throws {
        let world = world()
        let other = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let mine = try #require(world.login(["customerid": "bert"], on: "d2")?.mpid)
        let linkedAt = world.now
        world.run(link("user-3", "bert", at: linkedAt))
        world.run(link("user-2", "anna", at: linkedAt + 3))
        world.run(rename("user-3", "bert", to: "anna", at: linkedAt + 5))
        world.run(rename("user-2", "anna", to: "annette", at: linkedAt + 4))
        world.run(forget("user-1", "anna", [:], at: linkedAt + 2))
        #expect(gone(world) == [other] && customers(world, mine) == ["anna"])
        let own = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-2" })
        #expect(own.identities == [Identity(.customerID, "annette")])
    }

    /// S123, S115: an erasure by another identity that was asked for before the next one was linked.
    @Test func whoWasSomebodyElseBeforeIsFoundByWhatThatOneHad() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        for command in next(linkedAt, renamed: 1) { world.run(command) }
        world.lateness = world.now + 1000 - linkedAt - 2
        world.run(.erase(EraseProfile(identities: ["email": "a@b.io"])))
        #expect(gone(world) == [mine])
        #expect(world.state.profiles.values.contains { $0.mark?.userID == "user-2" && !$0.isErased })
    }

    /// S124: the change of who was called so before is read after the next one's link, and its change.
    @Test(arguments: [0, 1, 2], [true, false])
    func whoWasRenamedBeforeTheNextWasLinkedTakesTheProfileAlong(_ renames: Int, _ isForgotten: Bool) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna", "email": "a@b.io"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        for command in next(linkedAt, renamed: renames) { world.run(command) }
        world.run(rename("user-1", "anna", to: "anders", at: linkedAt + 1))
        #expect(customers(world, mine) == ["anders"] && world.profile(mine)?.mark?.userID == "user-1")
        let own = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-2" })
        #expect(own.identities.map(\.value.text) == [["anna", "annette", "ann"][renames]])
        // Somebody else had the name in between.
        world.run(forget("user-9", "anna", [:], at: linkedAt + 2))
        #expect(gone(world).isEmpty)
        guard isForgotten else { return }
        world.run(forget("user-1", "anders", ["anna": linkedAt + 1], at: world.now))
        #expect(gone(world) == [mine])
    }

    // MARK: Erasing meanwhile

    /// S95, S118: renamed after the moment of an erasure, though decided before it. The name is younger, the person is not.
    @Test func whoWasRenamedAfterTheErasuresMomentGoes() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(rename("user-1", "anna", to: "annette", at: linkedAt + 2))
        world.run(forget("user-1", "annette", ["anna": linkedAt + 2], at: linkedAt + 1))
        #expect(gone(world) == [mine])
    }

    /// S116: the link service has still to forget the user. Neither name takes whoever came since along.
    @Test(arguments: ["anna", "annette"], [-1, 1]) func aNameOfWhoIsToBeForgottenMarksNobody(
        _ name: String, _ after: Int64
    ) throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: world.now))
        world.run(.erase(EraseProfile(mpid: mine)))
        let (erasedAt, forwards) = (world.now, try #require(world.last).forwards.map(\.id))
        let new = try #require(world.login(["customerid": name])?.mpid)
        world.run(rename("user-1", "anna", to: "annette", at: erasedAt + after))
        #expect(world.state.profiles.values.allSatisfy { $0.mark == nil } && customers(world, new) == [name])
        world.run(
            .answered(ForwardAnswer(forwardID: forwards[1], isPending: false, part: .part(users: ["user-1"]))))
        #expect(gone(world) == [mine] && customers(world, new) == [name])
        world.run(link("user-1", "annette", at: erasedAt + 2))
        #expect(world.state.profiles.values.allSatisfy { $0.mark == nil })
    }

    /// S55, L79: whom the link service spares is not gone here either, and is in no certificate.
    @Test func whomTheLinkServiceSparesIsMarkedLater() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: world.now))
        world.run(.erase(EraseProfile(mpid: mine)))
        let forwards = try #require(world.last).forwards
        func certified() -> Set<UserID>? {
            guard case .certificate(let gone) = world.run(.getErasure(GetProfileErasure(mpid: mine))) else {
                return nil
            }
            return gone.users
        }
        #expect(certified() == [])
        // Taken off anna before, and given to user-2.
        world.run(link("user-1", "bert", at: world.now - 1500))
        let other = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-1" }?.mpid)
        for forward in forwards {
            let users: [UserID] = forward.command is ForgetPerson ? ["user-2"] : []
            world.run(
                .answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part(users: users))))
        }
        #expect(certified() == ["user-2"] && gone(world) == [mine])
        #expect(world.profile(other)?.mark?.userID == "user-1")
        world.run(link("user-1", "carl", at: world.now))
        #expect(world.state.profiles.values.contains { $0.mark?.externalID == "carl" })
        world.run(link("user-2", "dora", at: world.now))
        #expect(world.state.profiles.values.allSatisfy { $0.mark?.userID != "user-2" })
    }

    /// S95, S116: a link of before that was read late has marked whoever logged in since.
    @Test func whoLoggedInSinceStaysWhenTheUserGoes() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        let linkedAt = world.now
        world.run(link("user-1", "anna", at: linkedAt))
        world.run(.erase(EraseProfile(mpid: mine)))
        let forwards = try #require(world.last).forwards
        let new = try #require(world.login(["customerid": "bert"])?.mpid)
        world.run(link("user-1", "bert", at: linkedAt))
        #expect(world.profile(new)?.mark?.userID == "user-1")
        world.run(
            .answered(ForwardAnswer(forwardID: forwards[1].id, isPending: false, part: .part(users: ["user-1"]))))
        #expect(gone(world) == [mine] && world.profile(new)?.mark == nil)
    }

    /// S116: a profile that a link after the erasure's moment has made is the user's, and goes when the link service says that
    /// the user went.
    @Test func whatALinkMadeAfterTheMomentGoesWithTheUser() throws {
        let world = world()
        let mine = try #require(world.login(["customerid": "anna"])?.mpid)
        world.run(link("user-1", "anna", at: world.now))
        world.run(.erase(EraseProfile(mpid: mine)))
        let forwards = try #require(world.last).forwards
        world.run(link("user-1", "bert", at: world.now + 1))
        let made = try #require(world.state.profiles.values.first { $0.mark?.userID == "user-1" }?.mpid)
        world.run(
            .answered(ForwardAnswer(forwardID: forwards[1].id, isPending: false, part: .part(users: ["user-1"]))))
        #expect(gone(world) == [mine, made])
    }
}
