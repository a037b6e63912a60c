// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// Sagas on a real database, as `ServiceLoop.commit` decides them: pending, forwards, settlements, notifications.
@Suite struct SagaTests {
    private let store: ServiceStore<SagaService>
    private let topics = Topics()

    init() throws {
        store = try ServiceStore(.sqlite)
    }

    private func decide(
        _ records: [KafkaRecord], keys: DeploymentKeys = Fixture.keys, now: Timestamp = Fixture.now
    ) throws -> [Entry] {
        let reader = InboundReader<SagaService>(authenticator: Fixture.authenticator(), topics: topics)
        let vault = OutboxVault(keys)
        let decider = BatchDecider(
            service: SagaService(), reader: reader,
            writer: MessageWriter(service: "saga", topics: topics, keys: keys), vault: vault,
            secrets: DerivedSecrets(keys), cluster: "cluster", incarnations: [:])
        return try store.database.transaction { transaction in
            try decider.decide(records.map { reader.read($0, now: now) }, in: transaction, now: now)
        }
    }

    private func begin(
        _ question: String = "why", id: String = "c1", offset: Int64 = 0,
        change: (inout EventAttributes) -> Void = { _ in }
    ) throws -> KafkaRecord {
        var attributes = Fixture.attributes(SagaService.begin, id: id)
        attributes.correlationID = "root"
        attributes.replyTo = "identity.replies.mine"
        change(&attributes)
        return try record(attributes, ["question": .string(question)], topics.commands("saga"), "demo-backend", offset)
    }

    /// The peer's reply to the forward of command `id`.
    private func answer(
        to id: String = "c1", _ status: String = "succeeded", offset: Int64 = 0, replyID: String = "r1",
        signedBy: String? = Signature.eventsKeyID
    ) throws -> KafkaRecord {
        var attributes = EventAttributes(
            id: replyID, source: "identitybus/peer", type: "identity.reply.v1", appID: "demo")
        attributes.correlationID = "root"
        let forward = DerivedID.forward(of: CommandKey(app: "demo", source: "test", id: CommandID(id)), number: 0)
        let data: JSONValue = [
            "commandId": .string(forward.text), "commandType": "identity.peer.ask.v1",
            "commandDigest": "d", "status": .string(status),
        ]
        return try record(attributes, data, topics.replies(to: "saga"), signedBy, offset)
    }

    private func record(
        _ attributes: EventAttributes, _ data: JSONValue, _ topic: String, _ keyID: String?, _ offset: Int64
    ) throws -> KafkaRecord {
        let value = try CloudEvent(attributes: attributes, data: data).encoded()
        var headers = [Header(HeaderName.contentType, HeaderName.structuredContentType)]
        if let keyID {
            let secret = Fixture.signingKey(keyID)
            let signature = Signature(keyID: keyID, secret: secret, topic: topic, headers: headers, value: value)
            headers.append(Header(HeaderName.signature, signature.header))
        }
        return KafkaRecord(
            topicPartition: TopicPartition(topic: topic, partition: 0), offset: offset, timestampMs: 1,
            key: Array("demo/k".utf8), value: value,
            headers: headers)
    }

    private func reply(_ message: OutboxRecord?) throws -> CloudEvent<ReceivedReply> {
        try Fixture.reply(try #require(message?.value))
    }

    @Test func aPendingCommandForwardsAndIsAnsweredTwice() throws {
        let first = try #require(try decide([begin { $0.expiryTime = "2099-01-01T00:00:00Z" }]).first)
        #expect(first.outcome.rawValue == "pending")
        #expect(first.told.map(\.role) == [.command, .confidentialReply])
        let command = try EnvelopeReader.read(value: first.told[0].value, headers: first.told[0].headers)
        #expect(first.told[0].topic == "identity.peer.commands.v1")
        #expect(first.told[0].key == Array("demo/why".utf8))
        #expect(
            command.attributes.id
                == DerivedID.forward(of: CommandKey(app: "demo", source: "test", id: "c1"), number: 0).text)
        #expect(command.attributes.type == "identity.peer.ask.v1")
        #expect(command.attributes.source == "identitybus/saga")
        #expect(command.attributes.replyTo == "identity.replies.saga.v1")
        #expect(command.attributes.correlationID == "root")
        #expect(command.attributes.causationID == "c1")
        #expect(Timestamp(rfc3339: command.attributes.expiryTime ?? "") == Timestamp(rfc3339: "2099-01-01T00:00:00Z"))
        #expect(try reply(first.told.last).data.status == .pending)

        let settled = try #require(try decide([answer()]).first)
        #expect(settled.outcome.rawValue == "noted")
        #expect(settled.told.map(\.role) == [.event, .confidentialReply])
        #expect(settled.told[1].topic == "identity.replies.mine")
        let final = try reply(settled.told[1])
        #expect(final.attributes.id == DerivedID.settlement(of: CommandKey(app: "demo", source: "test", id: "c1")))
        #expect(final.attributes.causationID == "c1" && final.attributes.correlationID == "root")
        #expect(final.data.commandId == "c1" && final.data.status == .succeeded)
        #expect(final.data.result == ["secret": "final"])
    }

