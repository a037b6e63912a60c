// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What came of a command that was sent on behalf of an HTTP request.
enum Answer: Sendable {
    case reply(CommandReply)
    /// No reply until the deadline. The command may still be decided.
    case timedOut
    /// Begun, and not at its end until the deadline.
    case stillPending
    /// Kafka did not take the command, or the gateway is not connected.
    case unavailable
    /// The caller's Idempotency-Key stands for another request.
    case keyReused
    /// As many requests wait as may wait.
    case full
}

/// A service's reply.
struct CommandReply: Sendable {
    var commandID: String
    var app: String
    /// Of the command that is answered. Services from before replies named it name none: nobody can tell then whose the
    /// answer is, and nobody gets it.
    var digest: String?
    var isDryRun = false
    var status: ReplyStatus
    var reason: String?
    var message: String?
    var result: JSONValue?

    /// Pending until somebody outside of the platform does something: the caller has to know now. Otherwise the services
    /// settle it among themselves.
    var awaitsCaller: Bool { status == .pending && result?.objectValue?["awaiting"] != "platform" }

    /// - Returns: `nil` when the record is no reply.
    init?(envelope: [UInt8]) {
        guard let json = try? JSONValue(parsing: envelope), json["type"]?.stringValue == ReceivedReply.type,
            let app = json["appid"]?.stringValue, let reply = json["data"].flatMap({ ReceivedReply($0) })
        else { return nil }
        self.init(
            commandID: reply.commandId, app: app, digest: reply.commandDigest, isDryRun: reply.isDryRun,
            status: reply.status, reason: reply.reason, message: reply.message, result: reply.result)
    }

    init(
        commandID: String, app: String, digest: String?, isDryRun: Bool = false, status: ReplyStatus,
        reason: String? = nil, message: String? = nil, result: JSONValue? = nil
    ) {
        self.commandID = commandID
        self.app = app
        self.digest = digest
        self.isDryRun = isDryRun
        self.status = status
        self.reason = reason
        self.message = message
        self.result = result
    }
}
