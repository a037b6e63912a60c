// SPDX-License-Identifier: Apache-2.0

/// Why a Kafka record is not a readable envelope. Such a record is dead-lettered with `reason` as `dlq_reason`;
/// `detail` is one line for people and never quotes the message's content.
public struct EnvelopeError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Reason: String, Sendable, CaseIterable {
        /// The record has no value (a tombstone) where a command was expected.
        case emptyValue = "EMPTY_VALUE"
        /// Over the 256 KiB limit.
        case tooLarge = "TOO_LARGE"
        case notUTF8 = "NOT_UTF8"
        case notJSON = "NOT_JSON"
        /// Nested deeper than 32.
        case tooDeep = "TOO_DEEP"
        /// The same member twice in one object: readers would disagree about what it says.
        case duplicateMember = "DUPLICATE_MEMBER"
        /// Not an object, an attribute with a wrong type or length, or not CloudEvents 1.0.
        case invalidEnvelope = "INVALID_ENVELOPE"
        /// A required attribute (`specversion`, `id`, `source`, `type`, `appid`) is absent or empty.
        case missingAttribute = "MISSING_ATTRIBUTE"
        case unknownType = "UNKNOWN_TYPE"
    }

    public var reason: Reason
    public var detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { "\(reason.rawValue): \(detail)" }
}
