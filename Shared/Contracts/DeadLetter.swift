// SPDX-License-Identifier: Apache-2.0

/// What a dead letter adds to the original key, value and headers (docs/contracts.md "Dead letters").
public struct DeadLetter: Sendable, Hashable {
    public enum Step: String, Sendable, Hashable {
        case decode, authenticate, decide, publish
    }

    /// A named reason, such as `NOT_JSON` or `SIGNATURE_INVALID`.
    public var reason: String
    public var step: Step
    /// One line for operators; no personal data, no secret. Cut at 8 KiB.
    public var error: String
    public var attempts: Int
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    /// Of the original record, in milliseconds since 1970; -1 when it has none.
    public var timestampMs: Int64
    public var group: String

    public init(
        reason: String, step: Step, error: String, attempts: Int = 1, topic: String, partition: Int32, offset: Int64,
        timestampMs: Int64, group: String
    ) {
        self.reason = reason
        self.step = step
        self.error = error
        self.attempts = attempts
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestampMs = timestampMs
        self.group = group
    }

    /// At most 8 KiB, whole characters.
    private static func cut(_ text: String) -> String {
        var text = text[...]
        while text.utf8.count > 8 * 1024 { text = text.dropLast(max(1, (text.utf8.count - 8 * 1024) / 4)) }
        return String(text)
    }

    /// The headers to append to the original ones.
    public func headers(now: Timestamp) -> [Header] {
        [
            Header("dlq_reason", reason), Header("dlq_step", step.rawValue),
            Header("dlq_timestamp", now.rfc3339),
            Header("dlq_error", Self.cut(error)),
            Header("dlq_attempts", String(attempts)), Header("dlq_original_topic", topic),
            Header("dlq_original_partition", String(partition)),
            Header("dlq_original_offset", String(offset)),
            Header("dlq_original_timestamp", String(timestampMs)), Header("dlq_group", group),
        ]
    }
}
