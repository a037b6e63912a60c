// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Runtime
public import Storage
public import WireJSON

/// Who vouches for a login, and the session of each device (seed 004).
public struct VerificationService: CommandService {
    public static let name = "verification"
    public static let migrations = VerificationStore.migrations
    public static let subscriptions: [Subscription] = [.replies(from: ["sync"])]

    /// Which of the counters' rows this replica adds to. Two replicas that draw the same number wait for each other
    /// now and then; no count is lost.
    private let counterShard: Int64

    public init(counterShard: Int64 = .random(in: 0..<1024)) { self.counterShard = counterShard }

    public static func scope(of type: String) -> Scope? { VerificationCommand.types[type]?.scope }

    public static func decode(type: String, data: JSONValue) throws -> VerificationCommand {
        if type == Reply<JSONValue>.type { return try VerificationCommand.read(reply: data) }
        guard let known = VerificationCommand.types[type] else { throw Rejection(.unknownType) }
        return try known.read(data)
    }

    public func load(
        _ commands: [(VerificationCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> SessionState {
        let store = VerificationStore(transaction: transaction)
        var state = SessionState()
        let forwardIDs = Set(commands.compactMap { $0.0.answeredForward.map { ExactText($0) } })
        state.load(try store.sagas(forwardIDs: forwardIDs))
        var devices = Set(
            commands.compactMap { command, context in
                command.deviceID.map { SessionState.DeviceKey(app: context.app.id, deviceID: $0) }
            })
        devices.formUnion(
            state.sagas.values.map { SessionState.DeviceKey(app: $0.command.app, deviceID: $0.deviceID) })
        state.load(try store.sessions(devices))
        let apps = commands.compactMap { command, context in
            if case .usage = command { ExactText(context.app.id) } else { nil }
        }
        for app in Set(apps).sorted() { state.load(try store.counts(app: app), app: app) }
        return state
    }

    public func decide(
        _ command: VerificationCommand, _ state: SessionState, _ context: DecisionContext
    ) -> Decision<SessionState.Change> {
        VerificationDecider.decide(command, state, context)
    }

    public func save(_ state: SessionState, in transaction: any SQLTransaction) throws {
        try VerificationStore(transaction: transaction).save(state, shard: counterShard)
    }
}
