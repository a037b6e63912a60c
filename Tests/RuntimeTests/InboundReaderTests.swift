// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing
import WireJSON

@testable import Runtime

@Suite struct InboundReaderTests {
    private let reader = InboundReader<FakeService>(authenticator: Fixture.authenticator(), topics: Topics())

    private func read(_ record: KafkaRecord) -> Inbound<FakeService.Put> { reader.read(record, now: Fixture.now) }

    private func accepted(_ record: KafkaRecord) throws -> AcceptedCommand<FakeService.Put> {
        try #require(read(record).accepted)
    }

    private func refusal(_ record: KafkaRecord) throws -> Refusal {
        let found: Refusal? = if case .refused(let refusal) = read(record) { refusal } else { nil }
        return try #require(found)
    }

    private func rejection(_ record: KafkaRecord) throws -> Rejection? {
        if case .failure(let rejection) = try accepted(record).body { rejection } else { nil }
    }

    @Test func acceptsAGoodCommand() throws {
        var attributes = Fixture.attributes()
        attributes.expiryTime = "2027-01-15T08:00:00Z"
        let command = try accepted(Fixture.record(attributes))
        #expect(command.key.app == "demo")
        #expect(command.key.source == "test")
        #expect(command.key.id == "c1")
        #expect(command.digest.count == 32)
        #expect(command.principal.kind == .apiKey("demo-backend"))
        #expect(command.expiry == Timestamp(rfc3339: "2027-01-15T08:00:00Z"))
        guard case .success(let body) = command.body else {
            Issue.record("not decoded")
            return
        }
        #expect(body == FakeService.Put(key: "k", value: "v"))
        let context = command.context(now: Fixture.now, secrets: .none)
        #expect(context.now == Fixture.now)
        #expect(context.app.id == "demo")
    }

    /// As OpenTelemetry's clients of Kafka say it, also where no spans are told. The envelope's word comes first.
    @Test func aHeaderNamesTheTraceOfWhatSaysNone() throws {
        let (own, other) = ("00-\(String(repeating: "a", count: 32))-00f067aa0ba902b7-01", "nonsense")
        for (envelope, header, expected) in [
            (nil, own, own), (nil, other, nil), (other, own, other), (own, nil, own), (nil, nil, nil),
        ] as [(String?, String?, String?)] {
            var attributes = Fixture.attributes()
            attributes.traceParent = envelope
            var record = try Fixture.record(attributes)
            if let header { record.headers.append(Header(HeaderName.traceParent, header)) }
            #expect(try accepted(record).attributes.traceParent == expected)
        }
    }

    @Test func unreadableRecordsAreRefusedWithoutAnAnswer() throws {
        let place = TopicPartition(topic: Fixture.topic, partition: 0)
        for (value, reason) in [(nil, "EMPTY_VALUE"), (Array("x".utf8), "NOT_JSON")] as [([UInt8]?, String)] {
            let refusal = try refusal(KafkaRecord(topicPartition: place, offset: 0, key: nil, value: value))
            #expect(refusal.answer?.attributes == nil && refusal.deadLetter?.step == .decode)
            #expect(refusal.deadLetter?.reason == reason)
            #expect(refusal.deadLetter?.detail.isEmpty == false)
        }
    }

    @Test func unauthenticatedRecordsAreRefusedAndTheSenderIsTold() throws {
        let refusal = try refusal(Fixture.record(signedBy: "nobody"))
        #expect(refusal.deadLetter?.reason == "KEY_UNKNOWN" && refusal.deadLetter?.step == .authenticate)
        let answer = try #require(refusal.answer)
        #expect(answer.rejection.reason == .unauthenticated)
        #expect(answer.attributes.id == "c1")
        #expect(!answer.rejection.message.contains("nobody"))
    }

    @Test func unknownTypesAreRefusedAndTheSenderIsTold() throws {
        let refusal = try refusal(Fixture.record(Fixture.attributes("identity.fake.unknown.v1")))
        #expect(refusal.deadLetter?.reason == "UNKNOWN_TYPE" && refusal.deadLetter?.step == .decode)
        #expect(refusal.answer?.rejection.reason == .unknownType)
    }

    @Test func aSenderWithoutTheScopeIsToldAndNotRemembered() throws {
        let refusal = try refusal(Fixture.record(signedBy: "demo-sdk"))
        #expect(refusal.deadLetter?.reason == nil)
        #expect(refusal.answer?.rejection.reason == .insufficientScope)
        #expect(refusal.answer?.attributes.id == "c1")
    }

    @Test func authenticationComesBeforeTheType() throws {
        let refusal = try refusal(
            Fixture.record(Fixture.attributes("identity.fake.unknown.v1"), signedBy: nil))
        #expect(refusal.deadLetter?.reason == "SIGNATURE_MISSING" && refusal.deadLetter?.step == .authenticate)
    }

    @Test func rejectsWhateverTheState() throws {
        var attributes = Fixture.attributes()
        attributes.replyTo = "identity.fake.commands.v1"
        #expect(try rejection(Fixture.record(attributes))?.reason == .invalidRequest)
        #expect(
            try rejection(Fixture.record(Fixture.attributes(), ["key": "", "value": "v"]))?.message
                == "data.key is empty.")
        let missing = try #require(try rejection(Fixture.record(Fixture.attributes(), ["key": "k"])))
        #expect(missing.reason == .invalidRequest)
        #expect(missing.message.contains("value"))
        let wrong = try #require(try rejection(Fixture.record(Fixture.attributes(), ["key": 12_345, "value": "v"])))
        #expect(wrong.message.contains("key"))
        #expect(!wrong.message.contains("12345"))
        #expect(try rejection(Fixture.record(Fixture.attributes(), .null))?.reason == .invalidRequest)
    }

    /// The digest says whether the content is the same: the data as a value, and the type.
    @Test func digests() throws {
        func digest(_ data: JSONValue, _ change: (inout EventAttributes) -> Void = { _ in }) throws -> [UInt8] {
            var attributes = Fixture.attributes()
            change(&attributes)
            return try accepted(Fixture.record(attributes, data)).digest
        }
        let first = try digest(["key": "k", "value": "v"])
        #expect(try digest(["value": "v", "key": "k"]) == first)
        #expect(try digest(["key": "k", "value": "v"]) { $0.time = "2026-01-01T00:00:00Z" } == first)
        #expect(try digest(["key": "k", "value": "v"]) { $0.replyTo = "identity.replies.x" } == first)
        #expect(try digest(["key": "k", "value": "w"]) != first)
        #expect(try digest(["key": "k", "value": "v", "more": nil]) != first)
    }

    @Test func appsAreApart() throws {
        let mine = try accepted(Fixture.record())
        let other = try accepted(Fixture.record(Fixture.attributes(app: "other"), signedBy: "other-backend"))
        #expect(mine.key != other.key)
    }
}
