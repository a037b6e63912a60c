// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// One decided input message: inbox, outbox, audit record and receipt at once.
public struct JournalEntry: Sendable, Hashable {
    public var position: JournalPosition
    /// The command's key. Nil for input that was dead-lettered before it was authenticated.
    public var key: CommandKey?
    /// The hash of the command's content, which tells a repeated command from a reused id.
    public var digest: [UInt8]
    public var type: String
    public var subject: String?
    public var outcome: String
    public var reason: String?
    /// The messages to publish, encoded by the caller. May be empty.
    public var messages: [UInt8]
    /// The time that Kafka gave to the record, in milliseconds since 1970.
    public var loggedAt: Int64
    /// When it was decided, in milliseconds since 1970.
    public var decidedAt: Int64

    public init(
        position: JournalPosition, key: CommandKey?, digest: [UInt8], type: String, subject: String?,
        outcome: String, reason: String?, messages: [UInt8], loggedAt: Int64, decidedAt: Int64
    ) {
        self.position = position
        self.key = key
        self.digest = digest
        self.type = type
        self.subject = subject
        self.outcome = outcome
        self.reason = reason
        self.messages = messages
        self.loggedAt = loggedAt
        self.decidedAt = decidedAt
    }
}

extension JournalEntry: SQLRecord {
    public static let table = SQLTable<JournalEntry>("journal")
    public static var blank: JournalEntry {
        JournalEntry(
            position: JournalPosition(topic: "", partition: 0, incarnation: 0, offset: 0), key: nil, digest: [],
            type: "",
            subject: nil, outcome: "", reason: nil, messages: [], loggedAt: 0, decidedAt: 0)
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("topic", &position.topic, .key)
        try columns.column("partition", &position.partition, .key)
        try columns.column("incarnation", &position.incarnation, .key)
        try columns.column("log_offset", &position.offset, .key)
        var (app, source, id) = (key?.app, key?.source, key?.id)
        try columns.column("app", &app)
        try columns.column("source", &source)
        try columns.column("id", &id)
        if let app, let source, let id { key = CommandKey(app: app, source: source, id: id) } else { key = nil }
        try columns.column("digest", &digest)
        try columns.column("type", &type)
        try columns.column("subject", &subject)
        try columns.column("outcome", &outcome)
        try columns.column("reason", &reason)
        try columns.column("messages", &messages)
        try columns.column("decided_at", &decidedAt)
        try columns.column("logged_at", &loggedAt, selected: Journal.loggedAt)
    }
}

/// Where a message stood in its topic.
///
/// The incarnation tells apart topics of the same name that followed each other (a broker that was replaced, a topic
/// that was deleted and created again): offsets of different incarnations have nothing to do with each other.
public struct JournalPosition: Sendable, Hashable, CustomStringConvertible {
    public var topic: String
    public var partition: Int32
    public var incarnation: Int64
    public var offset: Int64

    public init(topic: String, partition: Int32, incarnation: Int64, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.incarnation = incarnation
        self.offset = offset
    }

    public var description: String { "\(topic)[\(partition)]@\(offset)#\(incarnation)" }
}

/// One partition of one topic, whatever is in it.
public struct JournalPartition: Sendable, Hashable, CustomStringConvertible {
    public let topic: String
    public let partition: Int32

    public init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    public var description: String { "\(topic)[\(partition)]" }
}

/// What makes a command the same command: the app it was authenticated for, its source and its id.
public struct CommandKey: Sendable, Hashable {
    public var app: AppID
    public var source: SourceID
    public var id: CommandID

    public init(app: AppID, source: SourceID, id: CommandID) {
        self.app = app
        self.source = source
        self.id = id
    }
}

extension SQLColumns {
    /// A command's key, in three columns.
    public func command(
        _ app: StaticString, _ source: StaticString, _ id: StaticString, _ key: inout CommandKey, _ role: Role = .latest
    ) throws(StorageError) {
        try column(app, &key.app, role)
        try column(source, &key.source, role)
        try column(id, &key.id, role)
    }
}

extension CommandKey: Comparable, SQLBindable {
    public static func < (left: CommandKey, right: CommandKey) -> Bool {
        (left.app, left.source, left.id) < (right.app, right.source, right.id)
    }

    public func bind(to binder: any SQLBinder) throws(StorageError) {
        try app.bind(to: binder)
        try source.bind(to: binder)
        try id.bind(to: binder)
    }
}
