// SPDX-License-Identifier: Apache-2.0

/// When an act was done, as its record tells: the earlier of the CloudEvents `time` and the record's own time. Both stay
/// with the record, so a replay, a mirrored topic and a store that was put back find the same moment (docs/link.md L45).
public struct Moment: Sendable, Hashable {
    public var milliseconds: Int64
    /// By a broker's clock. Producers' clocks are trusted less.
    public var isBrokers: Bool

    public init(milliseconds: Int64, isBrokers: Bool = false) {
        self.milliseconds = milliseconds
        self.isBrokers = isBrokers
    }

    /// - Parameters:
    ///   - time: the CloudEvents attribute. Without a fraction it stands for the last instant of its second: what was done
    ///     within a second is not taken for earlier than it was.
    ///   - now: the instant of the decision, for a record that tells no time.
    public init(of record: KafkaRecord, time: String?, now: Timestamp) {
        var producers = time.flatMap { text in
            Timestamp(rfc3339: text).map { $0.milliseconds + (text.utf8.contains(UInt8(ascii: ".")) ? 0 : 999) }
        }
        var brokers: Int64?
        if record.timestampMs >= 0 {
            switch record.clock {
            case .broker: brokers = record.timestampMs
            case .producer: producers = min(producers ?? .max, record.timestampMs)
            }
        }
        guard let brokers, brokers < producers ?? .max else {
            self.init(milliseconds: producers ?? now.milliseconds)
            return
        }
        self.init(milliseconds: brokers, isBrokers: true)
    }

    /// A producer's clock may be ahead, but nothing was done later than it was decided.
    public func atMost(_ now: Timestamp) -> Moment {
        isBrokers ? self : Moment(milliseconds: min(milliseconds, now.milliseconds))
    }
}