    /// While the saga goes on a repetition is told `pending`, afterwards it gets the final answer.
    @Test(arguments: [true, false]) func aRepetitionGetsWhatIsKnown(_ inOneBatch: Bool) throws {
        let records = [
            try begin(), try begin(offset: 1), try answer(),
            try begin(offset: 2) { $0.replyTo = "identity.replies.other" },
        ]
        let entries = inOneBatch ? try decide(records) : try records.flatMap { try decide([$0]) }
        #expect(entries.map(\.outcome.rawValue) == ["pending", "repeated", "noted", "repeated"])
        #expect(try reply(entries[1].told.first).data.status == .pending)
        #expect(entries[1].told.count == 1)
        let last = try #require(entries[3].told.first)
        #expect(try reply(last).data.status == .succeeded)
        #expect(last.topic == "identity.replies.other")
        #expect(last.value == entries[2].told.last?.value)
    }

    /// The key that the command names is stored with it, and every reply has it: also the one that another replica
    /// writes, hours later. The other service is asked under its own.
    @Test func allRepliesHaveTheKeyThatIsAskedFor() throws {
        let key = { (entry: Entry?) in entry?.told.last?.key.map { String(decoding: $0, as: UTF8.self) } }
        let first = try #require(try decide([begin { $0.replyKey = "mine" }]).first)
        #expect(key(first) == "mine")
        #expect(first.told[0].key == Array("demo/why".utf8))
        let asked = try EnvelopeReader.read(value: first.told[0].value, headers: first.told[0].headers)
        #expect(asked.attributes.replyKey == nil)
        let again = try decide([begin(offset: 1) { $0.replyKey = "other" }]).first
        #expect(key(again) == "other")
        #expect(try reply(again?.told.last).data.status == .pending)
        let settled = try decide([answer()]).first
        #expect(key(settled) == "mine")
        #expect(try reply(settled?.told.last).attributes.partitionKey == "mine")
        let last = try decide([begin(offset: 2) { $0.replyKey = "other" }]).first
        #expect(key(last) == "other")
        #expect(try reply(last?.told.last).data.status == .succeeded)
    }

