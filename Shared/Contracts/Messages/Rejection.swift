// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// A refusal with its reason code and one line for people that says what was wrong and what would be right.
/// The line never holds secrets; it may name members of the request but not quote long values.
public struct Rejection: Error, Sendable, Hashable, CustomStringConvertible {
    public var reason: ReasonCode
    public var message: String

    public init(_ reason: ReasonCode, _ message: String? = nil) {
        self.reason = reason
        self.message = message ?? reason.defaultMessage
    }

    public var description: String { "\(reason.rawValue): \(message)" }
}
