// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// A dry run says what would happen, and nothing of it happens.
@Suite struct DryRunTests {
    private let world: World

    init() throws { world = try World() }

    private func put(_ value: String, id: String, offset: Int64, dryRun: String? = "true") throws -> KafkaRecord {
        try world.put(value, id: id, offset: offset, dryRun: dryRun)
    }

    @Test func theReplySaysWhatWouldHaveHappened() throws {
        _ = try world.decide([put("a", id: "c1", offset: 0, dryRun: "false")])
        let entry = try #require(try world.decide([put("b", id: "c2", offset: 1)]).first)
        #expect(entry.outcome.rawValue == "dry-run" && entry.key == nil)
        #expect(entry.messages.map(\.role) == [.reply])
        let reply = try world.reply(entry.messages.first).data
        #expect(reply.isDryRun && reply.status == .succeeded && reply.result == ["before": "a"])
        #expect(reply.commandDigest.count == 64)
        #expect(
            reply.events == [
                ["type": .string(FakeService.Changed.type), "data": ["key": "k", "value": "b"]],
                ["type": .string(FakeService.Changed.type), "data": ["key": "k", "value": "again"]],
            ])
        #expect(try world.store.values() == ["k": "a"])
    }

    @Test func aRefusalIsToldToo() throws {
        let entry = try #require(try world.decide([put("refuse", id: "c1", offset: 0)]).first)
        let reply = try world.reply(entry.messages.first).data
        #expect(reply.isDryRun && reply.status == .rejected && reply.rejection.reason == .installNotFound)
        #expect(reply.events?.count == 1 && entry.messages.count == 1)
    }

    @Test(arguments: [true, false]) func theIdIsNotTaken(_ inOneBatch: Bool) throws {
        let records = [
            try put("a", id: "c1", offset: 0), try put("b", id: "c1", offset: 1),
            try put("b", id: "c1", offset: 2, dryRun: nil), try put("b", id: "c1", offset: 3),
            try put("a", id: "c1", offset: 4),
        ]
        let entries = inOneBatch ? try world.decide(records) : try records.flatMap { try world.decide([$0]) }
        #expect(entries.map(\.outcome.rawValue) == ["dry-run", "dry-run", "succeeded", "repeated", "rejected"])
        let replies = try entries.map { try world.reply($0.messages.last) }
        #expect(replies.map { $0.data.isDryRun } == [true, true, false, true, true])
        // After the real one a dry run tells its answer: that is what would happen.
        #expect(replies[3].data.result == replies[2].data.result && replies[3].data.status == .succeeded)
        #expect(replies[4].data.rejection.reason == .idReused)
        #expect(Set(replies.map(\.attributes.id)).count == 5)
        #expect(try world.store.values() == ["k": "b"])
    }

    @Test(arguments: ["yes", "TRUE", "", "1"]) func anythingElseIsRefusedAndTakesNoId(_ text: String) throws {
        let refused = try #require(try world.decide([put("a", id: "c1", offset: 0, dryRun: text)]).first)
        #expect(refused.outcome.rawValue == "rejected" && refused.key == nil)
        #expect(try world.reply(refused.messages.last).data.rejection.reason == .invalidRequest)
        #expect(try world.store.values() == [:])
        #expect(try world.decide([put("a", id: "c1", offset: 1, dryRun: nil)])[0].outcome.rawValue == "succeeded")
    }

    @Test func anUnknownTypeIsOnlyAnswered() throws {
        var attributes = Fixture.attributes("identity.fake.unknown.v1")
        attributes.dryRun = "true"
        let entry = try #require(try world.decide([Fixture.record(attributes)]).first)
        #expect(entry.messages.map(\.role) == [.reply])
        #expect(try world.reply(entry.messages.last).data.rejection.reason == .unknownType)
    }

    /// Random dry runs among random commands: store, answers and events are as if they had not been there.
    @Test(arguments: 0..<20 as Range<UInt64>) func nobodyElseNotices(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let other = try World()
        var batch: [KafkaRecord] = []
        var real: [KafkaRecord] = []
        var told: [[OutboxRecord]] = []
        var expected: [[OutboxRecord]] = []
        for offset in 0..<200 as Range<Int64> {
            let isDryRun = Bool.random(using: &random)
            let record = try put(
                ["a", "b", "refuse"].randomElement(using: &random) ?? "a",
                id: "c\(Int.random(in: 0..<60, using: &random))",
                offset: offset, dryRun: isDryRun ? "true" : nil)
            batch.append(record)
            if !isDryRun { real.append(record) }
            guard Int.random(in: 0..<8, using: &random) == 0 || offset == 199 else { continue }
            let entries = try world.decide(batch)
            #expect(zip(batch, entries).allSatisfy { $0.offset == $1.position.offset })
            for entry in entries {
                if real.contains(where: { $0.offset == entry.position.offset }) {
                    told.append(entry.messages)
                } else {
                    #expect(entry.messages.count == 1 && entry.messages[0].isReply && entry.key == nil)
                    #expect(try world.reply(entry.messages[0]).data.isDryRun)
                }
            }
            if !real.isEmpty { expected += try other.decide(real).map(\.messages) }
            (batch, real) = ([], [])
            #expect(try world.store.values() == other.store.values())
        }
        #expect(told == expected)
        #expect(try world.remembered() == other.remembered())
    }

    // MARK: Secrets

    @Test func secretsAreLeftAway() throws {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let record = try put("a", id: "c1", offset: 0)
        let command = try #require(world.accepted(record))
        let token = UserTokenResult(tokenId: "the-token", expiryDate: Timestamp(milliseconds: 1_798_761_600_000))
        let user = UserResult(
            userId: "u", installId: "i", isLinked: false, isRemoteEnabled: true, token: token, configuration: [:],
            installToken: token)
        for result in [AuthCodeResult(authenticationCode: "the-code", expiresAt: Fixture.now), user]
            as [any CommandResult]
        {
            let message = try writer.preview(
                .succeeded(result), [], of: command, id: "r", now: Fixture.now)
            let text = String(decoding: message.value ?? [], as: UTF8.self)
            #expect(message.role == .reply && !text.contains("the-") && text.contains(#""dryRun":true"#))
        }
        let real = try #require(
            try writer.reply(.succeeded(user), to: command, index: 0, now: Fixture.now)?.reply)
        #expect(real.role == .confidentialReply)
        let again = writer.again(real, to: command, in: .init(cluster: "cluster", incarnation: 0))
        #expect(again.role == .reply)
        #expect(try world.reply(again).data.result?["token"] == ["expiryDate": "2027-01-01T00:00:00.000Z"])
    }

    /// A confidential result whose secret has no known name is not told at all.
    @Test func whatCannotBeToldApartIsLeftAway() throws {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let record = try put("a", id: "c1", offset: 0)
        let command = try #require(world.accepted(record))
        let outcome = Outcome.pending(SagaService.Secret(secret: "s"))
        let message = try writer.preview(
            outcome, [], of: command, id: "r", now: Fixture.now)
        let reply = try world.reply(message).data
        #expect(reply.status == .pending && reply.result == nil)
    }
}

