// SPDX-License-Identifier: Apache-2.0

import Contracts
import Explanation
import Foundation
import Testing
import WireJSON

/// What `explain` says to somebody who helps people.
@Suite struct WordsTests {
    /// Every event that there is, by the files that the wire's form is held by.
    static let events: [String] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../ContractsTests/Golden")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix("event-") }.sorted()
    }()

    private func told(_ file: String) throws -> Fact.Told {
        let path = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../ContractsTests/Golden/\(file)")
        let event = try JSONValue(parsing: Array(Data(contentsOf: path)))
        return Fact.Told(
            type: try #require(event["type"]?.stringValue), data: try #require(event["data"]))
    }

    @Test(arguments: events) func everyEventIsASentence(_ file: String) throws {
        let told = try told(file)
        let sentence = EventWords.sentence(told)
        #expect(!sentence.contains("=") && !sentence.contains("?") && !sentence.hasPrefix(told.type), "\(sentence)")
        // Whom it is about.
        for name in ["installId", "userId", "externalId", "deviceId", "mpid", "author"] {
            if let id = told.data[name]?.stringValue { #expect(sentence.contains(id), "\(name) of \(sentence)") }
        }
    }

    /// Every command too, by its golden file: what is asked is nothing that a service heard of.
    @Test func everyCommandHasAName() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../ContractsTests/Golden")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("command-") }
        #expect(files.count > 50)
        for file in files {
            let command = try JSONValue(parsing: Array(Data(contentsOf: folder.appending(path: file))))
            let type = try #require(command["type"]?.stringValue)
            #expect(StepWords.names[MessageWords.short(type)] != nil, "\(type)")
        }
    }

    @Test func thereAreEvents() { #expect(Self.events.count > 40) }

    @Test(arguments: [
        (
            "event-link-linked.json",
            "install i1 belongs to user u1, external id anna, and is active; no longer active: i2, i3"
        ),
        (
            "event-sync-profile-orphaned.json",
            "profile 2 has no identity left: profile 1 has it, and nobody finds it any more"
        ),
        (
            "event-sync-merge-allowed.json",
            "profile 9223372036854775807 may meet 1 (email b@b.io) again; by kim: one person after all"
        ),
        (
            "event-sync-current-user-changed.json",
            "device d1 went from profile 1 to profile 2, not logged in"
        ),
    ])
    func sentences(_ file: String, _ sentence: String) throws {
        #expect(EventWords.sentence(try told(file)) == sentence)
    }

    /// A login by which somebody becomes known has the profile that was there.
    @Test func whoStaysWasThereBefore() {
        let data: JSONValue = ["deviceId": "d1", "mpid": "2", "previousMPID": "2", "isLoggedIn": true]
        let told = Fact.Told(type: "identity.sync.current-user-changed.v1", data: data)
        #expect(EventWords.sentence(told) == "device d1 has profile 2, logged in, as before")
    }

    /// Whoever came and went is called as the rows above call them.
    @Test func whoCameAndWhoWentHaveTheirNames() {
        func row(_ mpid: JSONValue, _ identities: [JSONValue]) -> IdentityWalk.Row {
            IdentityWalk.Row(
                service: "sync", value: ["kind": "profile", "mpid": mpid, "identities": .array(identities)])
        }
        let stamp: JSONValue = ["type": "device_application_stamp", "value": "s"]
        let mail: JSONValue = ["type": "email", "value": "a@b.io"]
        let people = KnownPeople([
            row("1", [stamp, mail, ["type": "customerid", "value": "grace"]]), row("2", [stamp, mail]),
            row("3", [stamp]),
        ])
        func words(_ before: JSONValue, _ now: JSONValue, isLoggedIn: JSONValue = true) -> String {
            let data: JSONValue = ["deviceId": "d", "mpid": now, "previousMPID": before, "isLoggedIn": isLoggedIn]
            return EventWords.sentence(
                Fact.Told(type: "identity.sync.current-user-changed.v1", data: data), among: people)
        }
        #expect(
            words("1", "2") == "device d went from profile 1 (customerid grace) to profile 2 (email a@b.io), logged in")
        #expect(words("1", "4") == "device d went from profile 1 (customerid grace) to another profile, 4, logged in")
        #expect(words("4", "1") == "device d went from another profile, 4, to profile 1 (customerid grace), logged in")
        #expect(
            words("1", "3", isLoggedIn: false)
                == "device d went from profile 1 (customerid grace) to profile 3, not logged in")
    }

    /// Devices go by the profile, and no event names them.
    @Test func whatComesAlongWithAProfileIsSaid() {
        let data: JSONValue = [
            "mpid": "1", "userId": "u1",
            "identities": [["type": "customerid", "value": "c"], ["type": "email", "value": "e"]],
        ]
        let told = Fact.Told(type: "identity.sync.linked-user-changed.v1", data: data)
        #expect(EventWords.sentence(told) == "profile 1 is that of user u1 (its devices and email e too)")
    }

    /// A barrier has two ends, and each of the two may be the one that was asked for.
    @Test func whoMayMeetAgainIsTheOther() {
        func barrier(_ mpid: JSONValue, _ other: JSONValue, _ type: JSONValue, _ value: JSONValue) -> JSONValue {
            ["mpid": mpid, "otherMPID": other, "identity": ["type": type, "value": value]]
        }
        let data: JSONValue = [
            "mpid": "1", "allowedCount": 3, "author": "kim", "reason": "r",
            "allowed": [
                barrier("1", "2", "email", "b@b.io"), barrier("2", "1", "customerid", "ada"),
                barrier("1", "3", "other", "x"),
            ],
        ]
        let told = Fact.Told(type: "identity.sync.merge-allowed.v1", data: data)
        #expect(
            EventWords.sentence(told)
                == "profile 1 may meet 2 (email b@b.io, customerid ada), 3 (other x) again; by kim: r")
    }

    @Test(arguments: [
        ("authToken", ", with an authentication token"), ("identityToken", ", with an identity token"), ("other", ""),
    ])
    func aRefusalSaysWhatWasShown(_ method: String, _ words: String) {
        let data: JSONValue = ["deviceId": "d1", "method": .string(method), "reason": "InvalidAuthToken"]
        let told = Fact.Told(type: "identity.verification.failed.v1", data: data)
        #expect(EventWords.sentence(told) == "device d1 did not prove who its user is\(words): InvalidAuthToken")
    }

    @Test func aRefusalSaysWhoseKeyItWasWhereThatIsKnown() {
        let data: JSONValue = [
            "deviceId": "d1", "method": "identityToken", "reason": "INVALID_IDENTITY_TOKEN", "keyId": "k1",
        ]
        let told = Fact.Told(type: "identity.verification.failed.v1", data: data)
        let words = "device d1 did not prove who its user is, with an identity token of key k1: INVALID_IDENTITY_TOKEN"
        #expect(EventWords.sentence(told) == words)
    }

    @Test func whatHasNoWordsIsShownAsItIs() {
        let told = Fact.Told(type: "identity.sync.new-thing.v1", data: ["mpid": "7"])
        #expect(EventWords.sentence(told) == "sync.new-thing  mpid=7")
        #expect(EventWords.sentence(Fact.Told(type: "other", data: ["a": "b"])) == "other  a=b")
        #expect(EventWords.sentence(Fact.Told(type: told.type, data: .null)) == "sync.new-thing, too long to be shown")
    }

    private func fact(
        _ type: String, _ outcome: String, source: String = "backend", reason: String? = nil, message: String? = nil,
        events: [Fact.Told] = []
    ) -> Fact {
        Fact(
            service: "link", decidedAt: Timestamp(milliseconds: 1_795_251_844_031), topic: "t", partition: 0, offset: 0,
            type: type, source: SourceID(source), commandId: "c1", outcome: outcome, reason: reason, message: message,
            events: events)
    }

    @Test func stepsSayWhatBecameOfThem() {
        let refused = fact(
            "identity.link.request.v1", "rejected", reason: "INSTALL_NOT_FOUND", message: "Install was not found.")
        #expect(
            StepWords.lines(refused) == [
                "2026-11-21 09:04:04  request to link an install with an external id: refused, INSTALL_NOT_FOUND: "
                    + "Install was not found."
            ])
        let event = Fact.Told(type: "identity.link.user-erased.v1", data: ["userId": "u1"])
        #expect(
            StepWords.lines(fact("identity.link.erase-user.v1", "succeeded", events: [event])) == [
                "2026-11-21 09:04:04  erasure of a user", "    user u1 is erased",
            ])
        let byHand = Fact.Told(
            type: "identity.link.user-erased.v1", data: ["userId": "u1", "author": "kim", "reason": "case 1"])
        #expect(EventWords.sentence(byHand) == "user u1 is erased; by kim: case 1")
    }

    @Test func whoDidItIsNamed() {
        var repair = fact("identity.link.unlink-user.v1", "rejected", reason: "USER_NOT_FOUND")
        repair.authId = "demo-support"
        #expect(
            StepWords.lines(repair) == [
                "2026-11-21 09:04:04  an external id taken by support, key demo-support: refused, USER_NOT_FOUND"
            ])
    }

    /// Whom a login found, and by what, stands in its answer alone.
    @Test func whoWasFoundIsSaid() {
        var login = fact("identity.sync.login.v1", "succeeded")
        login.result = ["mpid": "7", "matchedIdentities": ["email": "a@a.io", "customerid": "ada"]]
        #expect(StepWords.lines(login).last == "    profile 7 was found by email a@a.io, customerid ada")
        // The e-mail was new to the profile: it found nobody.
        login.events = [
            Fact.Told(
                type: "identity.sync.identities-changed.v1",
                data: ["mpid": "7", "added": [["type": "email", "value": "a@a.io"]], "removed": []])
        ]
        #expect(StepWords.lines(login).contains("    profile 7 was found by customerid ada"))
        login.events = []
        login.result = ["mpid": "7", "matchedIdentities": [:]]
        #expect(StepWords.lines(login) == ["2026-11-21 09:04:04  login: succeeded, nothing changed", "    profile 7"])
    }

    /// What the services have about somebody, but not as members.
    @Test(
        arguments: [
            (
                "user", ["kind": "codes", "externalId": "ada", "count": 2, "unused": 1],
                "user: codes for external id ada: 2, of them not used: 1"
            ),
            ("user", ["kind": "user", "userId": "u1", "isErased": true], "user: user u1 is erased"),
            ("link", ["kind": "user", "userId": "u1", "isErased": true], "link: user u1 is erased"),
            (
                "link",
                ["kind": "user", "userId": "u1", "isErased": true, "erasedAt": "2026-11-28T05:34:10.143Z"],
                "link: user u1 is erased since 2026-11-28T05:34:10.143Z"
            ),
            (
                "sync",
                [
                    "kind": "profile", "mpid": "-5", "isErased": true, "erasedAt": "2026-11-28T05:34:10.143Z",
                    "isUnderWay": true,
                ], "sync: profile -5 is erased since 2026-11-28T05:34:10.143Z, and not yet in all services"
            ),
            (
                "link",
                [
                    "kind": "user", "userId": "u1", "isErased": true, "erasedAt": "2026-11-28T05:34:10.143Z",
                    "completedAt": "2026-11-28T05:34:10.214Z",
                ], "link: user u1 is erased since 2026-11-28T05:34:10.143Z, in all services at 2026-11-28T05:34:10.214Z"
            ),
            ("link", ["kind": "user", "userId": "u1"], "link: user u1 is unlinked"),
            (
                "link", ["kind": "hold", "externalId": "lnida", "until": "t"],
                "link: external id lnida was changed, and is kept for whoever had it until t"
            ),
            (
                "link", ["kind": "install", "installId": "i", "device": "tablet", "platform": "ios", "userId": "u2"],
                "link: install i (tablet, ios) has another user, u2"
            ),
            ("user", ["kind": "install", "installId": "i", "userId": "u2"], "user: install i has another user, u2"),
            (
                "verification", ["kind": "session", "deviceId": "d", "mpid": "2"],
                "verification: device d has another profile, 2"
            ),
            (
                "link", ["kind": "hold", "externalId": "lnida", "userId": "u1", "until": "2026-12-28T05:33:58.375Z"],
                "link: external id lnida was changed, and was user u1's; nobody else gets it before "
                    + "2026-12-28T05:33:58.375Z"
            ),
            (
                "sync",
                [
                    "kind": "profile", "mpid": "1", "identities": [], "firstSeen": "a", "lastSeen": "b",
                    "apartFrom": ["2", "3"],
                ], "sync: profile 1 has no identities, kept apart from 2, 3, seen a to b"
            ),
        ] as [(String, JSONValue, String)])
    func rowsAreSentences(_ service: String, _ value: JSONValue, _ text: String) {
        #expect(RowWords.text(IdentityWalk.Row(service: service, value: value)) == text)
    }

    @Test(arguments: [
        ("succeeded", "backend", true), ("succeeded", "identitybus/gateway", true), ("pending", "backend", true),
        ("rejected", "identitybus/user", true), ("succeeded", "identitybus/user", false),
        ("noted", "identitybus/user", false), ("noted", "backend", false),
    ])
    func whatServicesAskEachOtherIsForEngineers(_ outcome: String, _ source: String, _ isShown: Bool) {
        #expect(StepWords.isShown(fact("identity.link.query.v1", outcome, source: source)) == isShown)
    }
}
