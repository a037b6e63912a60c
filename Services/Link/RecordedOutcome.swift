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
            self.init(event: event.id, userID: erased.userId)
        default: return nil
        }
    }

    /// The events that may tell of this command. An install that it made known was told of first; who erases by an external
    /// id may erase two.
    static func events(of command: CommandKey) -> [CommandID] {
        (0...1).map { CommandID(DerivedID.message(of: command, index: $0)) }
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
    }
}
