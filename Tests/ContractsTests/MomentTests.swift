// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Contracts

/// When an act was done, as its record tells (docs/link.md L45).
@Suite struct MomentTests {
    private static let second: Int64 = 1000
    /// 2026-11-21T10:24:04Z
    private static let noon: Int64 = 1_795_256_644_000
    private static let text = "2026-11-21T10:24:04.000Z"

    private func moment(
        _ time: String?, _ recorded: Int64, _ clock: KafkaRecord.Clock, now: Int64 = noon + 3600 * second
    ) -> Moment {
        let record = KafkaRecord(
            topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, timestampMs: recorded, clock: clock,
            key: nil, value: nil)
        return Moment(of: record, time: time, now: Timestamp(milliseconds: now))
    }

    @Test func theEarlierOfBoth() {
        let noon = Self.noon
        #expect(moment(Self.text, noon + 5, .broker) == Moment(milliseconds: noon))
        #expect(moment(Self.text, noon - 5, .broker) == Moment(milliseconds: noon - 5, isBrokers: true))
        #expect(moment(Self.text, noon - 5, .producer) == Moment(milliseconds: noon - 5))
        #expect(moment(Self.text, -1, .broker) == Moment(milliseconds: noon))
        #expect(moment(nil, noon, .broker) == Moment(milliseconds: noon, isBrokers: true))
        #expect(moment(nil, noon, .producer) == Moment(milliseconds: noon))
    }

    /// What was done within a second is not taken for earlier than it was.
    @Test func aTimeWithoutAFractionIsTheEndOfItsSecond() {
        #expect(moment("2026-11-21T10:24:04Z", -1, .producer) == Moment(milliseconds: Self.noon + 999))
        #expect(moment("2026-11-21T12:24:04+02:00", -1, .producer) == Moment(milliseconds: Self.noon + 999))
        #expect(moment("2026-11-21T10:24:04.0Z", -1, .producer) == Moment(milliseconds: Self.noon))
    }

    /// A producer's clock may be ahead; a broker's time is not doubted.
    @Test func nothingWasDoneBehindItsDecision() {
        let now = Self.noon - 60 * Self.second
        #expect(moment(Self.text, -1, .broker, now: now) == Moment(milliseconds: Self.noon), "as it is told")
        #expect(
            moment(Self.text, -1, .broker, now: now).atMost(Timestamp(milliseconds: now)) == Moment(milliseconds: now))
        #expect(
            moment(nil, Self.noon, .producer, now: now).atMost(Timestamp(milliseconds: now))
                == Moment(milliseconds: now))
        #expect(
            moment(nil, Self.noon, .broker, now: now).atMost(Timestamp(milliseconds: now))
                == Moment(milliseconds: Self.noon, isBrokers: true))
        #expect(moment(nil, -1, .broker, now: now).atMost(Timestamp(milliseconds: now)) == Moment(milliseconds: now))
        #expect(
            moment("no time", -1, .broker, now: now).atMost(Timestamp(milliseconds: now)) == Moment(milliseconds: now))
    }
}
