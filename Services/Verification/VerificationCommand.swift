// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import WireJSON

/// Everything the verification service consumes. Closed: a command without an answer does not compile.
public enum VerificationCommand: Sendable {
    case login(VerificationLogin)
    case loginIdentity(VerificationLoginIdentity)
    case logout(VerificationLogout)
    case check(VerificationCheck)
    case usage(VerificationUsage)
    /// The sync service's answer to a login or logout that was forwarded to it.
    case synced(Reply<JSONValue>)

    static let types: [String: (scope: Scope, read: @Sendable (JSONValue) throws -> VerificationCommand)] = [
        VerificationLogin.type: (VerificationLogin.scope, { .login(try read($0)) }),
        VerificationLoginIdentity.type: (VerificationLoginIdentity.scope, { .loginIdentity(try read($0)) }),
        VerificationLogout.type: (VerificationLogout.scope, { .logout(try read($0)) }),
        VerificationCheck.type: (VerificationCheck.scope, { .check(try read($0)) }),
        VerificationUsage.type: (VerificationUsage.scope, { .usage(try read($0)) }),
    ]

    static func read(reply data: JSONValue) throws -> VerificationCommand {
        .synced(try WireJSONDecoder().decode(Reply<JSONValue>.self, from: data))
    }

    private static func read<Message: CommandMessage>(_ data: JSONValue) throws -> Message {
        let message = try WireJSONDecoder().decode(Message.self, from: data)
        try message.validate()
        return message
    }

    /// The device whose session the command is about, if it names one.
    var deviceID: String? {
        switch self {
        case .login(let command): command.deviceId
        case .loginIdentity(let command): command.deviceId
        case .logout(let command): command.deviceId
        case .check, .usage, .synced: nil
        }
    }

    /// The forwarded command that this is the answer to.
    var answeredForward: String? {
        if case .synced(let reply) = self { reply.commandId } else { nil }
    }
}
