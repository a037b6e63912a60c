// SPDX-License-Identifier: Apache-2.0

/// Something with a name on the wire: `identity.<service>.<what>.v<major>`.
public protocol Message: Codable, Sendable, Hashable {
    /// The CloudEvents `type`.
    static var type: String { get }
}

/// A command's data. The Kafka key is `<app>/<partitionSubject>`, so that commands about one thing stay in order.
public protocol CommandMessage: Message {
    /// What the API key must be allowed to do.
    static var scope: Scope { get }
    /// The thing the command is about: the second half of the Kafka key.
    var partitionSubject: String { get }
    /// Checks what the types cannot say.
    /// - Throws: `Rejection` with `INVALID_REQUEST` and the member that is wrong.
    func validate() throws(Rejection)
}

/// An event's data: something that happened and is now a fact.
public protocol EventMessage: Message {
    /// The thing the event is about: the CloudEvents `subject` and the second half of the Kafka key.
    var subject: String { get }
}

/// The Kafka key of everything about `subject` in `app`.
public func partitionKey(app: String, subject: String) -> String { "\(app)/\(subject)" }
