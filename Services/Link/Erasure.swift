// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// A person that is gone here, and how far the services are that were told. It holds what they are told, in case they must
/// be told again, until all have answered; its certificate stays beside the person's tombstone (L60).
public struct Erasure: Stored, Sendable, Hashable {
    /// How far another service is.
    public enum Part: Stored, Sendable, Hashable {
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
    public struct Waiting: Stored, Sendable, Hashable {
        /// What it is answered at the end.
        enum Answer: Stored, Sendable, Hashable {
            case erased
            /// To `link.forget`, which waits for the user service only: the sync service waits for it itself.
            /// - also: another person that the same command erased.
            case forgotten(also: UserID?)
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
            if case .forgotten(let also) = answer { also } else { nil }
        }
    }

    /// More than this many commands do not wait for one erasure (L40).
    static let maxWaiting = 16
    /// How many installs one command to the user service names (L44). With ids of the greatest length it is still not too
    /// large to be read.
    static let installsInPart = 400

    public var app: AppID
    public var userID: UserID
    /// Of the command that began it. The others are told, because whoever came later is somebody else (L63).
    let moment: Timestamp
    var externalID: ExternalID?
    var former: [FormerExternalID]
    /// Those that the user service is told of now, and after it.
    var installIDs: [InstallID]
    var certificate: ErasureCertificate
    public var user = Part.untold
    public var sync = Part.untold
    var waiting: [Waiting] = []

    init(
        app: AppID, userID: UserID, moment: Timestamp, externalID: ExternalID?,
        former: [FormerExternalID] = [], installIDs: [InstallID], certificate: ErasureCertificate
    ) {
        self.app = app
        self.userID = userID
        self.moment = moment
        self.externalID = externalID
        self.former = former
        self.installIDs = installIDs
        self.certificate = certificate
    }

    /// Whether all that were told have done it.
    var isOver: Bool { user.isOver && sync.isOver }

    /// What the link and the user service did: the sync service asks for it, and knows its own part.
    var part: ErasureCertificate {
        var part = certificate
        part.subject.mpids = []
        part.heldByOthers = 0
        part.done.sync = nil
        part.done.verification = nil
        return part
    }
}

/// What the user or the sync service answered to a command of ours.
public struct ForgetAnswer: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case done(ErasureCertificate)
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
        let service = CommandType.service(of: reply.commandType) ?? "other"
        switch reply.status {
        case .succeeded:
            outcome =
                reply.result(as: ErasureCertificate.self).map { .done($0) }
                ?? .refused("The \(service) service did not say what it erased.")
        case .pending: outcome = .pending
        case .rejected, .expired:
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
        var erasure = erasure(of: person, at: moment)
        if person.isErased, erasure.isOver, erasure.sync != .untold {
            return Decision(.succeeded(erasure.certificate))
        }
        try erasure.add(.init(context.command, .erased))
        erasure.certificate.done.answerForAll()
        var decision = Decision(.pending(nil))
        decision.remove(person, state, moment, by: command.author, because: command.reason)
        decision.tellUser(&erasure, context.forwardID(0))
        decision.tellSync(&erasure, context.forwardID(1))
        decision.changes.append(.erasure(erasure))
        return decision
    }

    /// The sync service, which asks, need not be told (L43).
    func forget(_ command: ForgetPerson) throws(Rejection) -> Decision {
        // The moment of what made the sync service ask.
        let moment = command.erasedAt ?? moment
        let erasures = persons(command, at: moment).map { (person: $0, erasure: erasure(of: $0, at: moment)) }
        let begun = erasures.enumerated().filter { $0.element.erasure.user != .done }
        guard !begun.isEmpty else { return Decision(.succeeded(certificate(erasures.map(\.erasure)))) }
        var decision = Decision(.pending(nil))
        for (number, entry) in begun {
            var erasure = entry.erasure
            let other = erasures.map(\.person.userID).first { $0 != entry.person.userID }
            try erasure.add(.init(context.command, .forgotten(also: other)))
            decision.remove(entry.person, state, moment)
            decision.tellUser(&erasure, context.forwardID(number))
            decision.changes.append(.erasure(erasure))
        }
        return decision
    }

    /// L60.
    func erasure(_ query: GetUserErasure) throws(Rejection) -> Decision {
        guard let person = state.person(userID: query.userId), person.app == app.id,
            let erasure = state.erasure(of: person.userID)
        else { throw Rejection(.userNotFound, "No user with this id was erased.") }
        return Decision(.succeeded(erasure.certificate))
    }

    /// The answer to `link.forget`.
    private func certificate(_ erasures: [Erasure]) -> ErasureCertificate {
        var certificate = emptyCertificate
        certificate.completedAt = context.now
        certificate.done = .init(link: .init(), user: .init())
        for erasure in erasures { certificate.add(erasure.part) }
        return certificate
    }

    private var emptyCertificate: ErasureCertificate {
        ErasureCertificate(
            requestId: context.command.id, erasedAt: moment, done: .init(),
            remains: ErasureCertificate.Remainder.everywhere(inbox: context.inboxForgets))
    }

