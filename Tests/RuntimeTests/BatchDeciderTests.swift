// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// Batches on a real database, as `ServiceLoop.commit` decides them.
@Suite struct BatchDeciderTests {
    private let store: FakeStore
    private let service = FakeService()
    private let reader = InboundReader<FakeService>(authenticator: Fixture.authenticator(), topics: Topics())

    init() throws { store = try FakeStore(.sqlite) }

    /// One batch.
    private func decide(
        _ records: [KafkaRecord], now: Timestamp = Fixture.now, pastEnd: Timestamp? = nil
    ) throws -> [Entry] {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let decider = BatchDecider(
            service: service, reader: reader, writer: writer, vault: OutboxVault(Fixture.keys), secrets: .none,
            cluster: "cluster", incarnations: [records[0].topicPartition: 7], pastTimes: PastTimes(end: pastEnd))
        let batch = records.map { reader.read($0, now: now) }
        return try store.database.transaction { transaction in
            try decider.decide(batch, in: transaction, now: now)
        }
    }

    private func put(
        _ value: String, id: String, offset: Int64, change: (inout EventAttributes) -> Void = { _ in }
    ) throws -> KafkaRecord {
        var attributes = Fixture.attributes(id: id)
        change(&attributes)
        return try Fixture.record(attributes, ["key": "k", "value": .string(value)], offset: offset)
    }

