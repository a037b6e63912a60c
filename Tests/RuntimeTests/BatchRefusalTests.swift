// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// Commands that are not carried out: rejected, expired, refused.
@Suite struct BatchRefusalTests {
    private let store: FakeStore
    private let service = FakeService()

    init() throws { store = try FakeStore(.sqlite) }

    private func decide(
        _ records: [KafkaRecord], now: Timestamp = Fixture.now, isTooOldToTell: Bool = false
    ) throws -> [Entry] {
        let reader = InboundReader<FakeService>(authenticator: Fixture.authenticator(), topics: Topics())
        let decider = BatchDecider(
            service: service, reader: reader,
            writer: MessageWriter(service: "fake", topics: Topics(), keys: .none), vault: OutboxVault(.none),
            secrets: .none,
            cluster: "cluster", incarnations: [:])
        return try store.database.transaction { transaction in
            let batch = records.map { reader.read($0, now: now, isTooOldToTell: isTooOldToTell) }
            return try decider.decide(batch, in: transaction, now: now)
        }
    }

    private func reply(_ message: OutboxRecord?) throws -> CloudEvent<ReceivedReply> {
        try Fixture.reply(try #require(message?.value))
    }

    @Test func aRejectedCommandChangesNothingAndIsRemembered() throws {
        let record = try Fixture.record(Fixture.attributes(), ["key": "k", "value": "refuse"])
        let entry = try #require(try decide([record]).first)
        #expect(entry.outcome.rawValue == "rejected")
        #expect(entry.reason == "INSTALL_NOT_FOUND")
        #expect(entry.messages.map(\.role) == [.event, .reply])
        let answer = try reply(entry.messages.last).data
        #expect(answer.status == .rejected)
        #expect(answer.rejection.reason == .installNotFound)
        #expect(try store.values().isEmpty)
        let again = try Fixture.record(Fixture.attributes(), ["key": "k", "value": "refuse"], offset: 1)
        #expect(try decide([again])[0].outcome.rawValue == "repeated")
    }

    /// A log that followed another one brings a record that is older than what is remembered: known ones get their first
    /// answer, the others are set aside, told and not remembered.
    @Test func whatMayHaveBeenDecidedBeforeIsNotDecidedAgain() throws {
        let known = try Fixture.record(Fixture.attributes(id: "c1"), ["key": "k", "value": "v1"])
        let first = try #require(try decide([known]).first)
        let again = try Fixture.record(Fixture.attributes(id: "c1"), ["key": "k", "value": "v1"], offset: 1)
        let unknown = try Fixture.record(Fixture.attributes(id: "c2"), ["key": "k", "value": "v2"], offset: 2)
        let entries = try decide([again, unknown], isTooOldToTell: true)
        #expect(entries.map(\.outcome.rawValue) == ["repeated", "dead-lettered"])
        #expect(entries[0].messages.last?.value == first.messages.last?.value)
        #expect(entries[1].reason == "TOO_OLD_TO_TELL")
        #expect(entries[1].told.map(\.role) == [.deadLetter, .reply])
        #expect(try reply(entries[1].messages.last).data.status == .rejected)
        #expect(try store.values() == ["k": "v1"])
        let new = try Fixture.record(Fixture.attributes(id: "c2"), ["key": "k", "value": "v2"], offset: 3)
        #expect(try decide([new])[0].outcome.rawValue == "succeeded")
    }

    private func expiring(_ text: String, offset: Int64 = 0) throws -> KafkaRecord {
        var attributes = Fixture.attributes(id: "e\(offset)")
        attributes.expiryTime = text
        return try Fixture.record(attributes, ["key": "k", "value": "v"], offset: offset)
    }

    @Test func anExpiredCommandChangesNothing() throws {
        let entries = try decide([
            expiring(Fixture.now.rfc3339), expiring("2000-01-01T00:00:00Z", offset: 1),
        ])
        #expect(entries.map(\.outcome.rawValue) == ["expired", "expired"])
        #expect(try store.values().isEmpty)
        for entry in entries {
            #expect(entry.messages.map(\.role) == [.reply])
            #expect(try reply(entry.messages.last).data.status == .expired)
        }
        let later = Timestamp(milliseconds: Fixture.now.milliseconds + 1)
        #expect(try decide([expiring(later.rfc3339, offset: 2)])[0].outcome.rawValue == "succeeded")
    }

    /// A command that was decided in time is answered so again, however late the repetition comes.
    @Test func aLateRepetitionIsNotExpired() throws {
        let later = Timestamp(milliseconds: Fixture.now.milliseconds + 1)
        #expect(try decide([expiring(later.rfc3339)])[0].outcome.rawValue == "succeeded")
        var attributes = Fixture.attributes(id: "e0")
        attributes.expiryTime = later.rfc3339
        let again = try Fixture.record(attributes, ["key": "k", "value": "v"], offset: 9)
        let much = Timestamp(milliseconds: Fixture.now.milliseconds + 1_000_000)
        #expect(try decide([again], now: much)[0].outcome.rawValue == "repeated")
    }

    @Test func deadLettersHoldTheOriginalByteForByte() throws {
        let original = KafkaRecord(
            topicPartition: TopicPartition(topic: Fixture.topic, partition: 3), offset: 42, timestampMs: 77,
            key: [0xFF, 0], value: [0xFE, 0x7B],
            headers: [Header("a", nil), Header("a", [0xFF])])
        let entry = try #require(try decide([original]).first)
        #expect(entry.outcome.rawValue == "dead-lettered")
        #expect(entry.reason == "NOT_UTF8")
        #expect(entry.key == nil)
        let letter = try #require(entry.messages.first)
        #expect(entry.messages.count == 1)
        #expect(letter.role == .deadLetter)
        #expect(letter.topic == "identity.fake.dlq.v1")
        #expect(letter.key == original.key)
        #expect(letter.value == original.value)
        #expect(Array(letter.headers.prefix(2)) == [Header("a", nil), Header("a", [0xFF])])
        let added = letter.headers.dropFirst(2).reduce(into: [:]) { texts, header in
            texts[header.name] = String(decoding: header.value ?? [], as: UTF8.self)
        }
        #expect(added["dlq_reason"] == "NOT_UTF8")
        #expect(added["dlq_step"] == "decode")
        #expect(added["dlq_original_topic"] == Fixture.topic)
        #expect(added["dlq_original_partition"] == "3")
        #expect(added["dlq_original_offset"] == "42")
        #expect(added["dlq_original_timestamp"] == "77")
        #expect(added["dlq_group"] == "identity.fake")
        #expect(added["dlq_attempts"] == "1")
    }

    /// Neither a stranger's record nor an unknown type takes the id from whoever sends it rightly later.
    @Test func refusedRecordsAreNotRemembered() throws {
        let refused = try decide([
            Fixture.record(signedBy: "nobody"),
            Fixture.record(Fixture.attributes("identity.fake.later.v1"), offset: 1),
        ])
        #expect(refused.map(\.reason) == ["KEY_UNKNOWN", "UNKNOWN_TYPE"])
        #expect(refused.allSatisfy { $0.key == nil })
        for (entry, reason) in zip(refused, [ReasonCode.unauthenticated, .unknownType]) {
            #expect(entry.told.map(\.role) == [.deadLetter, .reply])
            let answer = try reply(entry.messages.last)
            #expect(answer.data.status == .rejected)
            #expect(answer.data.rejection.reason == reason)
            #expect(answer.data.commandId == "c1")
        }
        #expect(try decide([Fixture.record(offset: 2)])[0].outcome.rawValue == "succeeded")
    }

    @Test func refusedRecordsDoNotHoldUpTheOthers() throws {
        let entries = try decide([
            Fixture.record(signedBy: nil), Fixture.record(Fixture.attributes(id: "c2"), offset: 1),
            Fixture.record(Fixture.attributes(id: "c3"), .null, offset: 2),
            Fixture.record(Fixture.attributes(id: "c4"), ["key": "k", "value": "w"], offset: 3),
        ])
        #expect(entries.map(\.outcome.rawValue) == ["dead-lettered", "succeeded", "rejected", "succeeded"])
        #expect(entries.map(\.position.offset) == [0, 1, 2, 3])
        #expect(try store.values() == ["k": "w"])
    }

    @Test func decidingTwiceGivesTheSameBytes() throws {
        let record = try Fixture.record()
        let first = try decide([record])
        let other = try BatchRefusalTests()
        let second = try other.decide([record])
        #expect(first[0].messages == second[0].messages)
    }
}
