// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime

/// A command names the key of the replies to it. (Of sagas: `SagaTests`.)
@Suite struct ReplyKeyTests {
    private let world: World

    init() throws { world = try World() }

    private func put(
        _ value: String = "a", id: String = "c1", offset: Int64 = 0, replyKey: String?, dryRun: Bool = false,
        type: String = FakeService.put, signedBy keyID: String = "demo-backend"
    ) throws -> KafkaRecord {
        var attributes = Fixture.attributes(type, id: id)
        attributes.partitionKey = "demo/k"
        attributes.replyKey = replyKey
        attributes.dryRun = dryRun ? "true" : nil
        return try Fixture.record(
            attributes, ["key": "k", "value": .string(value)], signedBy: keyID, offset: offset)
    }

    /// Of the last message, which is the reply: the Kafka key, and the attribute that tells it.
    private func keys(_ entry: Entry?) throws -> [String?] {
        let reply = try #require(entry?.messages.last)
        #expect(reply.isReply)
        return [reply.key.map { String(decoding: $0, as: UTF8.self) }, try world.reply(reply).attributes.partitionKey]
    }

    @Test func theReplyHasTheKeyThatIsAskedFor() throws {
        let entry = try #require(try world.decide([put(replyKey: "mine")]).first)
        #expect(try keys(entry) == ["mine", "mine"])
        #expect(
            entry.messages.dropLast().allSatisfy { $0.key == Array("demo/k".utf8) }, "events keep theirs")
    }

    @Test func withoutItTheReplyHasTheCommands() throws {
        #expect(try keys(try world.decide([put(replyKey: nil)]).first) == ["demo/k", "demo/k"])
    }

    @Test func refusalsHaveItToo() throws {
        _ = try world.decide([put(replyKey: nil)])
        let refused = [
            try put("refuse", id: "c2", offset: 1, replyKey: "mine"),
            try put(id: "c3", offset: 2, replyKey: "mine", signedBy: "demo-sdk"),
            try put(id: "c4", offset: 3, replyKey: "mine", signedBy: "demo-nobody"),
            try put(id: "c5", offset: 4, replyKey: "mine", type: "identity.fake.unknown.v1"),
            try put("b", offset: 5, replyKey: "mine"),
        ]
        for record in refused {
            let entry = try world.decide([record]).first
            #expect(try keys(entry) == ["mine", "mine"])
            #expect(try world.reply(entry?.messages.last).data.status == .rejected)
        }
    }

    /// It goes where the repetition asks, and says what the first answer said, byte for byte.
    @Test(arguments: [true, false]) func aRepetitionHasItsOwn(_ inOneBatch: Bool) throws {
        let records = [
            try put(replyKey: "first"), try put(offset: 1, replyKey: "second"), try put(offset: 2, replyKey: nil),
        ]
        let entries = inOneBatch ? try world.decide(records) : try records.flatMap { try world.decide([$0]) }
        #expect(entries.map(\.outcome.rawValue) == ["succeeded", "repeated", "repeated"])
        #expect(
            entries.map { $0.messages.last?.key.map { String(decoding: $0, as: UTF8.self) } }
                == ["first", "second", "demo/k"])
        #expect(Set(entries.map { $0.messages.last?.value }).count == 1)
    }

    @Test func dryRunsHaveItToo() throws {
        #expect(try keys(try world.decide([put(replyKey: "mine", dryRun: true)]).first) == ["mine", "mine"])
        _ = try world.decide([put(offset: 1, replyKey: nil)])
        let known = try #require(try world.decide([put(offset: 2, replyKey: "mine", dryRun: true)]).first)
        #expect(known.outcome.rawValue == "repeated" && known.messages.last?.key == Array("mine".utf8))
    }

    /// What asks for the reply elsewhere is the same command.
    @Test func itIsNoPartOfWhatACommandSays() throws {
        let digests = [nil, "one", "two"].map { replyKey in
            (try? put(replyKey: replyKey)).flatMap { world.accepted($0)?.digest }
        }
        #expect(digests[0] != nil && Set(digests).count == 1)
    }
}
