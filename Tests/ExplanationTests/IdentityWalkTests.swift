// SPDX-License-Identifier: Apache-2.0

import Contracts
import Explanation
import Testing
import WireJSON

/// From an id to all others, against services that hold what is said here. What it tells of devices that several people use
/// is tested with the services themselves (Tests/EndToEnd/test_explain.py).
@Suite struct IdentityWalkTests {
    /// What each service holds, by id.
    private typealias Held = [String: [String: [JSONValue]]]

    private static let held: Held = [
        "link": [
            "phone": [["kind": "install", "installId": "phone", "userId": "u1", "device": "phone", "platform": "ios"]],
            "u1": [["kind": "user", "userId": "u1", "externalId": "ada"]],
            "ada": [["kind": "user", "userId": "u1", "externalId": "ada"]],
        ],
        "sync": [
            "ada": [["kind": "identity", "type": "customerid", "value": "ada", "mpids": ["7"]]],
            "7": [["kind": "profile", "mpid": "7", "identities": [["type": "customerid", "value": "ada"]]]],
        ],
    ]

    /// - Parameter silent: who does not answer.
    private func walk(
        from id: String, limit: Int = 50, silent: Set<String> = [], facts: [String: [Fact]] = [:], more: Held = [:]
    ) -> (found: IdentityWalk.Findings, rounds: Int) {
        var walk = IdentityWalk(from: id, source: nil, limit: limit, services: ["link", "sync"])
        var rounds = 0
        while !walk.questions.isEmpty, rounds < 100 {
            rounds += 1
            var answers: [IdentityWalk.Question: FactsResult] = [:]
            for question in walk.questions where !silent.contains(question.service) {
                let (service, id) = (question.service, question.query.id)
                let state = more[service]?[id] ?? Self.held[service]?[id] ?? []
                answers[question] = FactsResult(
                    id: id, state: state, facts: facts["\(service) \(id)"] ?? [])
            }
            walk.take(answers)
        }
        return (walk.findings, rounds)
    }

    private func fact(_ offset: Int64, _ user: JSONValue = "u1") -> Fact {
        Fact(
            service: "link", decidedAt: Timestamp(milliseconds: 1_795_251_844_031 + offset), topic: "t", partition: 0,
            offset: offset, type: "identity.link.request.v1", source: "s", commandId: "c", outcome: "succeeded",
            events: [Fact.Told(type: "identity.link.linked.v1", data: ["userId": user, "installId": "phone"])])
    }

    @Test(arguments: ["phone", "u1", "ada"]) func anyIDLeadsToTheSamePerson(_ id: String) {
        let kinds = walk(from: id).found.rows.compactMap { $0.value["kind"]?.stringValue }.sorted()
        #expect(kinds.filter { $0 != "install" } == ["identity", "profile", "user"])
    }

    @Test func whoIsNobodyIsAskedOnce() {
        let (found, rounds) = walk(from: "nobody")
        #expect(found.rows.isEmpty && found.decisions.isEmpty && rounds == 1)
    }

    @Test func whoDoesNotAnswerIsNamedAndNotAskedAgain() {
        let (found, _) = walk(from: "phone", silent: ["sync"])
        #expect(found.silent == ["sync"] && found.rows.allSatisfy { $0.service == "link" })
        #expect(walk(from: "phone", silent: ["link", "sync"]).rounds == 1)
    }

    @Test func decisionsStandInTheirOrderAndTheNewestAreKept() {
        let (found, _) = walk(from: "u1", limit: 2, facts: ["link u1": [fact(3), fact(1), fact(2)]])
        #expect(found.decisions.map(\.offset) == [2, 3] && found.hasMore)
    }

    /// Of an install that it comes to only what is about these people.
    @Test func whatOthersDidThereIsTheirs() {
        let (found, _) = walk(from: "u1", facts: ["link u1": [fact(1)], "link phone": [fact(1), fact(2, "u2")]])
        #expect(found.decisions.map(\.offset) == [1])
    }

    // MARK: Whoever had the external id before

