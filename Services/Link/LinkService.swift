// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Logging
import Metrics
public import Runtime
public import Storage
import Synchronization

/// Link requests: install -> external id -> user, and which install of a user is active (docs/link.md). Erasing a user
/// begins here: the user and the sync service are told.
public struct LinkService: CommandService {
    public static let name = "link"
    public static let migrations = LinkStore.migrations
    public static let inputs: [Input<LinkCommand>] = [
        .command(LinkRequest.self, LinkCommand.request),
        .command(RegisterInstall.self, LinkCommand.registerInstall),
        .command(EstablishLink.self, LinkCommand.establish),
        .command(QueryInstall.self, LinkCommand.query),
        .command(DetachInstall.self, LinkCommand.detachInstall),
        .command(SetInstallStatus.self, LinkCommand.setInstallStatus),
        .command(EraseUser.self, LinkCommand.eraseUser),
        .command(ForgetPerson.self, LinkCommand.forget),
        .command(GetUserErasure.self, LinkCommand.getErasure),
        .command(GetLinkedUser.self, LinkCommand.getUser),
        .command(MakeInstallActive.self, LinkCommand.makeActive),
        .command(UnlinkUser.self, LinkCommand.unlink),
        .command(ChangeExternalID.self, LinkCommand.changeExternalID),
        .command(ImportUsers.self, LinkCommand.importUsers),
        .event(UserRestrictionChanged.self, of: "sync", LinkCommand.restricted),
        .command(ExpirePerson.self, LinkCommand.expire),
        .command(ReadFacts<FactsOf.Link>.self) { .facts($0.query) },
        .reply(from: ["user", "sync"]) { .answered(ForgetAnswer($0)) },
    ]

    private let lateLinks = LateLinkLog()

    public init() {}

    public func ids(in command: LinkCommand, of app: AppID, _ state: LinkState) -> [String] {
        [
            command.installID?.text, command.userID?.text, command.externalID?.text, command.formerExternalID?.text,
        ].compactMap(\.self)
    }

    /// What a repair comes to elsewhere.
    public static func listeners(to event: any EventMessage) -> [String] {
        switch event {
        case is ExternalIDChanged, is ExternalIDRemoved: ["sync"]
        default: []
        }
    }

