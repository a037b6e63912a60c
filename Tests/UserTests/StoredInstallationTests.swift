// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime
@testable import User

/// `installations.record`, as the versions before wrote it and as this one does.
@Suite struct StoredInstallationTests {
    struct Row {
        var name: String
        var json: String
        var state: Installation.State
        /// Whether members stood there that meant nothing in this state: they are not written any more.
        var forgets: Bool

        init(_ name: String, _ json: String, _ state: Installation.State, forgets: Bool = false) {
            self.name = name
            self.json = #"{"app":"demo","id":"i1","# + json
            self.state = state
            self.forgets = forgets
        }
    }

    // MARK: What the rows are made of

    private static let device = #""device":{"kind":"phone","platform":"ios"},"sdkVersion":"6.1","appVersion":"2""#
    private static let nobody = """
        "facts":{"version":-1,"isLinked":false,"isActive":false,"isUsersFirst":false,"status":"enabled"}
        """
    private static let nobodyAnyMore = """
        "facts":{"version":4,"isLinked":false,"isActive":false,"isUsersFirst":false,"status":"enabled"}
        """
    private static let heldDigest = #"{"bytes":"# + "\(CodeDigest(of: "held").bytes)".filter { $0 != " " } + "}"
    private static let by = #"{"source":"test","id":"#

    private static let held = HeldCode(externalID: "anna", digest: CodeDigest(of: "held"))
    private static let byCode = Creation.Want.user(by: .code(held))
    private static let turn = Creation.Want.linkersTurn(deadline: soon)
    private static let soon = Timestamp(milliseconds: 1_800_000_060_000)
    private static let later = Timestamp(milliseconds: 1_800_000_600_000)
    private static let nobody4 = Fixture.facts(4, user: nil)

    private static func c(_ id: CommandID) -> Waiting { Waiting(Fixture.key(id)) }

    private static func beginners(_ first: CommandID, _ repeats: [CommandID] = []) -> Beginners {
        var beginners = Beginners(c(first))
        beginners.repeats = repeats.map(c)
        return beginners
    }

    private static func registration(_ purpose: Registration.Redeemed.Purpose? = nil) -> Registration {
        Registration(
            device: Fixture.phone, sdkVersion: "6.1", appVersion: "2", creation: "life",
            redeemed: purpose.map { .init(digest: held.digest, purpose: $0) })
    }

    private static func account(
        _ version: Int64 = 1, isLinked: Bool = true, isUsersFirst: Bool = true,
        redeemed: Registration.Redeemed.Purpose? = nil
    ) -> Account {
        Account(
            registration: registration(redeemed), version: version, status: .enabled,
            user: .init(id: "u1", isLinked: isLinked, isActive: true, isUsersFirst: isUsersFirst))
    }

    private static let oldAccount = Account(
        registration: Registration(device: Device(kind: .tablet, platform: "android", model: "m", osVersion: "9")),
        version: 7, status: .disabled, user: .init(id: "u1", isLinked: true, isActive: false, isUsersFirst: true))

    private static func creating(
        _ step: Creation.Step, facts: LinkFacts = .nothing, repeats: [String] = []
    ) -> Installation.State {
        .creating(
            Creation(
                registration: registration(), facts: facts, commands: beginners("c1", repeats.map(CommandID.init(_:))),
                step: step))
    }

    private static func link(_ step: PendingLink.Step) -> PendingLink {
        PendingLink(commands: beginners("c3"), step: step)
    }

    private static func failing(
        _ failure: Failure, confirmations: [CommandID] = [], facts: LinkFacts = .nothing, resets: [CommandID] = []
    ) -> Installation.State {
        let failed = FailedCreation(
            registration: registration(), commands: beginners("c1"), confirmations: confirmations.map(c),
            failure: failure)
        return .resetting(
            Reset(cause: .failure(failed), facts: facts, resets: resets.map(c), forward: "f1"))
    }

    // MARK: The rows