    private var moment: Timestamp { Timestamp(milliseconds: context.moment.milliseconds) }

    /// Whom the sync service means: the profile's user, or, where that has the external id no longer, whoever has it (L79).
    /// The external id was free once its person was erased, and whoever was linked with it since is another one (L64).
    private func persons(_ command: ForgetPerson, at moment: Timestamp) -> [Person] {
        let byUserID = command.userId.flatMap { state.person(userID: $0) }
            .flatMap { person in
                let isMeant = person.isErased || command.externalId.map(person.isOrWas) != false
                return person.app == app.id && isMeant ? person : nil
            }
        let byExternalID = command.externalId.flatMap { state.person(app: app.id, externalID: $0) }
            .flatMap { $0.linkedAt ?? .min <= moment.milliseconds ? $0 : nil }
        return [byUserID, byExternalID == byUserID ? nil : byExternalID].compactMap(\.self)
    }

    /// What is to be done about the person, begun already or not.
    private func erasure(of person: Person, at moment: Timestamp) -> Erasure {
        if let begun = state.erasure(of: person.userID) { return begun }
        let installIDs = state.installs(of: person.userID).map(\.id)
        var certificate = emptyCertificate
        certificate.subject.userIds = [person.userID]
        certificate.done = .init(link: .init(persons: 1, installs: installIDs.count), user: .init())
        return Erasure(
            app: person.app, userID: person.userID, moment: moment, externalID: person.externalID,
            former: person.former, installIDs: installIDs, certificate: certificate)
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
        case .done(let certificate):
            erasure.certificate.add(certificate)
            if part == \.user, erasure.installIDs.count > Erasure.installsInPart {
                erasure.installIDs.removeFirst(Erasure.installsInPart)
                decision.askUser(&erasure, context.forwardID(0))
            } else {
                erasure[keyPath: part] = .done
                decision.settlements = settle(&erasure)
            }
        }
        decision.changes.append(.erasure(erasure))
        return decision
    }

    /// Answers those who wait for nothing any more. When all have done it, nothing is kept of the person but ids and counts.
    private func settle(_ erasure: inout Erasure) -> [Settlement] {
        if erasure.isOver {
            erasure.certificate.completedAt = context.now
            erasure.externalID = nil
            erasure.former = []
            erasure.installIDs = []
        }
        let over = erasure
        let done = over.waiting.filter { waiting in
            [\Erasure.user, \.sync].allSatisfy { !waiting.waits(for: $0) || over[keyPath: $0].isOver }
        }
        erasure.waiting.removeAll { done.contains($0) }
        return done.filter { !isElsewhere($0) }.map { waiting in
            let also = waiting.also.flatMap { state.erasure(of: $0) }
            let answer =
                waiting.answer == .erased ? over.certificate : certificate([over] + (also.map { [$0] } ?? []))
            return Settlement(waiting.key(app: over.app), .succeeded(answer))
        }
    }

    /// Whether the command still waits for the other person that it erased.
    private func isElsewhere(_ waiting: Erasure.Waiting) -> Bool {
        guard let other = waiting.also.flatMap({ state.erasure(of: $0) }) else { return false }
        return other.waiting.contains { $0.isOf(waiting) }
    }
}

extension LinkDecider.Decision {
    /// Takes the person away, and leaves tombstones.
    fileprivate mutating func remove(
        _ person: Person, _ state: LinkState, _ moment: Timestamp, by author: String? = nil,
        because reason: String? = nil
    ) {
        changes.append(.person(person.tombstone))
        changes += state.holds(of: person.userID).map { .released($0.key) }
        guard !person.isErased else { return }
        changes += state.installs(of: person.userID).map { .install($0.erased(at: moment)) }
        events.append(UserErased(userId: person.userID, author: author, reason: reason))
    }

    /// Once, and again when it refused. Does not expire: the person is gone here.
    fileprivate mutating func tellUser(_ erasure: inout Erasure, _ forward: CommandID) {
        guard erasure.user == .untold || erasure.user == .refused else { return }
        askUser(&erasure, forward)
    }

    /// About the first of the installs.
    fileprivate mutating func askUser(_ erasure: inout Erasure, _ forward: CommandID) {
        let installIDs = Array(erasure.installIDs.prefix(Erasure.installsInPart))
        let command = ForgetUser(
            userId: erasure.userID, externalId: erasure.externalID, installIds: installIDs, erasedAt: erasure.moment)
        forwards.append(Forward(id: forward, command: command))
        erasure.user = .asked(forward: forward)
    }

    fileprivate mutating func tellSync(_ erasure: inout Erasure, _ forward: CommandID) {
        guard erasure.sync == .untold || erasure.sync == .refused else { return }
        let command = ForgetProfiles(
            userId: erasure.userID, externalId: erasure.externalID,
            former: erasure.former.isEmpty ? nil : erasure.former, erasedAt: erasure.moment)
        forwards.append(Forward(id: forward, command: command))
        erasure.sync = .asked(forward: forward)
        erasure.certificate.completedAt = nil
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
