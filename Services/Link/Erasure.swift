// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// A person that is gone here and is yet to be forgotten by the services that were told. It holds what they are told,
/// in case they must be told again, and goes when all have answered.
public struct Erasure: Codable, Sendable, Hashable {
    /// How far another service is.
    public enum Part: Codable, Sendable, Hashable {
        /// It need not be told: the erasure came from there.
        case untold
        /// It was sent the command with this id.
        case asked(forward: CommandID)
        /// It refused. Whoever erases the person again has it asked again (L41).
        case refused
        case done

        var forward: CommandID? {
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
            case forgotten(userID: UserID, also: UserID?)
        }

        var source: SourceID
        var id: CommandID
        var answer: Answer

        init(_ command: CommandKey, _ answer: Answer) {
            source = command.source
            id = command.id
            self.answer = answer
        }

        func key(app: AppID) -> CommandKey { CommandKey(app: app, source: source, id: id) }

        /// Whether both are the same command.
        func isOf(_ other: Waiting) -> Bool {
            source == other.source && id == other.id
        }

        func waits(for part: KeyPath<Erasure, Part>) -> Bool {
            if case .erased = answer { true } else { part == \Erasure.user }
        }

        var also: UserID? {
            if case .forgotten(_, let also) = answer { also } else { nil }
        }
    }

    /// More than this many commands do not wait for one erasure (L40).
    static let maxWaiting = 16
    /// How many installs one command to the user service names (L44). With ids of the greatest length it is still not too
    /// large to be read.
    static let installsInPart = 400

    public var app: AppID
    public var userID: UserID
    var externalID: ExternalID?
    /// Those that the user service is told of now, and after it.
    var installIDs: [InstallID]
    public var user = Part.untold
    public var sync = Part.untold
    var waiting: [Waiting] = []

    init(app: AppID, userID: UserID, externalID: ExternalID?, installIDs: [InstallID]) {
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
    public var forward: CommandID
    public var outcome: Outcome

    public init(forward: CommandID, outcome: Outcome) {
        self.forward = forward
        self.outcome = outcome
    }

    init(_ reply: ReceivedReply) {
        forward = reply.commandId
        switch reply.status {
        case .succeeded: outcome = .done
        case .pending: outcome = .pending
        case .rejected, .expired:
            let service = CommandType.service(of: reply.commandType) ?? "other"
            outcome = .refused(
                "The \(service) service answered \(reply.reason ?? reply.status.rawValue): \(reply.message ?? "")")
        }
    }
}

// MARK: The rules

/// How a person goes: here at once, and from the user and the sync service before the final answer (docs/link.md
/// "Erasure").
///
/// Every decision about an erasure that is under way writes the person's tombstone too, so that two of them meet although
/// the erasure's row goes in the end (docs/decisions/0003-isolation.md).
extension LinkDecider {
    /// L39, L42.
    func erase(_ command: EraseUser) throws(Rejection) -> Decision {
        // Another app's user is not found, rather than refused: its existence is nobody else's business.
        guard let person = state.person(userID: command.userId), person.app == app.id else {
            throw Rejection(.userNotFound)
        }
        guard var erasure = erasure(of: person) else {
            return Decision(.succeeded(ErasureResult(userId: person.userID, installsRemoved: 0)))
        }
        let installs = person.isErased ? 0 : erasure.installIDs.count
        try erasure.add(.init(context.command, .erased(installs: installs)))
        var decision = Decision(.pending(nil))
        decision.remove(person, state)
        decision.tellUser(&erasure, context.forwardID(0))
        decision.tellSync(&erasure, context.forwardID(1))
        decision.changes.append(.erasure(erasure))
        return decision
    }

    /// The sync service, which asks, need not be told (L43).
    func forget(_ command: ForgetPerson) throws(Rejection) -> Decision {
        let persons = persons(command)
        let begun = persons.enumerated().compactMap { number, person in
            erasure(of: person).flatMap { $0.user == .done ? nil : (number: number, person: person, erasure: $0) }
        }
        guard let first = begun.first else {
            return Decision(.succeeded(ForgottenPersonResult(userId: persons.first?.userID)))
        }
        var decision = Decision(.pending(nil))
        for (place, entry) in begun.enumerated() {
            var erasure = entry.erasure
            let other = begun.count == 2 ? begun[1 - place].person.userID : nil
            try erasure.add(.init(context.command, .forgotten(userID: first.person.userID, also: other)))
            decision.remove(entry.person, state)
            decision.tellUser(&erasure, context.forwardID(entry.number))
            decision.changes.append(.erasure(erasure))
        }
        return decision
    }

    /// Whom the sync service means: one person, or two by the two names of one profile.
    private func persons(_ command: ForgetPerson) -> [Person] {
        let byUserID = command.userId.flatMap { state.person(userID: $0) }.flatMap { $0.app == app.id ? $0 : nil }
        let byExternalID = command.externalId.flatMap { state.person(app: app.id, externalID: $0) }
        return [byUserID, byExternalID == byUserID ? nil : byExternalID].compactMap(\.self)
    }

