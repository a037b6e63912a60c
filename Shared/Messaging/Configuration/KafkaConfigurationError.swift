// SPDX-License-Identifier: Apache-2.0

/// A setting that cannot be used. The text is one line and never shows a secret value.
public struct KafkaConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The environment variable that the setting comes from, or would come from.
    public let variable: String

    /// What is wrong with it.
    public let message: String

    public init(variable: String, message: String) {
        self.variable = variable
        self.message = message
    }

    /// `VARIABLE: message`.
    public var description: String { "\(variable): \(message)" }
}
