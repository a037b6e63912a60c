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
        from id: String, limit: Int = 50, silent: Set<String> = [], facts: [String: [Fact]] = [:]
    ) -> (found: IdentityWalk.Findings, rounds: Int) {
        var walk = IdentityWalk(from: id, source: nil, limit: limit, services: ["link", "sync"])
        var rounds = 0
        while !walk.questions.isEmpty, rounds < 100 {
            rounds += 1
            var answers: [IdentityWalk.Question: FactsResult] = [:]
            for question in walk.questions where !silent.contains(question.service) {
                let state = Self.held[question.service]?[question.query.id] ?? []
                answers[question] = FactsResult(
                    id: question.query.id, state: state, facts: facts["\(question.service) \(question.query.id)"] ?? [])
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
}
