// SPDX-License-Identifier: Apache-2.0

/// A service says when it decided what neither an event nor a reply tells of: events of others that changed nothing,
/// commands that are answered later, and records that repeated a command. The `time` of the message is that of the decisions.
/// A replay goes by it (docs/loop.md).
public struct DecisionsNoted: EventMessage {
    public static let type = "identity.noted.v1"
    /// Of each decision the id that its first message would have had; of a repetition that of a message about its record.
    public var decisions: [String]

    public init(decisions: [String]) {
        self.decisions = decisions
    }

    public var subject: String { decisions.first ?? "" }
}
