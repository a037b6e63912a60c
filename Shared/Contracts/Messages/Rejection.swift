// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A refusal with its reason code and one line for people that says what was wrong and what would be right.
/// The line never holds secrets; it may name members of the request but not quote long values.
public struct Rejection: Error, Sendable, Hashable, CustomStringConvertible {
    public var reason: ReasonCode
    public var message: String
    /// What is known in spite of it, for the reply's `result`.
    public private(set) var result: RawJSON?

    public init(_ reason: ReasonCode, _ message: String? = nil) {
        self.reason = reason
        self.message = message ?? reason.defaultMessage
    }

    public func carrying(_ result: some CommandResult) -> Rejection {
        var rejection = self
        // Results are plain values, which always encode.
        rejection.result = (try? WireJSONEncoder().encode(result)).map { RawJSON($0) }
        return rejection
    }

    public var description: String { "\(reason.rawValue): \(message)" }
}
