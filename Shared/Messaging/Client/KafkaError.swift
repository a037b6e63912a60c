// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// An error of librdkafka or of the broker. Never carries a secret or a message's content.
public struct KafkaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The number: a Kafka protocol error when positive, one of librdkafka's own when negative.
    public let code: Int32

    /// librdkafka's name for the number, such as `_TRANSPORT` or `MSG_SIZE_TOO_LARGE`.
    public let name: String

    /// A sentence for people.
    public let message: String

    /// The client is unusable: close it and make a new one.
    public let isFatal: Bool

    /// What the caller should do.
    public var disposition: Disposition {
        if isFatal { return .fatal }
        if Self.retryCodes.contains(code) { return .retry }
        if Self.refusedCodes.contains(code) { return .refused }
        return Self.unacceptableCodes.contains(code) ? .unacceptable : .failed
    }

    public var description: String { "\(name): \(message)" }

    /// An error with librdkafka's own name for the code, and its own text where `message` is `nil`.
    public init(code: Int32, message: String? = nil, isFatal: Bool = false) {
        let native = rd_kafka_resp_err_t(rawValue: code)
        self.code = code
        self.name = rd_kafka_err2name(native).map { String(cString: $0) } ?? "ERR_\(code)"
        self.message = message ?? rd_kafka_err2str(native).map { String(cString: $0) } ?? "error \(code)"
        self.isFatal = isFatal || code == Code.fatal
    }

    init(_ native: rd_kafka_resp_err_t, message: String? = nil, isFatal: Bool = false) {
        self.init(code: native.rawValue, message: message, isFatal: isFatal)
    }

    /// Takes what `error` says and destroys it.
    init(consuming error: OpaquePointer) {
        self.init(
            rd_kafka_error_code(error),
            message: rd_kafka_error_string(error).map { String(cString: $0) },
            isFatal: rd_kafka_error_is_fatal(error) != 0)
        rd_kafka_error_destroy(error)
    }

    /// The fatal error that a client is in, if it is in one.
    static func fatal(of client: OpaquePointer) -> KafkaError? {
        if rd_kafka_fatal_error(client, nil, 0) == RD_KAFKA_RESP_ERR_NO_ERROR { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
            text.initialize(repeating: 0)
            let code = rd_kafka_fatal_error(client, text.baseAddress, text.count)
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR, let start = text.baseAddress else { return nil }
            return KafkaError(code, message: String(cString: start), isFatal: true)
        }
    }
}