    private func reply(_ message: OutboxRecord?) throws -> CloudEvent<ReceivedReply> {
        try Fixture.reply(try #require(message?.value))
    }

    /// Rows are forgotten by the log's time, which a producer may have made up.
    @Test func aRecordFromTheFutureIsForgottenAsOneOfNow() throws {
        let now = Fixture.now.milliseconds
        for (time, loggedAt) in [(-1, now), (now - 1, now - 1), (now + 1, now)] {
            let record = KafkaRecord(
                topicPartition: TopicPartition(topic: Fixture.topic, partition: 0), offset: 0, timestampMs: time,
                key: nil, value: nil, headers: [])
            let entry = Entry(record, incarnation: 0, type: "", outcome: .rejected, [])
            let row = try entry.inboxRow(now: Fixture.now, decider: 0, vault: OutboxVault(Fixture.keys))
            #expect(row.loggedAt == loggedAt)
        }
    }

    @Test func eachCommandSeesTheOnesBeforeIt() throws {
        let entries = try decide([put("a", id: "c1", offset: 0), put("b", id: "c2", offset: 1)])
        #expect(entries.map(\.outcome.rawValue) == ["succeeded", "succeeded"])
        #expect(try reply(entries[0].messages.last).data.result == [:])
        #expect(try reply(entries[1].messages.last).data.result == ["before": "a"])
        let later = try decide([put("c", id: "c3", offset: 2)])
        #expect(try reply(later[0].messages.last).data.result == ["before": "b"])
        #expect(try store.values() == ["k": "c"])
    }

    /// The record is of the first millisecond of 1970, and its command was valid for that year.
    @Test func aCommandOfThePastIsDecidedByItsOwnTime() throws {
        for (pastEnd, outcome) in [(Int64(0), "expired"), (1, "expired"), (2, "succeeded")] {
            let record = try put("a", id: "c\(pastEnd)", offset: pastEnd) { $0.expiryTime = "1970-12-31T00:00:00Z" }
            let end = pastEnd == 0 ? nil : Timestamp(milliseconds: pastEnd)
            #expect(try decide([record], pastEnd: end).map(\.outcome.rawValue) == [outcome])
        }
    }

    /// What a note tells of a record.
    private func tell(_ record: KafkaRecord, at time: Int64, isRefused: Bool) throws {
        let row = DecisionTimes.Row(message: noted(record), decidedAt: time, rejection: isRefused ? "" : nil)
        try store.database.transaction { try DecisionTimes.keep([row], in: $0) }
    }

    private func noted(_ record: KafkaRecord) -> String { noted(record, in: 7) }

    private func noted(_ record: KafkaRecord, in incarnation: Int64) -> String {
        MessageWriter.noted(record.topicPartition, record.offset, .init(cluster: "cluster", incarnation: incarnation))
    }

    /// A store that is new does not know how often the topic was made anew while the notes were made.
    @Test(arguments: Int64(0)..<4) func aNoteIsFoundWhateverTheStoreKnows(_ incarnation: Int64) throws {
        let record = try put("a", id: "c1", offset: 0)
        let row = DecisionTimes.Row(message: noted(record, in: incarnation), decidedAt: 500, rejection: "")
        try store.database.transaction { try DecisionTimes.keep([row], in: $0) }
        #expect(try decide([record], pastEnd: Timestamp(milliseconds: 1000)).map(\.outcome) == [.rejected])
    }

    /// Two commands had one id, and the one that stands first in the log came second once: it was refused, and is again.
    @Test func whatAnIDWasTakenForOnceItIsAgain() throws {
        let (good, reused) = (try put("good", id: "c1", offset: 1), try put("other", id: "c1", offset: 0))
        try tell(reused, at: 500, isRefused: true)
        let entries = try decide([reused, good], pastEnd: Timestamp(milliseconds: 1000))
        #expect(entries.map(\.outcome) == [.rejected, .succeeded])
        // It takes no id, whoever comes first.
        #expect(try decide([try put("good", id: "c1", offset: 2)]).map(\.outcome) == [.repeated])
    }

    /// The record that it repeated is gone: it says the same, and stands in for it, whether it had expired or not. The next
    /// replay is told the same of it.
    @Test(arguments: [true, false]) func aRepetitionStandsInForWhatIsGone(_ isNoted: Bool) throws {
        let copy = try put("a", id: "c1", offset: 0) { $0.expiryTime = "1970-01-01T00:00:00.100Z" }
        let key = CommandKey(app: "demo", source: "test", id: "c1")
        let row = DecisionTimes.Row(message: DerivedID.message(of: key, index: 0), decidedAt: 400)
        try store.database.transaction { try DecisionTimes.keep([row], in: $0) }
        if isNoted { try tell(copy, at: 500, isRefused: false) }
        let entry = try decide([copy], pastEnd: Timestamp(milliseconds: 1000))[0]
        #expect(entry.outcome == (isNoted ? .succeeded : .expired))
        let message = try #require(entry.messages.last)
        let told = try EnvelopeReader.read(value: message.value, headers: message.headers)
        #expect(told.attributes.time == Timestamp(milliseconds: isNoted ? 500 : 400).rfc3339)
    }

    /// A log that was made anew has other records at the places of the old ones.
    @Test(arguments: [(Int64(60_500), "rejected"), (60_501, "succeeded")])
    func aNoteOfBeforeTheRecordTellsOfAnother(_ loggedAt: Int64, _ outcome: String) throws {
        var record = try put("a", id: "c1", offset: 0)
        record.timestampMs = loggedAt
        try tell(record, at: 500, isRefused: true)
        let entries = try decide([record], pastEnd: Timestamp(milliseconds: 100_000))
        #expect(entries.map(\.outcome.rawValue) == [outcome])
    }

    /// A reply that nobody takes becomes a dead letter, and tells a replay of nothing.
    @Test(arguments: [("identity.replies.v1", false), ("identity.replies.of-nobody", true)])
    func whatIsRefusedAndPerhapsNotToldIsNoted(_ topic: String, _ isNoted: Bool) throws {
        let record = try put("a", id: "c1", offset: 0) {
            ($0.replyTo, $0.expiryTime) = (topic, "1970-01-01T00:00:00Z")
        }
        let notes = try decide([record]).flatMap { try $0.notes() }
        #expect(notes.map(\.data) == (isNoted ? [DecisionsNoted(refused: [noted(record)])] : []))
        // What says the same does not stand in for it, later or in the same batch.
        let again = try (1...3).map { offset in
            try put("a", id: offset == 1 ? "c1" : "c2", offset: offset) {
                if offset == 2 { $0.expiryTime = "1970-01-01T00:00:00Z" }
            }
        }
        let told = try decide(again).flatMap { try $0.notes() }
        #expect(told.map(\.data) == [DecisionsNoted(refused: [again[0], again[2]].map(noted))])
    }

    /// An event tells when it was decided, and not that it was refused.
    @Test(arguments: [("identity.replies.v1", false), ("identity.replies.of-nobody", true)])
    func whatIsRefusedWithAnEventAndPerhapsNotToldIsNoted(_ topic: String, _ isNoted: Bool) throws {
        let record = try put("refuse", id: "c1", offset: 0) { $0.replyTo = topic }
        let entries = try decide([record])
        #expect(entries[0].messages.contains { $0.role == .event })
        let notes = try entries.flatMap { try $0.notes() }
        #expect(notes.map(\.data) == (isNoted ? [DecisionsNoted(refused: [noted(record)])] : []))
    }

    /// The next replay goes by what was told before this one, whose apps file was another, perhaps. Of what nothing is told,
    /// such as a command that came while the service was down, this refusal is the first word.
    @Test(arguments: [
        (Int64?.none, true, false, 0), (1000, true, false, 1), (1000, true, true, 0), (1000, false, false, 0),
    ])
    func whatAReplayRefusesItselfIsNoted(
        _ pastEnd: Int64?, _ wasDecided: Bool, _ wasRefused: Bool, _ count: Int
    ) throws {
        let record = try put("refuse", id: "c1", offset: 0)
        let key = CommandKey(app: "demo", source: "test", id: "c1")
        // What was decided told an event, and in its reply perhaps that it was refused.
        let told = (0..<2).map {
            DecisionTimes.Row(
                message: DerivedID.message(of: key, index: $0), decidedAt: 400,
                rejection: wasRefused && $0 == 1 ? "INVALID_STATE: No." : nil)
        }
        if wasDecided { try store.database.transaction { try DecisionTimes.keep(told, in: $0) } }
        let entry = try decide([record], pastEnd: pastEnd.map { Timestamp(milliseconds: $0) })[0]
        #expect(entry.outcome == .rejected)
        let reply = try #require(entry.told.last { $0.role == .reply })
        let id = try EnvelopeReader.read(value: reply.value, headers: reply.headers).attributes.id
        let notes = try entry.notes()
        #expect(notes.map(\.data) == Array(repeating: DecisionsNoted(refusedInReplay: [id]), count: count))
        #expect(notes.allSatisfy { $0.attributes.id == noted(record) })
    }

    /// Whatever for. What a replay refuses by the apps file of now, the next one may allow again.
    @Test(arguments: [(Int64?.none, 1), (1000, 0)])
    func whatIsRefusedWhenItIsReadIsNoted(_ pastEnd: Int64?, _ count: Int) throws {
        let record = try Fixture.record(
            Fixture.attributes(id: "c1"), ["key": "k", "value": "a"], signedBy: "demo-sdk", offset: 0)
        let entry = try decide([record], pastEnd: pastEnd.map { Timestamp(milliseconds: $0) })[0]
        #expect(entry.told.contains { $0.role == .reply })
        let note = DecisionsNoted(refused: [noted(record)])
        #expect(try entry.notes().map(\.data) == Array(repeating: note, count: count))
    }

    /// One note tells of those of a batch, under an id of its own.
    @Test func repetitionsAreNoted() throws {
        let records = try (0..<4).map { try put("a", id: $0 == 3 ? "c2" : "c1", offset: $0) }
        let entries = try decide(records)
        #expect(entries.map(\.outcome) == [.succeeded, .repeated, .repeated, .succeeded])
        #expect(entries.map { $0.messages.map(\.role) }[1...2] == [[.reply], [.event, .reply]])
        let note = try #require(entries[2].notes().first)
        #expect(note.data == DecisionsNoted(repeated: records[1...2].map(noted)))
        #expect(note.attributes.id == noted(records[2]))
        // Later too, and where it said something else.
        let later = try [put("a", id: "c2", offset: 4), put("b", id: "c2", offset: 5)]
        let notes = try decide(later).flatMap { try $0.notes() }
        #expect(notes.map(\.data) == [DecisionsNoted(repeated: [noted(later[0])], refused: [noted(later[1])])])
        // A dry run is none.
        let tried = try decide([put("a", id: "c1", offset: 6) { $0.dryRun = "true" }])
        #expect(tried[0].messages.map(\.role) == [.reply])
    }

    /// The inbox remembers an id for an hour here. What was logged later under it was another command, whose decision may
    /// have told the same ids.
    @Test(arguments: [(Int64(3_600_400), Int64(400)), (3_600_401, 3_600_401)])
    func aTimeIsToldOfWhatTheInboxRemembers(_ loggedAt: Int64, _ decidedAt: Int64) throws {
        var record = try put("a", id: "c1", offset: 0)
        record.timestampMs = loggedAt
        let key = CommandKey(app: "demo", source: "test", id: "c1")
        let row = DecisionTimes.Row(message: DerivedID.message(of: key, index: 0), decidedAt: 400)
        try store.database.transaction { try DecisionTimes.keep([row], in: $0) }
        let entry = try decide([record], pastEnd: Timestamp(milliseconds: 10_000_000))[0]
        let told = try EnvelopeReader.read(value: entry.messages[0].value, headers: entry.messages[0].headers)
        #expect(told.attributes.time == Timestamp(milliseconds: decidedAt).rfc3339)
    }

    /// Whatever it was refused for, perhaps under an id that it did not take: a key that may do it by now, say.
    @Test func aRecordThatWasRefusedIsNotDecided() throws {
        let record = try put("a", id: "c1", offset: 0)
        try tell(record, at: 500, isRefused: true)
        let other = try put("b", id: "c1", offset: 1)
        let entries = try decide([record, other], pastEnd: Timestamp(milliseconds: 1000))
        #expect(entries.map(\.outcome) == [.rejected, .succeeded] && entries[0].told.isEmpty)
        // The next replay is told the same.
        let note = try #require(entries[0].notes().first)
        #expect(note.data == DecisionsNoted(refused: [noted(record)]))
        #expect(note.attributes.time == Timestamp(milliseconds: 500).rfc3339)
        #expect(try store.values() == ["k": "b"])
        // The present is judged by what holds now.
        let later = try put("c", id: "c2", offset: 2)
        try tell(later, at: 500, isRefused: true)
        #expect(try decide([later]).map(\.outcome) == [.succeeded])
    }

    /// It was logged in the first millisecond of 1970. Where it is told when it was decided, that time counts.
    @Test func aCommandOfThePastIsDecidedByTheTimeOfItsDecision() throws {
        let expiry = Timestamp(milliseconds: 500)
        for (decidedAt, outcome) in [(Int64?.none, "succeeded"), (499, "succeeded"), (500, "expired")] {
            let id = "c\(decidedAt ?? 0)"
            let key = CommandKey(app: "demo", source: "test", id: CommandID(id))
            let told = decidedAt.map {
                DecisionTimes.Row(message: DerivedID.message(of: key, index: 0), decidedAt: $0)
            }
            try store.database.transaction { try DecisionTimes.keep(told.map { [$0] } ?? [], in: $0) }
            let record = try put("a", id: id, offset: decidedAt ?? 0) { $0.expiryTime = expiry.rfc3339 }
            let entries = try decide([record], pastEnd: Timestamp(milliseconds: 1000))
            #expect(entries.map(\.outcome.rawValue) == [outcome])
            // The next replay goes by what this one tells.
            let times = try entries[0].messages.map { message in
                try EnvelopeReader.read(value: message.value, headers: message.headers).attributes.time
            }
            #expect(Set(times) == [Timestamp(milliseconds: decidedAt ?? 1).rfc3339])
        }
    }

    /// Somebody who is erased by then had what it asked for, perhaps.
    @Test(arguments: [(Int64(1000), ["rejected", "succeeded"]), (Int64(1), ["succeeded", "succeeded"])])
    func whatWasRefusedInThePastIsRefusedAgain(_ pastEnd: Int64, _ outcomes: [String]) throws {
        let key = CommandKey(app: "demo", source: "test", id: "c1")
        let told = [
            DecisionTimes.Row(message: DerivedID.message(of: key, index: 0), decidedAt: 500),
            DecisionTimes.Row(
                message: DerivedID.message(of: key, index: 1), decidedAt: 500,
                rejection: "EXTERNAL_ID_TAKEN: it is: taken"),
        ]
        try store.database.transaction { try DecisionTimes.keep(told, in: $0) }
        let entries = try decide(
            [put("a", id: "c1", offset: 0), put("b", id: "c2", offset: 1)], pastEnd: Timestamp(milliseconds: pastEnd))
        #expect(entries.map(\.outcome.rawValue) == outcomes)
        let answer = try reply(entries[0].messages.last).data
        #expect(try store.values() == ["k": "b"])
        guard outcomes[0] == "rejected" else { return }
        #expect(answer.rejection.reason == .externalIDTaken && answer.message == "it is: taken")
        #expect(entries[0].messages.map(\.role) == [.reply])
        #expect(try reply(entries[1].messages.last).data.result == [:])
    }

    /// A dry run leaves the id to another command.
    @Test func whatTakesNoIDHasNoTimeOfItsOwn() throws {
        let record = try put("a", id: "c1", offset: 0) { $0.dryRun = "true" }
        #expect(reader.read(record, now: Fixture.now).accepted?.keyOnce == nil)
        #expect(reader.read(try put("a", id: "c1", offset: 0), now: Fixture.now).accepted?.keyOnce != nil)
    }

    @Test func eventsComeFirstThenTheReplyWithIDsByPlace() throws {
        let record = try put("a", id: "c1", offset: 0) {
            $0.correlationID = "c0"
            $0.traceParent = "00-1-2-01"
        }
        let entry = try #require(try decide([record]).first)
        #expect(entry.messages.map(\.role) == [.event, .event, .reply])
        #expect(
            entry.messages.map(\.topic) == [
                "identity.fake.events.v1", "identity.fake.events.v1", "identity.replies.v1",
            ])
        for (index, message) in entry.messages.enumerated() {
            let read = try EnvelopeReader.read(value: message.value, headers: message.headers).attributes
            #expect(read.id == DerivedID.message(of: CommandKey(app: "demo", source: "test", id: "c1"), index: index))
            #expect(read.correlationID == "c0")
            #expect(read.causationID == "c1")
            #expect(read.source == "identitybus/fake")
            #expect(read.appID == "demo")
            #expect(read.traceParent == "00-1-2-01")
            #expect(read.time == Fixture.now.rfc3339)
            let sequence = try JSONValue(parsing: message.value ?? [])["sequence"]?.stringValue
            let expected = "identity.fake.commands.v1[0]000007.0000000000000000000.000\(index)"
            #expect(sequence == (message.role == .event ? expected : nil))
        }
        #expect(
            entry.messages.map { $0.key.map { String(decoding: $0, as: UTF8.self) } } == [
                "demo/k", "demo/k", "demo/k",
            ])
        #expect(entry.position == LogPosition(topic: Fixture.topic, partition: 0, incarnation: 7, offset: 0))
        #expect(entry.receipt.subject == "s1")
    }

    /// Services sign what they say: whoever reads an event or a reply can tell who wrote it.
    @Test func eventsAndRepliesAreSignedWithTheEventsKey() throws {
        let first = try put("a", id: "c1", offset: 0)
        let again = try put("a", id: "c1", offset: 1) { $0.replyTo = "identity.replies.other" }
        for message in try decide([first, again]).flatMap(\.messages) {
            let header = message.headers.first { $0.name == HeaderName.signature }?.value
            let signature = try #require(Signature(header: header ?? []))
            #expect(signature.keyID == Signature.eventsKeyID)
            let signed = Signature.signingString(
                topic: message.topic, headers: message.headers, value: message.value ?? [])
            #expect(signature.isValid(secret: Fixture.signingKey(Signature.eventsKeyID), signingString: signed))
        }
    }

    @Test func repliesToTheGatewayAreSignedWithItsKey() throws {
        var attributes = Fixture.attributes()
        attributes.source = "identitybus/gateway"
        attributes.replyTo = "identity.replies.gateway.v1"
        attributes.authType = "api_key"
        attributes.authID = "demo-backend"
        let command = try Fixture.record(attributes, signedBy: Signature.gatewayKeyID)
        let reply = try #require(try decide([command]).flatMap(\.messages).last)
        let signature = try #require(
            Signature(header: reply.headers.first { $0.name == HeaderName.signature }?.value ?? []))
        let signed = Signature.signingString(topic: reply.topic, headers: reply.headers, value: reply.value ?? [])
        #expect(signature.keyID == Signature.gatewayKeyID)
        #expect(signature.isValid(secret: Fixture.signingKey(Signature.gatewayKeyID), signingString: signed))
    }

    // MARK: Repetition

    @Test(arguments: [true, false]) func aRepetitionGetsTheSameReplyAndNoOtherEffect(_ inOneBatch: Bool) throws {
        let first = try put("a", id: "c1", offset: 0)
        let between = try put("b", id: "c2", offset: 1)
        let again = try put("a", id: "c1", offset: 2) { $0.replyTo = "identity.replies.other" }
        let entries: [Entry]
        if inOneBatch {
            entries = try decide([first, between, again])
        } else {
            entries = try decide([first]) + decide([between]) + decide([again])
        }
        #expect(entries.map(\.outcome.rawValue) == ["succeeded", "succeeded", "repeated"])
        let replies = entries[2].told
        #expect(replies.map(\.role) == [.reply])
        #expect(replies[0].topic == "identity.replies.other")
        #expect(replies[0].value == entries[0].messages.last?.value)
        let isOther = { (header: Header) in header.name != HeaderName.signature }
        #expect(replies[0].headers.filter(isOther) == entries[0].messages.last?.headers.filter(isOther))
        #expect(entries[2].key == nil)
        #expect(try store.values() == ["k": "b"])
    }

    @Test func aThirdRepetitionIsAnsweredToo() throws {
        _ = try decide([put("a", id: "c1", offset: 0), put("a", id: "c1", offset: 1)])
        let third = try decide([put("a", id: "c1", offset: 2)])
        #expect(third[0].outcome.rawValue == "repeated")
        #expect(third[0].told.count == 1)
    }

    @Test(arguments: [true, false]) func otherContentUnderTheSameIDIsRejected(_ inOneBatch: Bool) throws {
        let first = try put("a", id: "c1", offset: 0)
        let other = try put("b", id: "c1", offset: 1)
        let entries = try inOneBatch ? decide([first, other]) : decide([first]) + decide([other])
        #expect(entries[1].outcome.rawValue == "rejected")
        #expect(entries[1].reason == "ID_REUSED")
        let answer = try reply(entries[1].messages.last)
        #expect(answer.data.rejection.reason == .idReused)
        #expect(answer.data.commandId == "c1")
        #expect(
            answer.attributes.id
                == DerivedID.message(
                    cluster: "cluster", topic: Fixture.topic, partition: 0, incarnation: 7, offset: 1, index: 0))
        #expect(try store.values() == ["k": "a"])
        // The first command's answer is still the one that is remembered.
        #expect(try decide([put("a", id: "c1", offset: 2)])[0].outcome.rawValue == "repeated")
    }

    @Test func anotherSourceOrAppIsAnotherCommand() throws {
        let records = try [
            put("a", id: "c1", offset: 0), put("b", id: "c1", offset: 1) { $0.source = "elsewhere" },
            Fixture.record(
                Fixture.attributes(id: "c1", app: "other"), ["key": "k", "value": "c"], signedBy: "other-backend",
                offset: 2),
        ]
        #expect(try decide(records).map(\.outcome.rawValue) == ["succeeded", "succeeded", "succeeded"])
    }

    /// Ids are bytes: Swift's own `==` takes these two for one, the database does not.
    @Test(arguments: [true, false]) func idsThatLookAlikeAreDifferent(_ inOneBatch: Bool) throws {
        let records = try [put("a", id: "\u{e9}", offset: 0), put("b", id: "e\u{301}", offset: 1)]
        let entries = try inOneBatch ? decide(records) : decide([records[0]]) + decide([records[1]])
        #expect(entries.map(\.outcome.rawValue) == ["succeeded", "succeeded"])
    }

    /// Who lacks the scope learns nothing from repeating another's command.
    @Test(arguments: [true, false]) func aRepetitionNeedsTheScopeToo(_ inOneBatch: Bool) throws {
        let first = try put("a", id: "c1", offset: 0)
        let again = try Fixture.record(
            Fixture.attributes(id: "c1"), ["key": "k", "value": "a"], signedBy: "demo-sdk", offset: 1)
        let entries = try inOneBatch ? decide([first, again]) : decide([first]) + decide([again])
        let answer = try reply(entries[1].messages.last)
        #expect(answer.data.status == .rejected)
        #expect(answer.data.rejection.reason == .insufficientScope)
        #expect(answer.data.result == nil)
    }

    /// Nor can it use up an id that the app's backend sends later.
    @Test func aCommandWithoutScopeDoesNotUseUpTheID() throws {
        let forged = try Fixture.record(
            Fixture.attributes(id: "c1"), ["key": "k", "value": "a"], signedBy: "demo-sdk", offset: 0)
        #expect(try decide([forged])[0].reason == "INSUFFICIENT_SCOPE")
        #expect(try decide([put("a", id: "c1", offset: 1)])[0].outcome.rawValue == "succeeded")
    }
}
