// SPDX-License-Identifier: Apache-2.0

/// A service says when it decided what neither an event nor a reply tells of: events of others that changed nothing, and
/// commands that are answered later. It says also which records of commands it did not decide. The `time` of the message is
/// that of all these. A replay goes by it (docs/loop.md).
public struct DecisionsNoted: EventMessage, Hashable {
    public static let type = "identity.noted.v1"

    /// Of each decision the id that its first message would have had.
    public var decisions: [String]
    /// The records that repeated a command. Each has an id that comes from its place.
    public var repeated: [String]?
    /// The records that were refused: without taking an id, by a reply that may reach nobody, or as they repeated a refusal.
    public var refused: [String]?
    /// Replies by which a replay refused what nothing of the past tells to have been refused. The next one does not go by
    /// them: the apps file of this one was another, perhaps.
    public var refusedInReplay: [String]?

    public init(
        decisions: [String] = [], repeated: [String]? = nil, refused: [String]? = nil, refusedInReplay: [String]? = nil
    ) {
        self.decisions = decisions
        self.repeated = repeated
        self.refused = refused
        self.refusedInReplay = refusedInReplay
    }

    public var subject: String { last ?? refusedInReplay?.last ?? "" }

    /// The last one of the first list that has any, but for replies, which have messages of their own.
    public var last: String? { decisions.last ?? repeated?.last ?? refused?.last }
}