    public func load(
        _ commands: [(LinkCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> LinkState {
        let store = LinkStore(transaction: transaction)
        var state = LinkState()
        var wanted = LinkWanted()
        // By index: a pair that is handed to a closure is copied, all that the two hold.
        for place in commands.indices { wanted.note(commands[place].0, place, commands[place].1.app.id) }
        state.load(try store.installs(Set(wanted.installs)))
        state.load(try store.persons(wanted.names))
        try loadHolds(wanted, store, &state)
        try loadErasures(wanted, store, &state)
        var userIDs = wanted.userIDs.union(state.erasures.keys)
        userIDs.formUnion(state.installs.values.compactMap { $0.userID })
        // The tombstone of a person's own id is looked for where the command may bring one to life: its external id is not
        // known, or a command of the batch may take it from its person before.
        for creator in wanted.creators where creator.name.flatMap(state.user) == nil || wanted.freesNames {
            userIDs.insert(commands[creator.place].1.newUserID)
        }
        userIDs.formUnion(wanted.imported)
        state.load(try store.persons(userIDs: userIDs.subtracting(state.persons.keys)))
        try loadNextIDs(wanted, commands, store, &state)
        if wanted.changesName {
            // What is given up may have been held before, until that was over.
            let names = state.persons.values.compactMap { person in
                person.externalID.map { Hold.key(person.app, $0) }
            }
            state.load(try store.holds(Set(names)))
        }
        let persons = Set(state.persons.keys)
        // Who is linked again is linked everywhere (L73).
        let unlinked = Set(state.persons.values.filter { $0.externalID == nil && !$0.isErased }.map(\.userID))
        // A superseded tablet may come to wait for a phone: whoever superseded it is looked for, active or not (L50).
        let mayComeToWait = wanted.tablets.contains { state.install($0)?.activity == .deactivated }
        let whole = wanted.touchesAll || mayComeToWait ? persons : unlinked
        state.load(try store.allInstalls(of: whole))
        state.load(try store.usedInstalls(of: persons.subtracting(whole)))
        // Of an id that the app does not know: whether another one does (L6).
        let unknown = wanted.known.filter { state.install($0) == nil }.map(\.id)
        if !unknown.isEmpty { state.load(try store.installs(ids: Set(unknown))) }
        return state
    }

    /// L156: hardly ever.
    private func loadNextIDs(
        _ wanted: LinkWanted, _ commands: [(LinkCommand, DecisionContext)], _ store: LinkStore, _ state: inout LinkState
    ) throws {
        for creator in wanted.creators where state.hasImported {
            var counter = 0
            while state.person(userID: commands[creator.place].1.newUserID(counter))?.imported != nil {
                counter += 1
                state.load(try store.persons(userIDs: [commands[creator.place].1.newUserID(counter)]))
            }
        }
    }

    /// External ids that were changed, and those of whoever is erased.
    private func loadHolds(_ wanted: LinkWanted, _ store: LinkStore, _ state: inout LinkState) throws {
        let names = wanted.mayBeHeld.map { Hold.key($0.app, $0.id) }
        if !names.isEmpty { state.load(try store.holds(Set(names))) }
        guard wanted.erases else { return }
        let erased = wanted.erased.union(wanted.erasedNames.compactMap(state.user))
        state.load(try store.holds(of: erased))
    }

    /// The erasures under way that are answered or begun again, and those of the other persons that their commands wait
    /// for.
    private func loadErasures(_ wanted: LinkWanted, _ store: LinkStore, _ state: inout LinkState) throws {
        if !wanted.forwards.isEmpty { state.load(try store.erasures(awaiting: wanted.forwards)) }
        let others = Set(state.erasures.values.flatMap { $0.waiting.compactMap { $0.also } }).union(wanted.userIDs)
        if !others.isEmpty { state.load(try store.erasures(of: others)) }
    }

    public func decide(
        _ command: LinkCommand, _ state: LinkState, _ context: DecisionContext
    ) -> Decision<LinkState.Change> {
        LinkDecider(state, context).decide(command)
    }

    public func save(_ state: LinkState, in transaction: any SQLTransaction) throws {
        try LinkStore(transaction: transaction).save(state)
        RetentionWalk.count("user", state.expired)
        if !state.lateLinks.isEmpty { lateLinks.note(state.lateLinks) }
    }
}

/// L48. Tells people of link requests that came too late, once a minute: many of one key mean that its producer's clock is
/// wrong.
private final class LateLinkLog: Sendable {
    private static let pause: Int64 = 60_000

    private let logger = Logger(label: "identitybus.link")
    private let lastTold = Mutex<Int64>(0)

    func note(_ late: [LateLink]) {
        Counter(label: "identity_late_links").increment(by: late.count)
        guard let worst = late.max(by: { $0.age < $1.age }), isTime(now: Timestamp.now.milliseconds) else { return }
        logger.warning(
            "a link request is older than the turn of whoever is on its install: it comes late, or its producer's clock is wrong",
            metadata: [
                "event": "link.late", "app": "\(worst.app)", "key": "\(worst.key?.text ?? "")",
                "milliseconds": .stringConvertible(worst.age),
            ])
    }

    private func isTime(now: Int64) -> Bool {
        lastTold.withLock { last in
            guard now - last >= Self.pause else { return false }
            last = now
            return true
        }
    }
}

/// Everything the link service consumes. Closed: a command without an answer does not compile.
public enum LinkCommand: Sendable, Hashable {
    case request(LinkRequest)
    case registerInstall(RegisterInstall)
    case establish(EstablishLink)
    case query(QueryInstall)
    case detachInstall(DetachInstall)
    case setInstallStatus(SetInstallStatus)
    case eraseUser(EraseUser)
    case forget(ForgetPerson)
    case getErasure(GetUserErasure)
    case getUser(GetLinkedUser)
    case makeActive(MakeInstallActive)
    case unlink(UnlinkUser)
    case changeExternalID(ChangeExternalID)
    /// Names many: what they are is no part of what the command itself names.
    case importUsers(ImportUsers)
    /// An event of the sync service.
    case restricted(UserRestrictionChanged)
    /// What another service answered to a command of ours.
    case answered(ForgetAnswer)
    case facts(FactsQuery)
    /// Nobody came back.
    case expire(ExpirePerson)

    /// The install the command is about, if it is about one.
    var installID: InstallID? {
        switch self {
        case .request(let command): command.installId
        case .registerInstall(let command): command.installId
        case .establish(let command): command.installId
        case .query(let command): command.installId
        case .detachInstall(let command): command.installId
        case .setInstallStatus(let command): command.installId
        case .getUser(let query): query.installId
        case .makeActive(let command): command.installId
        case .expire(let command): command.installId
        case .eraseUser, .forget, .getErasure, .unlink, .changeExternalID, .importUsers, .restricted, .answered, .facts:
            nil
        }
    }

    /// The external id the command names, if it names one; of a change, the new one.
    var externalID: ExternalID? {
        switch self {
        case .request(let command): command.externalId
        case .establish(let command): command.externalId
        case .forget(let command): command.externalId
        case .getUser(let query): query.externalId
        case .changeExternalID(let command): command.newExternalId
        case .registerInstall, .query, .detachInstall, .setInstallStatus, .eraseUser, .getErasure, .makeActive, .unlink,
            .importUsers, .restricted, .answered, .facts, .expire:
            nil
        }
    }

    /// Of a change, the one that it names as the present one.
    var formerExternalID: ExternalID? {
        if case .changeExternalID(let command) = self { command.externalId } else { nil }
    }

    /// Whether it is a creation's link of a tablet.
    var linksTablet: Bool {
        if case .establish(let command) = self { command.device.kind == .tablet } else { false }
    }

    var changesExternalID: Bool { if case .changeExternalID = self { true } else { false } }

    /// Whether somebody is to have the external id who may not have it yet.
    var mayBeHeld: Bool {
        switch self {
        case .request, .establish, .changeExternalID: true
        default: false
        }
    }

    /// The install that somebody wants to link.
    var linkedInstallID: InstallID? {
        switch self {
        case .request(let command): command.installId
        case .establish(let command): command.installId
        default: nil
        }
    }

    /// Whether it reads or changes a person on all of its installs.
    var isAboutWholePerson: Bool {
        switch self {
        case .getUser, .unlink, .changeExternalID, .restricted, .expire: true
        default: false
        }
    }

    /// The user the command names, if it names one.
    var userID: UserID? {
        switch self {
        case .eraseUser(let command): command.userId
        case .forget(let command): command.userId
        case .getErasure(let query): query.userId
        case .getUser(let query): query.userId
        case .unlink(let command): command.userId
        case .changeExternalID(let command): command.userId
        case .restricted(let event): event.userId
        case .expire(let command): command.userId
        default: nil
        }
    }

    /// Whether the command erases whom it names.
    var erases: Bool {
        switch self {
        case .eraseUser, .forget: true
        default: false
        }
    }

    /// Whether an install that is not known is made.
    var makesInstall: Bool {
        switch self {
        case .registerInstall, .establish: true
        default: false
        }
    }

    /// Whether installs that are not active may come to be.
    var givesBack: Bool {
        if case .detachInstall(let command) = self { command.cause == .creationFailed } else { false }
    }

    /// Whether the command may bring a person to life, whose id then comes from the command's.
    var mayCreatePerson: Bool {
        switch self {
        case .request, .establish: true
        case .registerInstall(let command): command.user == .new
        default: false
        }
    }
}
