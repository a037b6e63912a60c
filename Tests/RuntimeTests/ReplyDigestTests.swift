// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime

/// Every reply names the command that it answers by what that command said.
@Suite struct ReplyDigestTests {
    private let world: World

    init() throws { world = try World() }

    private func digest(_ value: String) -> String {
        CommandDigest.text(type: FakeService.put, data: ["value": .string(value), "key": "k"])
    }

    @Test func theDigestIsThatOfTheCommandThatAsks() throws {
        let entries = try world.decide([
            world.put("a", id: "c1", offset: 0, dryRun: nil), world.put("a", id: "c1", offset: 1, dryRun: nil),
            world.put("b", id: "c1", offset: 2, dryRun: nil),
        ])
        let replies = try entries.map { try world.reply($0.messages.last).data }
        #expect(replies.map(\.commandDigest) == [digest("a"), digest("a"), digest("b")])
        #expect(replies.map(\.reason) == [nil, nil, "ID_REUSED"])
    }

    @Test func refusalsHaveItToo() throws {
        for (offset, key) in ["demo-sdk", "demo-nobody"].enumerated() {
            let record = try Fixture.record(signedBy: key, offset: Int64(offset))
            let reply = try world.reply(try world.decide([record]).first?.messages.last).data
            #expect(reply.status == .rejected && reply.commandDigest == digest("v"), "\(key)")
        }
        let unknown = try Fixture.record(Fixture.attributes("identity.fake.unknown.v1"), offset: 2)
        let reply = try world.reply(try world.decide([unknown]).first?.messages.last).data
        let expected = CommandDigest.text(type: "identity.fake.unknown.v1", data: ["key": "k", "value": "v"])
        #expect(reply.rejection.reason == .unknownType && reply.commandDigest == expected)
    }

    /// Sagas remember it until they end.
    @Test func aSagaRemembersIt() throws {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let record = try world.put("a", id: "c1", offset: 0, dryRun: nil)
        let command = try #require(world.accepted(record))
        let saga = try writer.saga(of: command, now: Fixture.now)
        let final = try world.reply(writer.settlement(.expired, of: saga, now: Fixture.now))
        #expect(final.data.commandDigest == digest("a") && !final.data.isDryRun)
    }
}
