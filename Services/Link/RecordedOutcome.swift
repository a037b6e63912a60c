// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// What became of a command once, as an event of then says (L80): of whom the install was from then on, why it was not
/// linked, or who was erased.
public struct RecordedOutcome: Sendable, Hashable {
    public var event: CommandID
    public var userID: UserID?
    public var reason: ReasonCode?
    /// When it was told, in milliseconds.
    public var toldAt: Int64?

    /// Both are `nil` in none.
    init(event: CommandID, userID: UserID? = nil, reason: ReasonCode? = nil) {
        self.event = event
        self.userID = userID
        self.reason = reason
    }

    /// - Returns: `nil` for another event, or one that cannot be read.
    init?(_ event: RecordedEvent) {
        switch event.type {
        case Linked.type:
            guard let linked = event.read(Linked.self) else { return nil }
            self.init(event: event.id, userID: linked.userId)
        case LinkRefused.type:
            guard let refused = event.read(LinkRefused.self) else { return nil }
            self.init(event: event.id, reason: refused.reason)
        case UserErased.type:
            guard let erased = event.read(UserErased.self) else { return nil }
            self.init(event: event.id, userID: erased.userId, reason: .userErased)
        default: return nil
        }
        toldAt = event.time?.milliseconds
    }

    /// The events that may tell of this command. An install that it made known was told of first; who erases by an external
    /// id may erase two.
    static func events(of command: CommandKey) -> [CommandID] {
        (0...1).map { CommandID(DerivedID.message(of: command, index: $0)) }
    }
}

/// What events of the past tell of a person.
struct RecordedLife: Sendable {
    /// When the first was told, in milliseconds.
    var first: Int64
    var isErased: Bool
}

extension LinkState {
    /// Whether a person came to an external id after another one. Of two within one millisecond, the one who was not erased.
    func isRecorded(_ one: UserID, after other: UserID) -> Bool {
        guard let one = recordedLives[one] else { return false }
        guard let other = recordedLives[other] else { return true }
        return one.first == other.first ? other.isErased && !one.isErased : one.first > other.first
    }
}

extension LinkDecider {
    /// What became of the command, if it is of the past that a replay reads and the service told it.
    private var recorded: [RecordedOutcome] {
        guard context.isPast, !state.recorded.isEmpty else { return [] }
        return RecordedOutcome.events(of: context.command).compactMap { state.recorded[$0] }
    }

    /// What became of a link.
    func recordedLink(_ command: LinkCommand) -> RecordedOutcome? {
        command.linkedInstallID == nil ? nil : recorded.first
    }

    /// Whose the install was.
    var recordedUserID: UserID? { recorded.first?.userID }

    /// Who was erased, and is not here: the command that made them is behind this one in the log. They are to stay away.
    func erasedOnce(but known: Set<UserID> = []) -> [Person] {
        recorded.compactMap(\.userID).filter { !known.contains($0) && state.person(userID: $0) == nil }.map {
            Person(userID: $0, app: app.id, createdAt: context.moment.milliseconds)
        }
    }

    /// A link of which no event tells, although events of before it are kept: it changed nothing then. Most likely the install
    /// was linked so already.
    var changedNothingOnce: Bool {
        guard context.isPast, recorded.isEmpty, let since = state.recordedSince else { return false }
        return since <= context.moment.milliseconds
    }

    /// A link came to another person once than the rules come to now, because what was decided before it is behind it in the
    /// log: somebody who is erased there, or who has the external id here still. It comes to that person now (L80).
    ///
    /// - Throws: `USER_ERASED` when the person was erased meanwhile.
    func relink(_ install: Install, to externalID: ExternalID, of userID: UserID) throws(Rejection) -> Decision {
        let known = state.person(userID: userID)
        guard known?.isErased != true else { throw Rejection(.userErased) }
        let person = if let known { known } else { try newPerson(userID) }
        let free = install.userID == userID ? install : install.with(nil, .none)
        var decision = try elect(free, for: person, externalID)
        guard var owner = state.person(app: app.id, externalID: externalID), owner.userID != userID else {
            return decision
        }
        if state.isRecorded(owner.userID, after: userID) {
            decision.changes = decision.changes.map { change in
                guard case .person(var person) = change, person.userID == userID else { return change }
                person.setExternalID(nil, at: context.moment)
                return .person(person)
            }
        } else {
            owner.setExternalID(nil, at: context.moment)
            decision.changes.insert(.person(owner), at: 0)
        }
        return decision
    }

    /// The person that this registration made, who is there already: a link that was decided after it is before it in the log.
    var madeOnce: Person? {
        guard context.isPast, let person = state.person(userID: context.newUserID), !person.isErased else { return nil }
        return person
    }

    /// The person that got the external id once, and has none yet: the command that gave it is behind this one in the log.
    func recordedPerson() -> Person? {
        guard let person = recordedUserID.flatMap({ state.person(userID: $0) }) else { return nil }
        return person.isErased || person.externalID != nil ? nil : person
    }
}

extension LinkStore {
    func recorded(_ events: Set<CommandID>) throws -> [RecordedOutcome] {
        try RecordedOutcome.table.find(events, in: transaction)
    }

    /// One that is kept already stays as it is.
    func keep(_ links: [RecordedOutcome]) throws {
        var known = Set(try recorded(Set(links.map(\.event))).map(\.event))
        try RecordedOutcome.table.insert(links.filter { known.insert($0.event).inserted }, in: transaction)
    }

    /// Since when events are kept, in milliseconds; `nil` when none is.
    func recordedSince() throws -> Int64? {
        try transaction.query("SELECT MIN(told_at) FROM recorded").first?.optionalInteger(0)
    }

    /// What is told of each of them.
    func recordedLives(_ userIDs: Set<UserID>) throws -> [UserID: RecordedLife] {
        let sorted = userIDs.sorted()
        let all = try transaction.queryEach(
            "SELECT MIN(told_at), MAX(CASE WHEN reason = $2 THEN 1 ELSE 0 END) FROM recorded WHERE user_id = $1",
            sorted.map { [.text($0.text), .text(ReasonCode.userErased.rawValue)] })
        var lives: [UserID: RecordedLife] = [:]
        for (userID, rows) in zip(sorted, all) {
            guard let row = rows.first, let first = try row.optionalInteger(0) else { continue }
            lives[userID] = RecordedLife(first: first, isErased: try row.optionalInteger(1) == 1)
        }
        return lives
    }

    func forgetRecorded() throws { try transaction.execute("DELETE FROM recorded") }
}

extension RecordedOutcome: SQLKeyedRecord {
    public static let table = SQLTable<RecordedOutcome>("recorded")
    public static var blank: RecordedOutcome { RecordedOutcome(event: "") }

    public var key: CommandID { event }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("event_id", &event, .key)
        try columns.column("user_id", &userID)
        try columns.column("reason", &reason)
        try columns.column("told_at", &toldAt)
    }
}
