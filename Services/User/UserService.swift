// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
public import Runtime
public import Storage

/// User creation, restoration, linking and reset (docs/user.md). Owns authentication codes and what goes on with an
/// install; every fact about links is asked of the link service.
public struct UserService: CommandService {
    public static let name = "user"
    public static let migrations = UserStore.migrations
    public static let hasDueCommands = true
    public static let inputs: [Input<UserCommand>] = [
        .command(RequestAuthCode.self, UserCommand.requestAuthCode),
        .command(CreateUser.self, UserCommand.create),
        .command(LinkUser.self, UserCommand.link),
        .command(ConfirmLink.self, UserCommand.confirmLink),
        .command(ResetUser.self, UserCommand.reset),
        .command(GetUser.self, UserCommand.get),
        .command(ExpireLinker.self, UserCommand.expireLinker),
        .command(ForgetUser.self, UserCommand.forget),
        .command(ExpireUser.self, UserCommand.expire),
        .command(ReadFacts<FactsOf.User>.self) { .facts($0.query) },
        .reply(from: ["link"]) { .answered(LinkAnswer($0)) },
        .event(Linked.self, of: "link", UserCommand.linked),
        .event(InstallStatusChanged.self, of: "link", UserCommand.statusChanged),
        .event(InstallDetached.self, of: "link", UserCommand.detached),
        .event(ExternalIDChanged.self, of: "link", UserCommand.externalIDChanged),
        .event(ExternalIDRemoved.self, of: "link", UserCommand.externalIDRemoved),
    ]

    /// How long codes are remembered past their expiry, in milliseconds: until then who shows one hears why it is not
    /// accepted, and after that only that it is not known.
    static let codesKept: Int64 = 3_600_000

    public init() {}

    public func ids(in command: UserCommand, of app: AppID, _ state: UserState) -> [String] {
        var ids = [command.installID?.text, command.userID?.text].compactMap(\.self)
        if case .requestAuthCode(let request) = command { ids.append(request.externalId.text) }
        if let code = command.digest.flatMap(state.code), code.app == app { ids.append(code.externalID.text) }
        return ids
    }

    public func load(
        _ commands: [(UserCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> UserState {
        let store = UserStore(transaction: transaction)
        var state = UserState()
        var wanted = Wanted()
        for (command, context) in commands { wanted.add(command, context) }
        state.load(try store.installs(awaiting: wanted.forwards))
        // An answer and the event of the same change come together, and are about one row.
        state.load(try store.installs(wanted.installs.filter { state.installs[$0] == nil }))
        state.load(try store.installs(of: wanted.forgotten))
        wanted.digests.formUnion(state.installs.values.compactMap { $0.code?.digest })
        wanted.users.formUnion(state.installs.values.compactMap { $0.facts.userID })
        state.load(try store.codes(wanted.digests))
        state.load(try store.codes(of: wanted.externalIDs))
        state.load(erased: try store.erased(among: wanted.users))
        return state
    }

    /// What a batch has to know.
    private struct Wanted {
        var installs: Set<InstallKey> = []
        var forwards: Set<CommandID> = []
        var forgotten: Set<UserID> = []
        var digests: Set<CodeDigest> = []
        /// Of apps, as installs are.
        var externalIDs: Set<Scoped<ExternalID>> = []
        var users: Set<UserID> = []

        mutating func add(_ command: UserCommand, _ context: DecisionContext) {
            if let id = command.installID { installs.insert(InstallKey(app: context.app.id, id: id)) }
            if let digest = command.digest { digests.insert(digest) }
            if let userID = command.userID { users.insert(userID) }
            switch command {
            case .answered(let answer): forwards.insert(answer.forward)
            case .forget(let command):
                forgotten.insert(command.userId)
                installs.formUnion(command.installIds.map { InstallKey(app: context.app.id, id: $0) })
                if let id = command.externalId { externalIDs.insert(Scoped(app: context.app.id, id: id)) }
            case .externalIDChanged(let event):
                if let id = event.previousExternalId { externalIDs.insert(Scoped(app: context.app.id, id: id)) }
            case .externalIDRemoved(let event):
                externalIDs.insert(Scoped(app: context.app.id, id: event.externalId))
            case .requestAuthCode(let request):
                externalIDs.insert(Scoped(app: context.app.id, id: request.externalId))
                digests.insert(CodeDigest(of: UserDecider.newCode(context)))
            default: break
            }
        }
    }

    public func decide(
        _ command: UserCommand, _ state: UserState, _ context: DecisionContext
    ) -> Decision<UserState.Change> {
        UserDecider(state, context).decide(command)
    }

    public func save(_ state: UserState, in transaction: any SQLTransaction) throws {
        try UserStore(transaction: transaction).save(state)
    }

    public func due(
        now: Timestamp, limit: Int, apps: AppDirectory, in transaction: any SQLTransaction
    ) throws -> [DueCommand] {
        try due(now: now, limit: limit, in: transaction)
            + UserStore(transaction: transaction).dueRetention(now: now, limit: limit, apps: apps)
    }

    public func due(now: Timestamp, limit: Int, in transaction: any SQLTransaction) throws -> [DueCommand] {
        let store = UserStore(transaction: transaction)
        try store.prune(before: Timestamp(milliseconds: now.milliseconds - Self.codesKept), limit: limit)
        return try store.due(now: now, limit: limit).compactMap { install in
            guard let (first, deadline) = install.linkersTurn else { return nil }
            return DueCommand(
                app: install.app, id: DerivedID.linkerExpiry(app: install.app, first), dueAt: deadline,
                command: ExpireLinker(
                    installId: install.id, commandSource: first.source, commandId: first.id))
        }
    }
}
