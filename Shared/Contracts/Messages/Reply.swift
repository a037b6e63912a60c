// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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
    public var status: Status
    public var reason: ReasonCode?
    public var message: String?
    public var result: Result?

    public init(
        commandId: String, commandType: String, status: Status, reason: ReasonCode? = nil, message: String? = nil,
        result: Result? = nil
    ) {
        self.commandId = commandId
        self.commandType = commandType
        self.status = status
        self.reason = reason
        self.message = message
        self.result = result
    }

    private enum CodingKeys: String, CodingKey { case commandId, commandType, status, reason, message, result }
}

extension Reply: Sendable where Result: Sendable {}
extension Reply: Equatable where Result: Equatable {}
extension Reply: Encodable where Result: Encodable {}
extension Reply: Decodable where Result: Decodable {}
