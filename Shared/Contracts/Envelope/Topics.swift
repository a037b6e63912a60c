// SPDX-License-Identifier: Apache-2.0

/// Topic names (docs/contracts.md "Topics"): `identity.<service>.commands.v1`, `.events.v1`, `.dlq.v1`, and
/// `identity.replies.v1`. A prefix (`TOPIC_PREFIX`) keeps runs that share a broker apart.
public struct Topics: Sendable, Hashable {
    public let prefix: String
    public let replies: String

    /// What the `source` of every message of the deployment's own services begins with; nobody else may use it.
    public static let ownSources = "identitybus/"
    /// The `source` of the commands that the gateway sends, and the only one that its key may use.
    public static let gatewaySource = "identitybus/gateway"

    public init(prefix: String = "") {
        self.prefix = prefix
        replies = "\(prefix)identity.replies.v1"
    }

    public func commands(_ service: String) -> String { "\(prefix)identity.\(service).commands.v1" }
    public func events(_ service: String) -> String { "\(prefix)identity.\(service).events.v1" }
    public func deadLetters(_ service: String) -> String { "\(prefix)identity.\(service).dlq.v1" }

    /// Where the replies to what the gateway sends come back.
    public var gatewayReplies: String { replies(to: "gateway") }

    /// Where the replies to what a service forwards come back.
    public func replies(to service: String) -> String { "\(prefix)identity.replies.\(service).v1" }

    /// Whether a reply topic is one of a service or the gateway. What is said there is believed to be about their own
    /// commands, so nobody else may have answers sent to it. The form tells, and no list: a service missing from one
    /// would believe answers to commands that others sent.
    public func isOwn(replyTopic: String) -> Bool {
        guard replyTopic.hasPrefix(prefix) else { return false }
        let words = replyTopic.dropFirst(prefix.count).split(separator: ".", omittingEmptySubsequences: false)
        return words.count == 4 && replies(to: String(words[2])) == replyTopic
    }

    /// The consumer group of a service. The prefix applies, so that runs do not share offsets either.
    public func group(_ service: String) -> String { "\(prefix)identity.\(service)" }

    /// The topic that a `replyto` names: `identity.replies.<anything>`, with or without the prefix. Anything else is
    /// refused, so that a command cannot make a service write into a topic that is not for replies.
    /// - Returns: `nil` when the name is not allowed.
    public func replyTopic(_ replyTo: String?) -> String? {
        guard let replyTo else { return replies }
        let name = !prefix.isEmpty && replyTo.hasPrefix(prefix) ? String(replyTo.dropFirst(prefix.count)) : replyTo
        let stem = "identity.replies."
        let legal = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == 0x2E || byte == 0x2D || byte == 0x5F
        }
        guard name.hasPrefix(stem), name.utf8.count > stem.utf8.count, legal, prefix.utf8.count + name.utf8.count <= 249
        else { return nil }
        return prefix + name
    }
}
