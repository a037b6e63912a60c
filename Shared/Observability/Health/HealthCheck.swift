// SPDX-License-Identifier: Apache-2.0

/// The state of one thing that the service depends on.
public struct HealthCheck: Sendable, Equatable {
    /// A short stable name, such as `database`.
    public var name: String
    public var ok: Bool
    /// What an operator should know, without secrets: the answer is readable for everyone who reaches the port.
    public var detail: String?

    public init(name: String, ok: Bool, detail: String? = nil) {
        self.name = name
        self.ok = ok
        self.detail = detail
    }
}
