// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A type of command, without its data: what those who send commands need to know of it.
public struct CommandType: Sendable {
    /// In full: `identity.link.request.v1`.
    public let name: String
    /// What the sender must be allowed to do.
    public let scope: Scope
    private let subject: @Sendable (JSONValue) throws -> String

    public init<Message: CommandMessage>(_: Message.Type) {
        name = Message.type
        scope = Message.scope
        subject = { try WireJSONDecoder().decode(Message.self, from: $0).partitionSubject }
    }

    /// The second half of the Kafka key of a command with this data; `nil` when the data is not what the type needs.
    public func partitionSubject(of data: JSONValue) -> String? {
        (try? subject(data)).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The full type of `link.request` is `identity.link.request.v1`; a full one is returned as it is.
    public static func fullName(_ name: String) -> String {
        name.hasPrefix("identity.") ? name : "identity.\(name).v1"
    }

    /// The service that consumes a type: its second part. `nil` when the type does not have the form.
    public static func service(of name: String) -> String? {
        let parts = name.split(separator: ".")
        return parts.count >= 4 && parts[0] == "identity" ? String(parts[1]) : nil
    }
}
