// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import Runtime

/// Two replicas decided about a person at once: which of the two a replay takes first.
@Suite struct LaterTimesTests {
    private let erase = CommandKey(app: "demo", source: "test", id: "c1")

    private func told(_ type: String, _ id: String, _ data: JSONValue) -> CloudEvent<JSONView> {
        CloudEvent(
            attributes: EventAttributes(id: id, source: "identitybus/link", type: type, appID: "demo"),
            data: JSONView(data))
    }

    /// The erasure of u1, at 1000.
    private func erasure(_ type: String = UserErased.type, of person: JSONValue = ["userId": "u1"]) -> LaterTimes {
        var later = LaterTimes(questions: ["identity.link.get-user.v1"])
        later.note(told(type, DerivedID.message(of: erase, index: 2), person), at: 1000)
        return later
    }

    private static func reply(
        _ result: JSONValue?, status: JSONValue = "succeeded", to type: JSONValue = "identity.link.request.v1"
    ) -> JSONValue {
        var reply: JSONObject = ["commandId": "c9", "commandType": type, "commandDigest": "d", "status": status]
        reply["result"] = result
        return .object(reply)
    }

    private static let seen: JSONValue = reply(["userId": "u1"])

    @Test(
        arguments: [
            (Int64(1001), seen, Int64(1002)),
            (1040, seen, 1041),
            (61_000, seen, 61_001),
            // In its batch or before it, and too late for a transaction that did not see it.
            (1000, seen, 1000),
            (999, seen, 1000),
            (61_001, seen, 1000),
            // Who is somebody else, and who was not found.
            (1040, reply(["userId": "u2"]), 1000),
            (1040, reply(["userId": "u1"], status: "rejected"), 1000),
            (1040, reply(nil), 1000),
            // Who only looks sees her also when she is gone, and nothing came of it.
            (1040, reply(["userId": "u1"], to: "identity.link.get-user.v1"), 1000),
            (1040, reply(["userId": "u1", "isErased": true]), 1000),
        ] as [(Int64, JSONValue, Int64)])
    func anErasureComesBehindWhoeverStillSawThePerson(_ time: Int64, _ reply: JSONValue, _ expected: Int64) {
        var later = erasure()
        later.note(told(ReceivedReply.type, "r1", reply), at: time)
        #expect(later.time(of: erase, 1000) == expected)
        // Nothing else that was decided at that time moves.
        #expect(later.time(of: CommandKey(app: "demo", source: "test", id: "c2"), 1000) == 1000)
    }

    @Test func theLastOneCounts() {
        var later = erasure()
        for time in [Int64(1040), 1200, 1100] { later.note(told(ReceivedReply.type, "r\(time)", Self.seen), at: time) }
        #expect(later.time(of: erase, 1000) == 1201)
    }

    /// What a replay tells again has a later time.
    @Test func theFirstErasureCounts() {
        var later = erasure()
        later.note(told(UserErased.type, "again", ["userId": "u1"]), at: 5000)
        later.note(told(ReceivedReply.type, "r1", Self.seen), at: 1040)
        #expect(later.time(of: erase, 1000) == 1041)
    }

    @Test func profilesToo() {
        var later = erasure(ProfileErased.type, of: ["mpid": "7", "cause": "erase"])
        later.note(told(ReceivedReply.type, "r1", Self.reply(["mpid": "7"])), at: 1040)
        #expect(later.time(of: erase, 1000) == 1041)
    }
}
