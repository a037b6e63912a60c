// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// The answer to a command (`identity.reply.v1`): one for every command that could be decoded, keyed as the command.
///
/// Read as `Reply<JSONValue>`, written with the command's own result type.
public struct Reply<Result> {
    public static var type: String { "identity.reply.v1" }

    public enum Status: String, WireEnum {
        case succeeded, rejected, expired
        /// A saga that will reply again.
        case pending
    }

    public var commandId: String
    public var commandType: String
    /// ``CommandDigest`` of the command that is answered. Ids can be sent twice with other content, so whoever waits
    /// takes only the reply with the digest of what was sent.
    public var commandDigest: String?
    public var status: Status
    public var reason: ReasonCode?
    public var message: String?
    public var result: Result?
    /// True when the command was only tried (`dryrun`); otherwise absent.
    public var dryRun: Bool?
    /// What a dry run would have told others.
    public var events: [ReplyEvent]?

    public init(
        commandId: String, commandType: String, commandDigest: String? = nil, status: Status,
        reason: ReasonCode? = nil, message: String? = nil, result: Result? = nil, dryRun: Bool? = nil,
        events: [ReplyEvent]? = nil
    ) {
        self.commandId = commandId
        self.commandType = commandType
        self.commandDigest = commandDigest
        self.status = status
        self.reason = reason
        self.message = message
        self.result = result
        self.dryRun = dryRun
        self.events = events
    }

    private enum CodingKeys: String, CodingKey {
        case commandId, commandType, commandDigest, status, reason, message, result, dryRun, events
    }
}

/// An event that was not sent: type and data.
public struct ReplyEvent: Codable, Sendable, Hashable {
    public var type: String
    public var data: JSONValue

    public init(type: String, data: JSONValue) {
        self.type = type
        self.data = data
    }
}

extension Reply: Sendable where Result: Sendable {}
extension Reply: Equatable where Result: Equatable {}
extension Reply: Encodable where Result: Encodable {}
extension Reply: Decodable where Result: Decodable {}
