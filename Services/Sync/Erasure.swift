// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

/// An erasure that waits for other services to erase their part.
public struct Erasure: Sendable, Hashable {
    /// The command that began it.
    public var command: CommandKey
    public var mpids: [MPID]
    /// The ids of the commands that were forwarded and are not answered.
    public var waiting: [String]
    /// One of the others could not do its part.
    public var hasFailed = false

    public init(command: CommandKey, mpids: [MPID], waiting: [String]) {
        self.command = command
        self.mpids = mpids
        self.waiting = waiting
    }
}

/// A user of the link service who was erased. Events about them that are read later, because they come over another
/// topic, must not bring anybody back.
public struct ForgottenUser: Sendable, Hashable, Comparable {
    public var app: ExactText
    public var userID: ExactText

    public init(app: String, userID: String) {
        self.app = ExactText(app)
        self.userID = ExactText(userID)
    }

    public static func < (left: ForgottenUser, right: ForgottenUser) -> Bool {
        (left.app, left.userID) < (right.app, right.userID)
    }
}

/// The id of a forwarded command.
struct ForwardKey: Hashable, Comparable {
    var app: ExactText
    var id: ExactText

    init(app: String, id: String) {
        self.app = ExactText(app)
        self.id = ExactText(id)
    }

    static func < (left: ForwardKey, right: ForwardKey) -> Bool { (left.app, left.id) < (right.app, right.id) }
}

/// Another service's answer to a command that was forwarded to it.
public struct ForwardAnswer: Sendable, Hashable {
    public var forwardID: String
    /// The final answer is yet to come.
    public var isPending: Bool
    public var hasSucceeded: Bool
}
