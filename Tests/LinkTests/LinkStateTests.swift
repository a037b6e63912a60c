// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime

@Suite struct LinkStateTests {
    private static let me = Fixture.userID
    private static let other: UserID = "0123456789abcdef01234567"

    @Test func findsPersonsByBothIDs() {
        let state = LinkState(persons: [
            Fixture.person(Self.me, "anna"), Fixture.person(Self.other, "anna", app: "other"),
        ])
        #expect(state.person(app: "demo", externalID: "anna")?.userID == Self.me)
        #expect(state.person(app: "other", externalID: "anna")?.userID == Self.other)
        #expect(state.person(app: "third", externalID: "anna") == nil)
        #expect(state.person(userID: Self.me)?.externalID == "anna")
    }

    @Test func indexesFollowChanges() {
        var state = LinkState(
            installs: [Fixture.install("i1", of: Self.me)], persons: [Fixture.person(Self.me, "anna")])
        state.apply(.install(Fixture.install("i1", of: Self.other)))
        #expect(state.installs(of: Self.me).isEmpty)
        #expect(state.installs(of: Self.other).map(\.id) == ["i1"])
        state.apply(.person(Fixture.person(Self.me, "bert")))
        #expect(state.person(app: "demo", externalID: "anna") == nil)
        #expect(state.person(app: "demo", externalID: "bert")?.userID == Self.me)
    }

    @Test func onlyChangesAreSaved() {
        var state = LinkState(installs: [Fixture.install("i1")], persons: [Fixture.person(Self.me)])
        state.load([Fixture.install("i2")])
        state.load([Fixture.person(Self.other)])
        #expect(state.installs.changed.isEmpty)
        #expect(state.persons.changed.isEmpty)
        state.apply(.install(Fixture.install("i2", of: Self.me)))
        state.apply(.person(Fixture.person(Self.other, "anna")))
        #expect(state.installs.changed.map(\.id) == ["i2"])
        #expect(state.persons.changed.map(\.userID) == [Self.other])
    }

    @Test func rowsThatAreHereStayAsTheyAre() {
        var state = LinkState(
            installs: [Fixture.install("i1", of: Self.me)], persons: [Fixture.person(Self.me, "anna")])
        state.load([Fixture.install("i1")])
        state.load([Fixture.person(Self.me, "bert")])
        #expect(state.install("i1")?.userID == Self.me)
        #expect(state.person(userID: Self.me)?.externalID == "anna")
        #expect(state.person(app: "demo", externalID: "bert") == nil)
    }

    /// Ids are bytes (L17): Swift's own `==` takes these two for one.
    @Test func idsThatLookAlikeAreDifferent() {
        var state = LinkState(
            installs: [Fixture.install("\u{e9}", .phone), Fixture.install("e\u{301}", .tablet)],
            persons: [Fixture.person(Self.me, "Ren\u{e9}")])
        #expect(state.install("\u{e9}")?.device.kind == .phone)
        #expect(state.install("e\u{301}")?.device.kind == .tablet)
        #expect(state.person(app: "demo", externalID: "Rene\u{301}") == nil)
        state.apply(.person(Fixture.person(Self.other, "Rene\u{301}")))
        #expect(state.person(app: "demo", externalID: "Ren\u{e9}")?.userID == Self.me)
        #expect(state.person(app: "demo", externalID: "Rene\u{301}")?.userID == Self.other)
    }

    /// What an install superseded stands in a column of its own form, whatever the ids are.
    @Test(arguments: [
        [], [Install.Superseded(installID: "i", version: 0, wasSuspended: true)],
        [
            Install.Superseded(installID: "1,0,2:x", version: 9, wasSuspended: false),
            Install.Superseded(installID: "ä\n:", version: .max, wasSuspended: true),
        ],
    ])
    func whatWasSupersededIsReadAsItWasWritten(_ list: [Install.Superseded]) throws {
        #expect(try Install.Superseded.read(Install.Superseded.text(list)) == list)
    }

    @Test(arguments: ["x", "1,0,1", "1,0,2:x", "1,0,-1:x", "1,0:x", "1,0,1:xy", "a,0,1:x"])
    func whatWasNotWrittenSoIsRefused(_ text: String) {
        #expect(throws: StorageError.self) { try Install.Superseded.read(text) }
    }
}
