// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Metrics
public import Runtime
public import Storage
import Synchronization

/// Who vouches for a login, and the session of each device (docs/verification.md).
public struct VerificationService: CommandService {
    public static let name = "verification"
    public static let migrations = VerificationStore.migrations
    public static let inputs: [Input<VerificationCommand>] = [
        .command(VerificationLogin.self, VerificationCommand.login),
        .command(VerificationLoginIdentity.self, VerificationCommand.loginIdentity),
        .command(VerificationLogout.self, VerificationCommand.logout),
        .command(VerificationCheck.self, VerificationCommand.check),
        .command(VerificationUsage.self, VerificationCommand.usage),
        .command(GetSession.self, VerificationCommand.getSession),
        .command(ReviewSession.self, VerificationCommand.review),
        .command(ForgetSessions.self, VerificationCommand.forget),
        .command(ExpireSession.self, VerificationCommand.expire),
        .command(ReadFacts<FactsOf.Verification>.self) { .facts($0.query) },
        .reply(from: ["sync"]) { .synced(SyncAnswer($0)) },
        .event(CurrentUserChanged.self, of: "sync") { .moved($0.deviceId, DeviceMove($0)) },
        .event(CurrentUserErased.self, of: "sync") { .moved($0.deviceId, DeviceMove($0)) },
    ]
    public static let hasDueCommands = true
    /// The greatest move counts, whenever and however often it is read (V71).
    public static let eventsCommute = true

    /// Which of the counters' rows this replica adds to. Two replicas that draw the same number wait for each other
    /// now and then; no count is lost.
    private let counterShard: Int64
    private let pace = Pace()

    public init(counterShard: Int64 = .random(in: 0..<1024)) { self.counterShard = counterShard }

    public func ids(in command: VerificationCommand, of app: AppID, _ state: SessionState) -> [String] {
        (command.deviceID.map { [$0.text] } ?? []) + command.mpids.map(\.description)
    }

    public func load(
        _ commands: [(VerificationCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> SessionState {
        let store = VerificationStore(transaction: transaction)
        var state = SessionState()
        state.load(try store.sagas(forwardIDs: Set(commands.compactMap { $0.0.answeredForward })))
        var devices: Set<Session.Key> = []
        var people: Set<Scoped<MPID>> = []
        var mayForget = false
        // Whose logins on their way count.
        var busy: Set<Session.Key> = []
        for (command, context) in commands {
            if let id = command.deviceID { devices.insert(.init(app: context.app.id, id: id)) }
            if case .moved(let id, let move) = command {
                busy.insert(.init(app: context.app.id, id: id))
                state.hear(of: move, at: context.now)
            }
            if let forward = command.answeredForward,
                let saga = state.saga(app: context.app.id, forwardID: forward), command.logsOut(saga)
            {
                busy.insert(.init(app: context.app.id, id: saga.deviceID))
            }
            people.formUnion(command.mpids.map { .init(app: context.app.id, id: $0) })
            if case .expire(let expire) = command {
                busy.insert(.init(app: context.app.id, id: expire.deviceId))
            }
            guard case .forget(let forget) = command else { continue }
            mayForget = true
            let app = context.app.id
            state.load(try store.sessions(of: forget.mpids, app: app))
        }
        devices.formUnion(
            state.sagas.values.map { Session.Key(app: $0.command.app, id: $0.deviceID) })
        devices.formUnion(state.sessions.keys)
        state.load(try store.sessions(devices))
        busy.formUnion(mayForget ? devices : Set(state.sessions.values.filter { $0.heard != nil }.map(\.key)))
        state.load(try store.sagas(of: busy.filter { state.session(app: $0.app, deviceID: $0.id) != nil }))
        state.load(erased: try store.erased(among: people))
        let apps = commands.compactMap { command, context in
            if case .usage = command { context.app.id } else { nil }
        }
        for app in Set(apps).sorted() { state.load(try store.counts(app: app), app: app) }
        return state
    }

    public func decide(
        _ command: VerificationCommand, _ state: SessionState, _ context: DecisionContext
    ) -> Decision<SessionState.Change> {
        VerificationDecider(state, context).decide(command)
    }

    public func save(_ state: SessionState, in transaction: any SQLTransaction) throws {
        try VerificationStore(transaction: transaction).save(state, shard: counterShard)
        RetentionWalk.count("session", state.expired)
        if let lag = state.lag {
            Metrics.Timer(label: "verification_session_lag").recordMilliseconds(lag)
        }
    }

    // MARK: What becomes due

    /// How often sessions are looked for that may not go on, in milliseconds (V46).
    static let reviewEvery: Int64 = 5000
    /// How long a session that was found is left alone, so that what is decided late is not sent again and again.
    static let reviewPause: Int64 = 30_000

    /// Sessions whose key, mode or age does not let them go on: after the apps file has changed, when a key retires, or
    /// by themselves. In steps of `limit`.
    public func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        try VerificationStore(transaction: transaction).dueRetention(now: now, limit: limit, apps: apps)
            + reviews(now: now, limit: limit, apps: apps, in: transaction)
    }

    private func reviews(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        guard pace.isTime(now) else { return [] }
        let settings = apps.ids.compactMap { id in apps[id].map { (app: id, settings: $0.verification) } }
        let found = try VerificationStore(transaction: transaction).toReview(
            settings, now: now, askedBefore: now.milliseconds - Self.reviewPause, limit: limit)
        if found.count < limit { pace.wait(now) }
        return found.map { key in
            DueCommand(
                app: key.app,
                // Each asking is a command of its own: what ended nothing yesterday may end something today.
                id: DerivedID.forward(
                    of: CommandKey(app: key.app, source: "review", id: CommandID(key.id.text)),
                    number: Int(now.milliseconds)),
                dueAt: now, command: ReviewSession(deviceId: key.id))
        }
    }

    /// When it is time to look again. Only a matter of pace: whoever forgets it looks sooner.
    private final class Pace: Sendable {
        private let next = Mutex<Int64>(0)

        func isTime(_ now: Timestamp) -> Bool { next.withLock { $0 <= now.milliseconds } }

        func wait(_ now: Timestamp) { next.withLock { $0 = now.milliseconds + reviewEvery } }
    }
}
