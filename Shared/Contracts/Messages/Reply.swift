// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// How a command ended, or that it goes on.
public enum ReplyStatus: String, Codable, Sendable, Hashable, CaseIterable {
    case succeeded, rejected, expired
    /// A saga that will reply again.
    case pending
}

/// The answer to a command (`identity.reply.v1`) as it is written: one for every command that could be decoded, keyed as
/// the command. It is read as ``ReceivedReply``.
public struct Reply<Result> {
    public static var type: String { ReceivedReply.type }

    public typealias Status = ReplyStatus

    public var commandId: CommandID
    public var commandType: String
    /// ``CommandDigest`` of the command that is answered. Ids can be sent twice with other content, so whoever waits
    /// takes only the reply with the digest of what was sent.
    public var commandDigest: String
    public var status: ReplyStatus
    public var reason: ReasonCode?
    public var message: String?
    public var result: Result?
    /// True when the command was only tried (`dryrun`); otherwise absent.
    public var dryRun: Bool?
    /// What a dry run would have told others.
    public var events: [ReplyEvent]?

    public init(
        commandId: CommandID, commandType: String, commandDigest: String, status: ReplyStatus,
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

extension Reply: Sendable where Result: Sendable {}
extension Reply: Encodable where Result: Encodable {}

extension Reply: WireWritable where Result: WireWritable {
    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("commandId", commandId)
        json.member("commandType", commandType)
        json.member("commandDigest", commandDigest)
        json.member("status", status.rawValue)
        json.memberIfPresent("reason", reason?.rawValue)
        json.memberIfPresent("message", message)
        try json.memberIfPresent("result", result)
        json.memberIfPresent("dryRun", dryRun)
        try json.memberIfPresent("events", events)
        json.end()
    }
}

/// A reply as it is read, by services, the gateway and tools. Whatever a later version says in it, it is an answer, and
/// nobody waits in vain: an unknown status counts as a refusal, an unknown reason stays as it is written.
public struct ReceivedReply: Sendable, Hashable {
    public static let type = "identity.reply.v1"

    public var commandId: CommandID
    public var commandType: String
    public var commandDigest: String
    public var status: ReplyStatus
    /// As it is written, see ``rejection``.
    public var reason: String?
    public var message: String?
    public var result: JSONValue?
    /// Whether the command was only tried.
    public var isDryRun: Bool
    /// What a dry run would have told others; not read further.
    public var events: [JSONValue]?

    /// - Parameter data: of an envelope of type ``type``.
    /// - Returns: `nil` when it does not say what it answers, or not that it is a reply.
    public init?(_ data: JSONValue) {
        guard let commandId = data["commandId"]?.stringValue, let digest = data["commandDigest"]?.stringValue,
            let status = data["status"]?.stringValue
        else { return nil }
        self.commandId = CommandID(commandId)
        self.status = ReplyStatus(rawValue: status) ?? .rejected
        commandType = data["commandType"]?.stringValue ?? ""
        commandDigest = digest
        reason = data["reason"]?.stringValue
        message = data["message"]?.stringValue
        result = data["result"].flatMap { $0 == .null ? nil : $0 }
        isDryRun = data["dryRun"] == true
        events = data["events"]?.arrayValue
    }

    /// Why the command was refused, in words of this version: `SERVER_ERROR` stands for a reason that it does not know.
    public var rejection: Rejection {
        Rejection(reason.flatMap(ReasonCode.init(rawValue:)) ?? .serverError, message)
    }

    /// The result of a command that succeeded.
    /// - Returns: `nil` when there is none, or this version cannot read it.
    public func result<Result: CommandResult>(as _: Result.Type) -> Result? {
        result.flatMap { try? WireJSONDecoder().read(Result.self, from: JSONView($0)) }
    }
}

/// The members of commands and results that open something to whoever reads them: authentication codes, tokens, app
/// secrets. Every ``CommandResult`` that is confidential has one of them.
public enum SecretMembers {
    /// In no message does a member of these names mean anything else.
    public static let names: Set<String> = [
        "authenticationCode", "authCode", "appSecret", "tokenId", "installToken", "userAuthToken", "identityToken",
    ]

    /// The same value with another one in place of each secret, however deep it lies; without them when that is `nil`.
    /// What is `null` stays: there is no secret.
    public static func replaced(in value: JSONValue, by substitute: JSONValue?) -> JSONValue {
        switch value {
        case .object(let object):
            .object(
                JSONObject(
                    object.members.compactMap { member -> (String, JSONValue)? in
                        guard names.contains(member.name), member.value != .null else {
                            return (member.name, replaced(in: member.value, by: substitute))
                        }
                        return substitute.map { (member.name, $0) }
                    }))
        case .array(let elements): .array(elements.map { replaced(in: $0, by: substitute) })
        default: value
        }
    }
}