    private func login(_ offset: Int64, _ mpid: JSONValue, _ value: String) -> Fact {
        var fact = fact(offset)
        (fact.service, fact.topic, fact.type) = ("sync", "s", "identity.sync.login.v1")
        fact.result = ["mpid": mpid, "matchedIdentities": ["customerid": "ada"]]
        fact.events = [
            Fact.Told(
                type: "identity.sync.identities-changed.v1",
                data: ["mpid": mpid, "added": [["type": "email", "value": .string(value)]]])
        ]
        return fact
    }

    /// A request for a code, which names nobody.
    private func code(_ offset: Int64) -> Fact {
        var code = fact(offset)
        code.events = [Fact.Told(type: "identity.user.auth-code-issued.v1", data: ["externalId": "ada"])]
        return code
    }

    /// Two people had the external id, one after the other: whoever has it now is told of, from whichever of their ids.
    @Test(arguments: ["phone", "u1", "7"]) func whoHadTheExternalIDBeforeIsSomebodyElse(_ id: String) {
        let facts = [
            "link ada": [code(1), fact(2, "u2"), code(4), fact(6), code(7)],
            "sync ada": [login(3, "8", "b@b.io"), login(5, "7", "a@a.io")],
        ]
        #expect(walk(from: id, facts: facts).found.decisions.map(\.offset) == [4, 5, 6, 7])
        // Whoever asks about the external id is told all that was decided about it.
        #expect(walk(from: "ada", facts: facts).found.decisions.map(\.offset) == [1, 2, 3, 4, 5, 6, 7])
    }

    /// What a decision that is theirs says of others too.
    @Test func whatADecisionSaysOfOthersIsLeftOut() throws {
        var both = fact(1)
        both.result = ["mpid": "8"]
        both.events += login(1, "8", "b@b.io").events
        let told = try #require(walk(from: "phone", facts: ["link ada": [both]]).found.decisions.first)
        #expect(told.events == fact(1).events && told.result == nil)
    }

    /// Who is erased is told since when, and nothing of how they lived.
    @Test func whoHadItAndIsErasedIsTold() {
        var erasure = fact(2, "u2")
        erasure.events = [Fact.Told(type: "identity.link.user-erased.v1", data: ["userId": "u2"])]
        let held: Held = ["link": ["u2": [["kind": "user", "userId": "u2", "isErased": true]]]]
        let found = walk(from: "phone", facts: ["link ada": [fact(1, "u2"), erasure, fact(3)]], more: held).found
        #expect(found.rows.contains { $0.value["userId"] == "u2" } && found.decisions.map(\.offset) == [3])
    }

    /// An external id that somebody gave up leads to them when it is asked about, and else to nobody.
    @Test func aHoldLeadsToNobody() {
        let held: Held = [
            "link": [
                "ada": [["kind": "hold", "externalId": "ada", "userId": "u2", "until": "t"]],
                "u2": [["kind": "user", "userId": "u2", "externalId": "eva"]],
            ]
        ]
        let found = walk(from: "7", more: held).found
        #expect(found.rows.contains { $0.value["kind"] == "hold" && $0.value["userId"] == nil })
        #expect(!found.rows.contains { $0.value["userId"] == "u2" })
        #expect(walk(from: "ada", more: held).found.rows.contains { $0.value["externalId"] == "eva" })
    }

    /// Whoever has a tablet by now is named by an id, and what is known of them there is theirs.
    @Test func ofWhoHasATabletByNowTheIDIsTold() throws {
        let held: Held = [
            "link": [
                "tablet": [
                    [
                        "kind": "install", "installId": "tablet", "userId": "u2", "device": "tablet", "platform": "ios",
                        "status": "enabled", "activity": "standby", "inactiveBecause": "waitsForPhone",
                    ]
                ]
            ]
        ]
        var was = fact(1)
        was.events = [Fact.Told(type: "identity.link.linked.v1", data: ["userId": "u1", "installId": "tablet"])]
        let found = walk(from: "u1", facts: ["link u1": [was]], more: held).found
        let row = try #require(found.rows.first { $0.value["installId"] == "tablet" }).value
        #expect(row["userId"] == "u2" && row["activity"] == nil && row["inactiveBecause"] == nil)
        let whole = walk(from: "tablet", more: held).found.rows.first { $0.value["installId"] == "tablet" }
        #expect(whole?.value["activity"] == "standby")
    }
}