    static let rows = [
        Row(
            "creating by a code, with an expiry",
            #"""
            "phase":"creating",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"code":{"externalID":"anna","digest":\#(heldDigest)}},"commands":[\#(by)"c1"}],\#
            "confirmations":[],"resets":[],"forward":"f1","expiry":1800000060000,"isCleaning":false,\#
            "wasCleaned":false}}
            """#,
            creating(.asking(.init(want: byCode, forward: "f1", expiry: soon)))),
        Row(
            "creating by a code, repeated, a reset waits",
            #"""
            "phase":"creating",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"code":{"externalID":"anna","digest":\#(heldDigest)}},"commands":[\#(by)"c1"},\#
            \#(by)"c2"}],"confirmations":[],"resets":[\#(by)"c3"}],"forward":"f1",\#
            "expiry":1800000060000,"isCleaning":false,"wasCleaned":false}}
            """#,
            creating(
                .asking(.init(want: .user(by: .code(held), resets: [c("c3")]), forward: "f1", expiry: soon)),
                repeats: ["c2"])),
        Row(
            "creating by a code, detaching",
            #"""
            "phase":"creating",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"code":{"externalID":"anna","digest":\#(heldDigest)}},"commands":[\#(by)"c1"}],\#
            "confirmations":[],"resets":[],"forward":"f1","isCleaning":true,"wasCleaned":false}}
            """#,
            creating(.asking(.init(want: byCode, attempt: .detaching, forward: "f1")))),
        Row(
            "creating by a code, second attempt",
            #"""
            "phase":"creating",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"code":{"externalID":"anna","digest":\#(heldDigest)}},"commands":[\#(by)"c1"}],\#
            "confirmations":[],"resets":[],"forward":"f1","isCleaning":false,"wasCleaned":true}}
            """#,
            creating(.asking(.init(want: byCode, attempt: .second, forward: "f1")))),
        Row(
            "present, by a code",
            #"""
            "phase":"present",\#(device),"facts":{"version":4,"userID":"u1","isLinked":true,\#
            "isActive":true,"isUsersFirst":false,"status":"enabled"},"redeemed":{"digest":\#(heldDigest),\#
            "purpose":"create"},"creation":"life"}
            """#,
            .present(account(4, isUsersFirst: false, redeemed: .create))),
        Row(
            "resetting a user",
            #"""
            "phase":"resetting",\#(device),"facts":{"version":4,"userID":"u1","isLinked":true,\#
            "isActive":true,"isUsersFirst":false,"status":"enabled"},"redeemed":{"digest":\#(heldDigest),\#
            "purpose":"create"},"creation":"life","saga":{"purpose":"reset","means":{"none":{}},\#
            "commands":[],"confirmations":[],"resets":[\#(by)"c5"}],"forward":"f1","userID":"u1",\#
            "isCleaning":false,"wasCleaned":false}}
            """#,
            .resetting(
                Reset(
                    cause: .command(registration(.create), userID: "u1"),
                    facts: Fixture.facts(4, user: "u1", isUsersFirst: false), resets: [c("c5")], forward: "f1"))),
        Row(
            "creating unlinked",
            #"""
            "phase":"creating",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"unlinked":{}},"commands":[\#(by)"c1"}],"confirmations":[],"resets":[],\#
            "forward":"f1","isCleaning":false,"wasCleaned":false}}
            """#,
            creating(.asking(.init(want: .user(by: .unlinked), forward: "f1")))),
        Row(
            "present, unlinked",
            #"""
            "phase":"present",\#(device),"facts":{"version":1,"userID":"u1","isLinked":false,\#
            "isActive":true,"isUsersFirst":true,"status":"enabled"},"creation":"life"}
            """#,
            .present(account(isLinked: false))),
        Row(
            "link, awaiting the linker",
            #"""
            "phase":"awaiting-link",\#(device),"facts":{"version":1,"userID":"u1","isLinked":false,\#
            "isActive":true,"isUsersFirst":true,"status":"enabled"},"creation":"life",\#
            "saga":{"purpose":"link","means":{"linker":{}},"commands":[\#(by)"c3"}],"confirmations":[],\#
            "resets":[],"deadline":1800000600000,"isCleaning":false,"wasCleaned":false}}
            """#,
            .linking(account(isLinked: false), link(.awaitingLinker(deadline: later)))),
        Row(
            "link, confirming",
            #"""
            "phase":"confirming",\#(device),"facts":{"version":1,"userID":"u1","isLinked":false,\#
            "isActive":true,"isUsersFirst":true,"status":"enabled"},"creation":"life",\#
            "saga":{"purpose":"link","means":{"linker":{}},"commands":[\#(by)"c3"}],\#
            "confirmations":[\#(by)"c4"}],"resets":[],"forward":"f1","deadline":1800000600000,\#
            "isCleaning":false,"wasCleaned":false}}
            """#,
            .linking(account(isLinked: false), link(.confirming(.init(commands: [c("c4")], forward: "f1")))),
            forgets: true),
        Row(
            "linking by a code",
            #"""
            "phase":"linking",\#(device),"facts":{"version":1,"userID":"u1","isLinked":false,\#
            "isActive":true,"isUsersFirst":true,"status":"enabled"},"creation":"life",\#
            "saga":{"purpose":"link","means":{"code":{"externalID":"anna","digest":\#(heldDigest)}},\#
            "commands":[\#(by)"c3"}],"confirmations":[],"resets":[],"forward":"f1","isCleaning":false,\#
            "wasCleaned":false}}
            """#,
            .linking(account(isLinked: false), link(.asking(held, forward: "f1")))),
        Row(
            "present, linked by a code",
            #"""
            "phase":"present",\#(device),"facts":{"version":2,"userID":"u1","isLinked":true,\#
            "isActive":true,"isUsersFirst":true,"status":"enabled"},"redeemed":{"digest":\#(heldDigest),\#
            "purpose":"link"},"creation":"life"}
            """#,
            .present(account(2, redeemed: .link))),
        Row(
            "awaiting the linker, registering",
            #"""
            "phase":"awaiting-link",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"linker":{}},"commands":[\#(by)"c1"}],"confirmations":[],"resets":[],\#
            "forward":"f1","expiry":1800000060000,"deadline":1800000060000,"isCleaning":false,\#
            "wasCleaned":false}}
            """#,
            creating(.asking(.init(want: turn, forward: "f1", expiry: soon)))),
        Row(
            "awaiting the linker, detaching",
            #"""
            "phase":"awaiting-link",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"linker":{}},"commands":[\#(by)"c1"}],"confirmations":[],"resets":[],\#
            "forward":"f1","expiry":1800000060000,"deadline":1800000060000,"isCleaning":true,\#
            "wasCleaned":false}}
            """#,
            creating(.asking(.init(want: turn, attempt: .detaching, forward: "f1", expiry: soon)))),
        Row(
            "awaiting the linker",
            #"""
            "phase":"awaiting-link",\#(device),\#(nobodyAnyMore),"creation":"life",\#
            "saga":{"purpose":"create","means":{"linker":{}},"commands":[\#(by)"c1"}],\#
            "confirmations":[],"resets":[],"expiry":1800000060000,"deadline":1800000060000,\#
            "isCleaning":false,"wasCleaned":true}}
            """#,
            creating(.awaitingLinker(deadline: soon), facts: nobody4), forgets: true),
        Row(
            "confirming",
            #"""
            "phase":"confirming",\#(device),\#(nobodyAnyMore),"creation":"life",\#
            "saga":{"purpose":"create","means":{"linker":{}},"commands":[\#(by)"c1"}],\#
            "confirmations":[\#(by)"c5"},\#(by)"c6"}],"resets":[],"forward":"f1","expiry":1800000060000,\#
            "deadline":1800000060000,"isCleaning":false,"wasCleaned":true}}
            """#,
            creating(.confirming(.init(commands: [c("c5"), c("c6")], forward: "f1")), facts: nobody4), forgets: true),
        Row(
            "failing, confirmed",
            #"""
            "phase":"resetting",\#(device),\#(nobodyAnyMore),"creation":"life",\#
            "saga":{"purpose":"create","means":{"linker":{}},"commands":[\#(by)"c1"}],\#
            "confirmations":[\#(by)"c5"},\#(by)"c6"}],"resets":[],"forward":"f1","expiry":1800000060000,\#
            "deadline":1800000060000,"failure":{"rejected":{"_0":"APP_SIDE_LINKING_FAILED",\#
            "_1":"Linking did not succeed; try again."}},"isCleaning":false,"wasCleaned":true}}
            """#,
            failing(.appSideLinkingFailed, confirmations: ["c5", "c6"], facts: nobody4), forgets: true),
        Row(
            "failing, a reset waits",
            #"""
            "phase":"resetting",\#(device),\#(nobodyAnyMore),"creation":"life",\#
            "saga":{"purpose":"create","means":{"linker":{}},"commands":[\#(by)"c1"}],\#
            "confirmations":[\#(by)"c5"},\#(by)"c6"}],"resets":[\#(by)"c8"}],"forward":"f1",\#
            "expiry":1800000060000,"deadline":1800000060000,\#
            "failure":{"rejected":{"_0":"APP_SIDE_LINKING_FAILED",\#
            "_1":"Linking did not succeed; try again."}},"isCleaning":false,"wasCleaned":true}}
            """#,
            failing(.appSideLinkingFailed, confirmations: ["c5", "c6"], facts: nobody4, resets: ["c8"]), forgets: true),
        Row(
            "failing, expired",
            #"""
            "phase":"resetting",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"create",\#
            "means":{"linker":{}},"commands":[\#(by)"c1"}],"confirmations":[],"resets":[],\#
            "forward":"f1","deadline":1800000600000,"failure":{"expired":{}},"isCleaning":false,\#
            "wasCleaned":false}}
            """#,
            failing(.expired), forgets: true),
        Row(
            "resetting a creation",
            #"""
            "phase":"resetting",\#(device),\#(nobody),"creation":"life","saga":{"purpose":"reset",\#
            "means":{"none":{}},"commands":[],"confirmations":[],"resets":[\#(by)"c2"}],"forward":"f1",\#
            "isCleaning":false,"wasCleaned":false}}
            """#,
            .resetting(
                Reset(
                    cause: .command(registration(), userID: nil), facts: .nothing, resets: [c("c2")], forward: "f1"))),
        Row(
            "resetting an unknown install",
            #"""
            "phase":"resetting",\#(nobody),"saga":{"purpose":"reset","means":{"none":{}},"commands":[],\#
            "confirmations":[],"resets":[\#(by)"c1"}],"forward":"f1","isCleaning":false,\#
            "wasCleaned":false}}
            """#,
            .resetting(Reset(cause: .commandForUnknown, facts: .nothing, resets: [c("c1")], forward: "f1"))),
        Row(
            "present, of a version before install tokens",
            #"""
            "phase":"present","device":{"kind":"tablet","platform":"android","model":"m",\#
            "osVersion":"9"},"facts":{"version":7,"userID":"u1","isLinked":true,"isActive":false,\#
            "isUsersFirst":true,"status":"disabled"}}
            """#,
            .present(oldAccount)),
    ]

    @Test func whatTheVersionsBeforeWroteIsRead() throws {
        for row in Self.rows {
            let install = try WireJSONDecoder().decode(Installation.self, from: Array(row.json.utf8))
            #expect(install == Installation(app: "demo", id: "i1", row.state), "\(row.name)")
        }
    }

    /// Older replicas go on beside newer ones while a deployment is updated.
    @Test func theyReadWhatThisOneWrites() throws {
        for row in Self.rows {
            let install = Installation(app: "demo", id: "i1", row.state)
            var expected = row.json
            if row.forgets {
                expected.replace(#/"(expiry|deadline)":[0-9]+,/#, with: "")
                expected.replace(#""wasCleaned":true"#, with: #""wasCleaned":false"#)
                if let deadline = install.linkersTurn?.deadline.milliseconds {
                    expected.replace(#""isCleaning""#, with: #""deadline":\#(deadline),"isCleaning""#)
                }
            }
            #expect(String(decoding: try WireJSONEncoder().encode(install), as: UTF8.self) == expected, "\(row.name)")
        }
    }

    @Test(arguments: State.allCases) func everyStateComesBack(_ state: State) throws {
        for install in state.installs.compactMap({ $0 }) {
            let record = try WireJSONEncoder().encode(install)
            #expect(try WireJSONDecoder().decode(Installation.self, from: record) == install)
        }
    }

    /// What cannot be is set aside under its name, not taken for something else.
    @Test func contradictionsAreNamed() throws {
        let wrong: [(String, String, String, String)] = [
            ("present, unlinked", #""userID":"u1","#, "", "present without a user"),
            ("present, unlinked", Self.device, #""sdkVersion":"6.1""#, "present without a device"),
            (
                "present, unlinked", #""phase":"present""#, #""phase":"linking""#,
                "linking without anything that goes on"
            ),
            ("creating unlinked", #""forward":"f1","#, "", "creating without a command that is answered"),
            ("creating unlinked", #"[{"source":"test","id":"c1"}]"#, "[]", "creating without a command that began it"),
            ("creating unlinked", "unlinked", "linker", "creating in order to create, by other means"),
            ("awaiting the linker", #""deadline":1800000060000,"#, "", "awaiting-link without a deadline"),
            ("failing, expired", #""failure":{"expired":{}},"#, "", "resetting without a failure"),
            (
                "resetting a user", #""phase":"resetting""#, #""phase":"present""#,
                "present in order to reset, by other means"
            ),
        ]
        for (name, part, other, problem) in wrong {
            let row = try #require(Self.rows.first { $0.name == name })
            let json = row.json.replacing(part, with: other)
            #expect(json != row.json)
            let error = #expect(throws: StorageError.self) {
                try WireJSONDecoder().decode(Installation.self, from: Array(json.utf8))
            }
            #expect(error?.message == "an installation is \(problem)")
        }
    }
}
