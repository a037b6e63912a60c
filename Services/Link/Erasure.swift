// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import WireJSON

/// A person that is gone here and is yet to be forgotten by the services that were told. It holds what they are told,
/// in case they must be told again, and goes when all have answered.
public struct Erasure: Codable, Sendable, Hashable {
    /// How far another service is.
    public enum Part: Codable, Sendable, Hashable {
        /// It need not be told: the erasure came from there.
        case untold
        /// It was sent the command with this id.
        case asked(forward: String)
        /// It refused. Whoever erases the person again has it asked again.
        case refused
        case done

        var forward: String? {
            if case .asked(let forward) = self { forward } else { nil }
        }

        var isOver: Bool { self == .untold || self == .done }
    }

    /// A command that waits for the end, within the person's app.
    public struct Waiting: Codable, Sendable, Hashable {
        /// What it is answered at the end.
        enum Answer: Codable, Sendable, Hashable {
            case erased(installs: Int)
            /// To `link.forget`, which waits for the user service only: the sync service waits for it itself.
            /// - also: another person that the same command erased.
            case forgotten(userID: String, also: String?)
        }

        var source: String
        var id: String
        var answer: Answer

        init(_ command: CommandKey, _ answer: Answer) {
            source = command.source
            id = command.id
            self.answer = answer
        }

        func key(app: String) -> CommandKey { CommandKey(app: app, source: source, id: id) }

        func waits(for part: KeyPath<Erasure, Part>) -> Bool {
            if case .erased = answer { true } else { part == \Erasure.user }
        }

        var also: String? {
            if case .forgotten(_, let also) = answer { also } else { nil }
        }
    }

    /// More than this many commands do not wait for one erasure.
    static let maxWaiting = 16

    public var app: String
    public var userID: String
    var externalID: String?
    var installIDs: [String]
    public var user = Part.untold
    public var sync = Part.untold
    var waiting: [Waiting] = []

    init(app: String, userID: String, externalID: String?, installIDs: [String]) {
        self.app = app
        self.userID = userID
        self.externalID = externalID
        self.installIDs = installIDs
    }

    /// Whether nothing is left to do or to tell.
    var isOver: Bool { user.isOver && sync.isOver && waiting.isEmpty }
}

/// What the user or the sync service answered to a command of ours.
public struct ForgetAnswer: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case done
        /// The service and its reason, for people.
        case refused(String)
        /// Not the final answer.
        case pending
    }

    /// The id of the command that was forwarded.
    public var forward: String
    public var outcome: Outcome

    public init(forward: String, outcome: Outcome) {
        self.forward = forward
        self.outcome = outcome
    }

    /// A reason that this version does not know is a refusal all the same.
    private struct Wire: Decodable {
        var commandId: String
        var commandType: String
        var status: Reply<RawJSON>.Status
        var reason: String?
        var message: String?
    }

    init(reply data: JSONValue) throws {
        let wire = try WireJSONDecoder().decode(Wire.self, from: data)
        forward = wire.commandId
        switch wire.status {
        case .succeeded: outcome = .done
        case .pending: outcome = .pending
        case .rejected, .expired:
            let service = CommandCatalog.service(of: wire.commandType) ?? "other"
            outcome = .refused(
                "The \(service) service answered \(wire.reason ?? wire.status.rawValue): \(wire.message ?? "")")
        }
    }
}