/// A store of the fake service, and batches on it.
struct World {
    let store: FakeStore
    private let reader = InboundReader<FakeService>(authenticator: Fixture.authenticator(), topics: Topics())
    private let vault = OutboxVault(Fixture.keys)

    init() throws { store = try FakeStore(.sqlite) }

    func decide(_ records: [KafkaRecord]) throws -> [Entry] {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let decider = BatchDecider(
            service: FakeService(), reader: reader, writer: writer, vault: vault, secrets: .none,
            cluster: "cluster", incarnations: [:])
        return try store.database.transaction { transaction in
            try decider.decide(
                records.map { reader.read($0, now: Fixture.now) }, in: transaction, now: Fixture.now)
        }
    }

    func accepted(_ record: KafkaRecord) -> AcceptedCommand<FakeService.Put>? {
        reader.read(record, now: Fixture.now).accepted
    }

    func put(_ value: String, id: String, offset: Int64, dryRun: String?) throws -> KafkaRecord {
        var attributes = Fixture.attributes(id: id)
        attributes.dryRun = dryRun
        return try Fixture.record(attributes, ["key": "k", "value": .string(value)], offset: offset)
    }

    func reply(_ message: OutboxRecord?) throws -> CloudEvent<ReceivedReply> {
        try Fixture.reply(try #require(message?.value))
    }

    /// What the inbox knows commands by.
    func remembered() throws -> [String: [UInt8]] {
        try store.database.transaction { transaction in
            let keys = (0..<60).map { CommandKey(app: "demo", source: "test", id: CommandID("c\($0)")) }
            let found = try Inbox.find(keys, in: transaction).commands
            return Dictionary(uniqueKeysWithValues: found.map { ($0.key.id.text, $0.value.digest) })
        }
    }
}
