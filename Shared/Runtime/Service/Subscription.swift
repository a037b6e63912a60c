// SPDX-License-Identifier: Apache-2.0

public import Contracts
import WireJSON

/// What a service reads beside its own commands. Only what the deployment's own services wrote is believed.
public enum Subscription: Sendable, Hashable {
    /// Events of another service, of these types; its other events are passed over.
    case events(of: String, types: Set<String>)
    /// The replies to what this service forwards, and to whom it forwards: their commands topics are created too when
    /// they are missing, so that services may start in any order.
    case replies(from: Set<String>)

    func topic(_ topics: Topics, of service: String) -> String {
        switch self {
        case .events(let other, _): topics.events(other)
        case .replies: topics.replies(to: service)
        }
    }

    /// What is added to the service's name for the consumer group that reads it.
    var groupSuffix: String {
        switch self {
        case .events(let other, _): "events.\(other)"
        case .replies: "replies"
        }
    }

    /// The CloudEvents types that are read.
    var types: Set<String> {
        switch self {
        case .events(_, let types): types
        case .replies: [Reply<RawJSON>.type]
        }
    }
}

/// A command that a service sends to itself because its time has come, see ``CommandService/due(now:limit:in:)``.
public struct DueCommand: Sendable {
    public var app: String
    /// The same each time the same thing is due: the journal then decides it once.
    public var id: String
    public var command: any CommandMessage

    /// How long to wait before the same is sent once more: 30 seconds, and twice as long each time, because what is still
    /// not decided then will hardly be decided by haste.
    /// - Parameter overdue: since when its time has come; all in milliseconds.
    public static func pause(overdue: Int64) -> Int64 { max(30_000, overdue) }

    public init(app: String, id: String, command: any CommandMessage) {
        self.app = app
        self.id = id
        self.command = command
    }
}
