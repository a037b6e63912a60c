// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage
import Testing
import WireJSON

@testable import Runtime

@Suite struct IntakeReaderTests {
    private let reader = IntakeReader<FakeService>(authenticator: Fixture.authenticator(), topics: Topics())

    private func verdict(_ record: KafkaRecord) -> Intake<FakeService.Put>.Verdict {
        reader.read(record, now: Fixture.now).verdict
    }

    private func admitted(_ record: KafkaRecord) throws -> Admitted<FakeService.Put> {
        let found: Admitted<FakeService.Put>? =
            if case .admitted(let command) = verdict(record) { command } else { nil }
        return try #require(found)
    }

    private func rejection(_ record: KafkaRecord) throws -> Rejection? {
        if case .failure(let rejection) = try admitted(record).body { rejection } else { nil }
    }

    @Test func admitsAGoodCommand() throws {
        var attributes = Fixture.attributes()
        attributes.expiryTime = "2027-01-15T08:00:00Z"
        let command = try admitted(Fixture.record(attributes))
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

    @Test func unreadableRecordsAreRefusedWithoutAnAnswer() throws {
        let place = TopicPartition(topic: Fixture.topic, partition: 0)
        for (value, reason) in [(nil, "EMPTY_VALUE"), (Array("x".utf8), "NOT_JSON")] as [([UInt8]?, String)] {
            guard
                case .refused(let found, .decode, let detail, _, nil) = verdict(
                    KafkaRecord(topicPartition: place, offset: 0, key: nil, value: value))
            else {
                Issue.record("not refused at decode without notice")
                return
            }
            #expect(found == reason)
            #expect(!detail.isEmpty)
        }
    }

    @Test func unauthenticatedRecordsAreRefusedAndTheSenderIsTold() throws {
        guard
            case .refused("KEY_UNKNOWN", .authenticate, _, _, let notice?) = verdict(
                try Fixture.record(signedBy: "nobody"))
        else {
            Issue.record("not refused at authenticate with notice")
            return
        }
        #expect(notice.rejection.reason == .unauthenticated)
        #expect(notice.attributes.id == "c1")
        #expect(!notice.rejection.message.contains("nobody"))
    }

    @Test func unknownTypesAreRefusedAndTheSenderIsTold() throws {
        let record = try Fixture.record(Fixture.attributes("identity.fake.unknown.v1"))
        guard case .refused("UNKNOWN_TYPE", .decode, _, _, let notice?) = verdict(record) else {
            Issue.record("not refused with notice")
            return
        }
        #expect(notice.rejection.reason == .unknownType)
    }

    @Test func aSenderWithoutTheScopeIsToldAndNotRemembered() throws {
        guard case .forbidden(let notice) = verdict(try Fixture.record(signedBy: "demo-sdk")) else {
            Issue.record("not forbidden")
            return
        }
        #expect(notice.rejection.reason == .insufficientScope)
        #expect(notice.attributes.id == "c1")
    }

    @Test func authenticationComesBeforeTheType() throws {
        let record = try Fixture.record(Fixture.attributes("identity.fake.unknown.v1"), signedBy: nil)
        guard case .refused("SIGNATURE_MISSING", .authenticate, _, _, _) = verdict(record) else {
            Issue.record("not refused at authenticate")
            return
        }
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
            return try admitted(Fixture.record(attributes, data)).digest
        }
        let first = try digest(["key": "k", "value": "v"])
        #expect(try digest(["value": "v", "key": "k"]) == first)
        #expect(try digest(["key": "k", "value": "v"]) { $0.time = "2026-01-01T00:00:00Z" } == first)
        #expect(try digest(["key": "k", "value": "v"]) { $0.replyTo = "identity.replies.x" } == first)
        #expect(try digest(["key": "k", "value": "w"]) != first)
        #expect(try digest(["key": "k", "value": "v", "more": nil]) != first)
    }

    @Test func appsAreApart() throws {
        let mine = try admitted(Fixture.record())
        let other = try admitted(Fixture.record(Fixture.attributes(app: "other"), signedBy: "other-backend"))
        #expect(mine.key != other.key)
    }
}
