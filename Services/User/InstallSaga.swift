// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Storage

/// What an install waits for, and who waits for the install.
public struct InstallSaga: Codable, Sendable, Hashable {
    public enum Purpose: String, Codable, Sendable, Hashable {
        case create, link, reset
    }

    /// How a user is created or linked.
    public enum Means: Codable, Sendable, Hashable {
        /// By an authentication code, of which the digest is kept.
        case code(externalID: String, digest: CodeDigest)
        case linker
        case unlinked
        /// A reset: no means are needed.
        case none
    }

    /// How it ended without success.
    public enum Failure: Codable, Sendable, Hashable {
        case rejected(ReasonCode, String)
        case expired

        var reason: ReasonCode? {
            if case .rejected(let reason, _) = self { reason } else { nil }
        }
    }

    /// A command, within the install's app.
    public struct Waiting: Codable, Sendable, Hashable {
        var source: String
        var id: String

        init(_ key: CommandKey) {
            source = key.source
            id = key.id
        }

        func key(app: String) -> CommandKey { CommandKey(app: app, source: source, id: id) }
    }

    /// More than this many commands do not wait for one saga.
    static let maxWaiting = 16

    public var purpose: Purpose
    public var means: Means
    /// The `user.create` or `user.link` commands that wait: the first one began it, the others repeat it.
    public var commands: [Waiting] = []
    /// The `user.confirm-link` commands that wait.
    public var confirmations: [Waiting] = []
    /// The `user.reset` commands that wait.
    public var resets: [Waiting] = []
    /// The id of the command to the link service whose answer comes next.
    public var forward: String?
    /// Until when the link service may decide what it is asked for, in milliseconds since 1970.
    public var expiry: Int64?
    /// When the app's linker has taken too long, in milliseconds since 1970.
    public var deadline: Int64?
    /// What `commands` and `confirmations` are told once the install is clean.
    public var failure: Failure?
    /// Who was on the install when its reset began.
    public var userID: String?
    /// What was left on the install by an earlier life is being taken off first.
    public var isCleaning = false
    /// Nothing is left any more: a second refusal stands.
    public var wasCleaned = false

    public init(_ purpose: Purpose, by means: Means = .none) {
        self.purpose = purpose
        self.means = means
    }

    var digest: CodeDigest? {
        if case .code(_, let digest) = means { digest } else { nil }
    }
}