    /// Such a row is what earlier versions stored, too.
    @Test func withoutAKeyTheFinalReplyHasTheCommands() throws {
        _ = try decide([begin()])
        let saga = try #require(
            try store.database.transaction {
                try Sagas.find([CommandKey(app: "demo", source: "test", id: "c1")], in: $0).values.first
            })
        #expect(try JSONValue(parsing: saga.origin)["replykey"] == nil)
        #expect(try decide([answer()]).first?.told.last?.key == Array("demo/k".utf8))
    }

    /// In a store that was put back an answer may stand before what it answers. The other service is asked again then,
    /// and says the same.
    @Test(arguments: [true, false]) func anAnswerThatComesBeforeItsQuestionEndsNoAsking(_ inOneBatch: Bool) throws {
        let records = [try answer(), try begin()]
        let entries = inOneBatch ? try decide(records) : try records.flatMap { try decide([$0]) }
        #expect(entries.map(\.outcome.rawValue) == ["noted", "pending"])
        #expect(try unanswered() == 1)
        let settled = try #require(try decide([answer(offset: 1)]).first)
        #expect(try reply(settled.told.last).data.status == .succeeded)
        #expect(try unanswered() == 0)
    }

    @Test(arguments: [true, false]) func anAnswerEndsTheAsking(_ inOneBatch: Bool) throws {
        let records = [try begin(), try answer()]
        _ = inOneBatch ? try decide(records) : try records.flatMap { try decide([$0]) }
        #expect(try unanswered() == 0)
    }

    private func unanswered() throws -> Int64 { try store.database.transaction { try Forwards.count(in: $0) } }

    /// A saga that begins in silence is pending later, and then ends.
    @Test(arguments: [true, false]) func aSilentSagaSpeaksWhenThereIsSomethingToSay(_ inOneBatch: Bool) throws {
        let records = [
            try begin("silent"), try begin("silent", offset: 1), try answer(to: "c1", "pending"),
            try begin("silent", offset: 2), try answer(offset: 1, replyID: "r2"), try begin("silent", offset: 3),
        ]
        let entries = inOneBatch ? try decide(records) : try records.flatMap { try decide([$0]) }
        #expect(entries.map(\.outcome.rawValue) == ["pending", "repeated", "noted", "repeated", "noted", "repeated"])
        #expect(entries[0].told.map(\.role) == [.command])
        let replies = try entries[1...].map { try reply($0.told.last) }
        #expect(replies.map(\.data.status) == [.pending, .pending, .pending, .succeeded, .succeeded])
        #expect(
            replies.map(\.data.result) == [
                nil, ["secret": "interim"], ["secret": "interim"], ["secret": "final"], ["secret": "final"],
            ])
        #expect(Set(replies.map(\.attributes.id)).count == 3)
        #expect(replies[1].attributes.id == replies[2].attributes.id)
    }

    @Test func theSameReplyAgainChangesNothing() throws {
        _ = try decide([begin(), answer()])
        let again = try decide([answer(offset: 1), answer("rejected", offset: 2, replyID: "r2")])
        #expect(again.map(\.outcome.rawValue) == ["repeated", "noted"])
        #expect(again.flatMap(\.told).isEmpty)
    }

    @Test func onlyTheFirstSettlementCounts() throws {
        _ = try decide([begin()])
        let both = try decide([begin("twice", id: "c2", offset: 1), answer()])
        #expect(both[0].told.map(\.role) == [.reply, .confidentialReply])
        #expect(try reply(both[0].told[0]).data.status == .expired)
        #expect(try reply(both[0].told[1]).data.result == ["secret": "own"])
        #expect(both[1].told.map(\.role) == [.event])
        // A repetition gets its own answer, not the one it gave to another command.
        let again = try decide([begin("twice", id: "c2", offset: 3)])
        #expect(try reply(again[0].told.first).data.result == ["secret": "own"])
        #expect(again[0].told.count == 1)
    }

    /// Guarantee 5: what stands in the store does not give the secret away, and comes out as it went in.
    @Test func confidentialRepliesAreEncryptedAtRest() throws {
        let first = try decide([begin(), answer()])
        let stored = try store.database.transaction { transaction in
            try transaction.query("SELECT messages FROM outbox").map { try $0.blob(0) }
                + transaction.query("SELECT reply FROM saga").map { try $0.blob(0) }
        }
        let receipts = try store.database.transaction {
            try $0.query("SELECT receipt, decided_at FROM inbox_1").map { (try $0.blob(0), try $0.integer(1)) }
        }
        #expect(stored.count == 3 && receipts.count == 2)
        let readable = try receipts.flatMap { receipt, time in
            let receipt = try Receipt(column: receipt, decidedAt: time)
            return [receipt.reply?.value ?? []] + receipt.told.map(\.data)
        }
        for bytes in stored + receipts.map(\.0) + readable {
            #expect(!String(decoding: bytes, as: UTF8.self).contains("first of"))
            #expect(!String(decoding: bytes, as: UTF8.self).contains("final"))
        }
        let vault = OutboxVault(Fixture.keys)
        let opened = try stored.map { try vault.open($0) }
        #expect(opened.contains(first[0].messages) && opened.contains(first[1].messages))
    }

    @Test func anotherInternalKeyIsAnInternalErrorAndNotSilence() throws {
        _ = try decide([begin("twice", id: "c2")])
        let other = DeploymentKeys(internalKeys: [SymmetricKey(data: Array("another-key-of-the-tests".utf8))])
        let again = try decide([begin("twice", id: "c2", offset: 1)], keys: other)
        #expect(again[0].reason == "INTERNAL_ERROR")
        #expect(try reply(again[0].told.first).data.rejection.reason == .internalError)
    }

    @Test(arguments: [nil, "demo-backend", "internal", "gateway"]) func aForgedReplyIsSetAside(_ keyID: String?) throws
    {
        _ = try decide([begin()])
        let forged = try #require(try decide([answer(signedBy: keyID)]).first)
        #expect(forged.outcome.rawValue == "dead-lettered")
        #expect(forged.told.map(\.role) == [.deadLetter])
        #expect(try decide([answer(offset: 1)])[0].told.map(\.role) == [.event, .confidentialReply])
    }

    @Test func otherEventsOfASubscribedTopicArePassedOver() throws {
        let attributes = EventAttributes(
            id: "e1", source: "identitybus/peer", type: "identity.peer.other.v1", appID: "demo")
        let known = EventAttributes(
            id: "e2", source: "identitybus/peer", type: "identity.peer.happened.v1", appID: "demo")
        let command = EventAttributes(
            id: "e3", source: "identitybus/peer", type: SagaService.Begin.type, appID: "demo")
        let topic = topics.events("peer")
        let entries = try decide([
            record(attributes, [:], topic, nil, 0), record(known, [:], topic, Signature.eventsKeyID, 1),
            record(known, [:], topic, Signature.eventsKeyID, 2), record(known, [:], topic, "demo-backend", 3),
            record(command, [:], topic, Signature.eventsKeyID, 4),
        ])
        #expect(entries.map(\.outcome.rawValue) == ["noted", "repeated", "dead-lettered"])
        #expect(entries[0].told.isEmpty && entries[1].told.isEmpty)
    }

    /// A replay goes by it: what begins and is answered later, and what is answered behind what was
    /// asked.
    @Test func whatNoMessageTellsOfIsNoted() throws {
        let keys = ["c1", "c2", "c3"].map { CommandKey(app: "demo", source: "test", id: CommandID($0)) }
        let begun = try decide([begin("silent"), begin(id: "c2", offset: 1), begin("remind me", id: "c3", offset: 2)])
        let notes = try begun.flatMap { try $0.notes() }
        #expect(notes.map(\.data.decisions) == [keys.map { DerivedID.message(of: $0, index: 0) }])
        #expect(notes.map(\.attributes.time) == [Fixture.now.rfc3339])
        // An event tells of the answer.
        #expect(try decide([answer()]).flatMap { try $0.notes() }.isEmpty)
        // That a command was repeated is told by the place of its record.
        let again = try decide([begin("silent", offset: 3), answer(offset: 1)]).flatMap { try $0.notes() }
        #expect(again.count == 1 && !keys.contains { again[0].data.decisions == [DerivedID.message(of: $0, index: 0)] })
        // Nobody waits for it by now. In another order somebody may.
        #expect(try decide([answer("rejected", offset: 2, replyID: "r2")]).flatMap { try $0.notes() }.count == 1)
    }

    @Test func aDueCommandIsDecidedOnceAndNotAnswered() throws {
        _ = try decide([begin(id: "due1")])
        let writer = MessageWriter(service: "saga", topics: topics, keys: Fixture.keys)
        let due = try store.database.transaction { try SagaService().due(now: Fixture.now, limit: 10, in: $0) }
        let messages = try due.map { try writer.due($0) }
        #expect(messages.map(\.topic) == ["identity.saga.commands.v1"])
        let records = [5, 6].map { offset in
            KafkaRecord(
                topicPartition: TopicPartition(topic: messages[0].topic, partition: 0), offset: offset, timestampMs: 1,
                key: messages[0].key, value: messages[0].value,
                headers: messages[0].headers)
        }
        let entries = try decide(records)
        #expect(entries.map(\.outcome.rawValue) == ["noted", "repeated"])
        #expect(entries[0].told.map(\.role) == [.reply])
        #expect(try reply(entries[0].told[0]).data.status == .expired)
        #expect(entries[1].told.isEmpty)
    }

    /// With a decision, signed like what is due, and without an answer. A dry run tells the service nothing.
    @Test func whatAServiceTellsItselfAtOnce() throws {
        let entry = try #require(try decide([begin("remind me")]).first)
        #expect(entry.told.map(\.role) == [.command, .confidentialReply])
        let told = entry.told[0]
        let command = try EnvelopeReader.read(value: told.value, headers: told.headers)
        #expect(told.topic == topics.commands("saga") && command.attributes.replyTo == nil)
        #expect(try store.count("forward") == 0)
        let records = [5, 6].map { offset in
            KafkaRecord(
                topicPartition: TopicPartition(topic: told.topic, partition: 0), offset: offset, timestampMs: 1,
                key: told.key, value: told.value, headers: told.headers)
        }
        let entries = try decide(records)
        #expect(entries.map(\.outcome.rawValue) == ["noted", "repeated"])
        #expect(entries.allSatisfy { $0.told.isEmpty })
        let tried = try #require(try decide([begin("remind me", id: "c2", offset: 1) { $0.dryRun = "true" }]).first)
        #expect(tried.told.map(\.role) == [.reply])
    }

    /// A forward stands in its table from the decision that sent it to the final reply; an interim one does not count.
    @Test func aForwardIsAskedAgainUntilItIsAnswered() throws {
        let due = { (milliseconds: Int64) in
            try store.database.transaction { try Forwards.due(now: milliseconds, limit: 10, in: $0) }
        }
        let first = try #require(try decide([begin()]).first)
        let later = Fixture.now.milliseconds + 3_600_000
        #expect(try due(Fixture.now.milliseconds + 4999).isEmpty)
        let asked = try #require(try due(later).first)
        let vault = OutboxVault(Fixture.keys)
        #expect(try vault.open(asked.message) == [first.told[0]])
        _ = try decide([answer("pending")])
        #expect(try due(2 * later).count == 1)
        _ = try decide([answer(offset: 1, replyID: "r2")])
        #expect(try due(9 * later).isEmpty)
    }

    /// A backlog of sagas holds up the service that they ask no more than the one that they began at. And what was to be said
    /// on a topic that the app has no more is said where somebody reads.
    @Test func whatIsForwardedGoesToTheAppsOwnTopic() throws {
        let forward = try #require(try decide([begin()]).first?.told.first { $0.role == .command })
        #expect(forward.topic == "identity.peer.commands.v1")
        var owner = MessageWriter(service: "saga", topics: topics, keys: Fixture.keys)
        owner.know(AppDirectory([AppSettings(id: "demo", ownCommandsTopics: true)]))
        let own = owner.signedAgain(forward)
        #expect(own.topic == "identity.peer.commands.v1.demo" && own.value == forward.value && own.key == forward.key)
        let due = DueCommand(app: "demo", id: "due", dueAt: Fixture.now, command: SagaService.Ask(question: "why"))
        #expect(try owner.due(due).topic == "identity.peer.commands.v1.demo")
        owner.know(AppDirectory([AppSettings(id: "demo"), AppSettings(id: "other", ownCommandsTopics: true)]))
        #expect(owner.signedAgain(own).topic == "identity.peer.commands.v1")
    }

    /// The internal key of a row may be an earlier one; what is published again carries the signature of now.
    @Test func whatIsPublishedAgainIsSignedAgain() throws {
        let new = SymmetricKey(data: Array("another-internal-key-of-the-tests".utf8))
        let first = try #require(try decide([begin()]).first)
        let after = DeploymentKeys(internalKeys: [new])
        let vault = OutboxVault(DeploymentKeys(internalKeys: [new, Fixture.internalKey]))
        let stored = try OutboxVault(Fixture.keys).close(first.told)
        let writer = MessageWriter(service: "saga", topics: topics, keys: after)
        for (message, before) in zip(try vault.open(stored), first.told) {
            let again = writer.signedAgain(message)
            #expect(again.value == before.value)
            #expect(again.headers.filter { $0.name != "signature" } == before.headers.filter { $0.name != "signature" })
            #expect(again.headers.count == before.headers.count)
            let record = KafkaRecord(
                topicPartition: TopicPartition(topic: again.topic, partition: 0), offset: 0, key: again.key,
                value: again.value, headers: again.headers)
            let attributes = try EnvelopeReader.read(value: again.value, headers: again.headers).attributes
            let authenticator = Fixture.authenticator(keys: after)
            #expect(throws: Never.self) {
                if message.role == .command {
                    _ = try authenticator.authenticate(record, attributes, now: Fixture.now)
                } else {
                    _ = try authenticator.authenticate(publication: record, attributes)
                }
            }
        }
        #expect(throws: OutboxVault.Sealed.self) { try OutboxVault(after).open(stored) }
    }

    @Test func oldSagasAreForgotten() throws {
        _ = try decide([begin()])
        _ = try decide([answer()])
        let prune = { (horizon: Int64) in
            try store.database.transaction { try Sagas.prune(olderThan: horizon, limit: 10, in: $0) }
        }
        #expect(try prune(Fixture.now.milliseconds + 1) == 0)
        try store.database.transaction { try $0.execute("DELETE FROM inbox_1") }
        #expect(try prune(Fixture.now.milliseconds) == 0)
        #expect(try prune(Fixture.now.milliseconds + 1) == 1)
    }
}