    /// What is to be done about the person, begun already or not. `nil` when it was erased before, and all have answered.
    private func erasure(of person: Person) -> Erasure? {
        if person.isErased { return state.erasure(of: person.userID) }
        return Erasure(
            app: person.app, userID: person.userID, externalID: person.externalID,
            installIDs: state.installs(of: person.userID).map(\.id))
    }

    // MARK: The others' answers

    func take(_ answer: ForgetAnswer) -> Decision {
        guard var erasure = state.erasure(app.id, awaiting: answer.forward),
            let person = state.person(userID: erasure.userID)
        else { return Decision(.noted) }
        let part = erasure.part(awaiting: answer.forward)
        // Whether they wait for another person too was relied on.
        let others = erasure.waiting.compactMap { $0.also.flatMap { state.person(userID: $0) } }
        var decision = Decision(.noted, changes: ([person] + others).map { .person($0) })
        switch answer.outcome {
        case .pending: return Decision(.noted)
        case .refused(let why):
            erasure[keyPath: part] = .refused
            decision.settlements = erasure.waiting.filter { $0.waits(for: part) }.map {
                Settlement($0.key(app: erasure.app), .rejected(Rejection(.serverError, why)))
            }
            erasure.waiting.removeAll { $0.waits(for: part) }
        case .done where part == \.user && erasure.installIDs.count > Erasure.installsInPart:
            erasure.installIDs.removeFirst(Erasure.installsInPart)
            decision.askUser(&erasure, context.forwardID(0))
        case .done:
            erasure[keyPath: part] = .done
            let done = erasure.waiting.filter { waiting in
                [\Erasure.user, \.sync].allSatisfy { !waiting.waits(for: $0) || erasure[keyPath: $0].isOver }
            }
            decision.settlements = done.filter { !isElsewhere($0) }.map {
                Settlement($0.key(app: erasure.app), .succeeded($0.result(erasure)))
            }
            erasure.waiting.removeAll { done.contains($0) }
        }
        decision.changes.append(erasure.isOver ? .erasureOver(userID: erasure.userID) : .erasure(erasure))
        return decision
    }

    /// Whether the command still waits for the other person that it erased.
    private func isElsewhere(_ waiting: Erasure.Waiting) -> Bool {
        guard let other = waiting.also.flatMap({ state.erasure(of: $0) }) else { return false }
        return other.waiting.contains { $0.isOf(waiting) }
    }
}

extension LinkDecider.Decision {
    /// Takes the person away, and leaves tombstones.
    fileprivate mutating func remove(_ person: Person, _ state: LinkState) {
        changes.append(.person(person.tombstone))
        guard !person.isErased else { return }
        changes += state.installs(of: person.userID).map { .install($0.tombstone) }
        events.append(UserErased(userId: person.userID))
    }

    /// Once, and again when it refused. Does not expire: the person is gone here.
    fileprivate mutating func tellUser(_ erasure: inout Erasure, _ forward: CommandID) {
        guard erasure.user == .untold || erasure.user == .refused else { return }
        askUser(&erasure, forward)
    }

    /// About the first of the installs.
    fileprivate mutating func askUser(_ erasure: inout Erasure, _ forward: CommandID) {
        let installIDs = Array(erasure.installIDs.prefix(Erasure.installsInPart))
        let command = ForgetUser(userId: erasure.userID, externalId: erasure.externalID, installIds: installIDs)
        forwards.append(Forward(id: forward, command: command))
        erasure.user = .asked(forward: forward)
    }

    fileprivate mutating func tellSync(_ erasure: inout Erasure, _ forward: CommandID) {
        guard erasure.sync == .untold || erasure.sync == .refused else { return }
        let command = ForgetProfiles(userId: erasure.userID, externalId: erasure.externalID)
        forwards.append(Forward(id: forward, command: command))
        erasure.sync = .asked(forward: forward)
    }
}

extension Erasure {
    /// Lets a command wait for the end; once, also when the inbox has forgotten it and it comes again.
    fileprivate mutating func add(_ command: Waiting) throws(Rejection) {
        if waiting.contains(where: { $0.isOf(command) }) { return }
        guard waiting.count < Self.maxWaiting else { throw Rejection(.throttled) }
        waiting.append(command)
    }

    /// Whose answer the command with this id is.
    fileprivate func part(awaiting forward: CommandID) -> WritableKeyPath<Erasure, Part> {
        user.forward == forward ? \.user : \.sync
    }
}

extension Erasure.Waiting {
    fileprivate func result(_ erasure: Erasure) -> any CommandResult {
        switch answer {
        case .erased(let installs): ErasureResult(userId: erasure.userID, installsRemoved: installs)
        case .forgotten(let userID, _): ForgottenPersonResult(userId: userID)
        }
    }
}
