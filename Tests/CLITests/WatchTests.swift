// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import CLI

/// What `watch` is told to show.
@Suite struct WatchTests {
    @Test func momentsAreReadAsPeopleSayThem() throws {
        let now = try #require(Timestamp(rfc3339: "2030-01-31T12:00:00Z"))
        let cases = [
            "now": "2030-01-31T12:00:00.000Z", "10m": "2030-01-31T11:50:00.000Z", "2h": "2030-01-31T10:00:00.000Z",
            "90s": "2030-01-31T11:58:30.000Z", "1d": "2030-01-30T12:00:00.000Z", "09:30": "2030-01-31T09:30:00.000Z",
            "09:30Z": "2030-01-31T09:30:00.000Z", "09:30:15.5": "2030-01-31T09:30:15.500Z",
            "2030-01-01": "2030-01-01T00:00:00.000Z", "2030-01-01T10:00:00": "2030-01-01T10:00:00.000Z",
            "2030-01-01T10:00:00+02:00": "2030-01-01T08:00:00.000Z",
        ]
        for (text, wanted) in cases { #expect(TimePoint(text, now: now)?.time.rfc3339 == wanted, "\(text)") }
        for text in ["", "m", "-5m", "5", "yesterday", "25:00", "2030-13-01", "99999999999999999999d"] {
            #expect(TimePoint(text, now: now) == nil, "\(text)")
        }
    }

    private func choice(_ prefix: String, _ patterns: [String] = [], everybodys: Bool = false) -> TopicChoice {
        TopicChoice(topics: Topics(prefix: prefix), patterns: patterns, isEverybodys: everybodys)
    }

    @Test func onlyTheDeploymentsOwnTopicsAreMeant() {
        for (own, other) in [("", "acl."), ("acl.", "")] {
            for name in [
                "identity.link.events.v1", "identity.replies.v1", "identity.replies.shop", "identity.sync.dlq.v1",
            ] {
                #expect(choice(own).contains(own + name) && !choice(own).contains(other + name))
                #expect(choice(own, everybodys: true).contains(other + name))
            }
            #expect(!choice(own).contains("\(own)identity.link.commands.v1"))
            #expect(choice(own, ["*.commands.v1"]).contains("\(own)identity.link.commands.v1"))
            #expect(choice(own, ["identity.link.*"]).contains("\(own)identity.link.events.v1"))
            #expect(!choice(own, ["*"]).contains("\(other)identity.link.events.v1"))
            #expect(!choice(own, ["*"]).contains("something.else"))
        }
    }

    @Test func recordsAreChosenByWhatTheyAreAbout() throws {
        var attributes = EventAttributes(id: "e1", source: "s", type: "identity.link.linked.v1", appID: "demo")
        attributes.correlationID = "c1"
        let value = try CloudEvent(attributes: attributes, data: ["a": 1] as JSONValue).encoded()
        let record = KafkaRecord(
            topicPartition: TopicPartition(topic: "identity.link.events.v1", partition: 0), offset: 0,
            timestampMs: 5000,
            key: Array("demo/ada".utf8), value: value)
        #expect(RecordFilter().passes(record))
        for (filter, passes) in [
            (RecordFilter(app: "demo"), true), (RecordFilter(app: "shop"), false),
            (RecordFilter(key: "demo/ada"), true),
            (RecordFilter(key: "demo/*"), true), (RecordFilter(key: "ada"), false), (RecordFilter(id: "c1"), true),
            (RecordFilter(id: "e1"), true), (RecordFilter(id: "x"), false),
            (RecordFilter(since: Timestamp(milliseconds: 5000)), true),
            (RecordFilter(since: Timestamp(milliseconds: 5001)), false),
            (RecordFilter(until: Timestamp(milliseconds: 4999)), false),
        ] {
            #expect(filter.passes(record) == passes, "\(filter)")
        }
    }
}
