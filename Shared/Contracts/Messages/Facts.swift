// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A service that says what it knows about an id.
public protocol FactsOwner: Sendable {
    static var service: String { get }
}

/// The services that have ``ReadFacts``.
public enum FactsOf {
    public enum Link: FactsOwner { public static let service = "link" }
    public enum User: FactsOwner { public static let service = "user" }
    public enum Sync: FactsOwner { public static let service = "sync" }
    public enum Verification: FactsOwner { public static let service = "verification" }
}

/// Asks a service what it holds about any id, and what was decided about it. Result: ``FactsResult``.
public struct ReadFacts<Owner: FactsOwner>: PersonQuery {
    public static var type: String { "identity.\(Owner.service).facts.v1" }
    public static var scope: Scope { .support }

    /// What is asked, whoever is.
    public var query: FactsQuery

    public init(_ query: FactsQuery) { self.query = query }

    public init(from decoder: any Decoder) throws { query = try FactsQuery(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try query.encode(to: encoder) }

    public var partitionSubject: String { query.id }
    public var subject: (kind: String, name: String) { ("id", query.id) }

    public func validate() throws(Rejection) { try query.validate() }
}

/// What ``ReadFacts`` asks: its members.
public struct FactsQuery: Codable, Sendable, Hashable {
    /// An install, a user, an external id, an MPID, an identity value, a device, or a command's id: 1 to 750 characters.
    public var id: String
    /// Of a command's id: the CloudEvents `source` that it was sent with. Default: the gateway and `identitybus send`.
    public var source: SourceID?
    /// Where the page before ended (``FactsResult/next``).
    public var page: String?

    public init(id: String, source: SourceID? = nil, page: String? = nil) {
        self.id = id
        self.source = source
        self.page = page
    }

    func validate() throws(Rejection) {
        try Validation.identityValue(id, "id")
        if let source { try Validation.text(source.text, "source", atMost: 1024) }
        guard let page else { return }
        try Validation.text(page, "page", atMost: 8192)
    }
}

/// What a service holds about an id, and a page of what was decided about it.
public struct FactsResult: CommandResult {
    public var id: String
    /// The rows, each an object with its `kind`. On the first page only.
    public var state: [JSONValue]
    /// The newest first.
    public var facts: [Fact]
    /// What the next page is asked for with; missing at the end. It says nothing to anybody else.
    public var next: String?

    public init(id: String, state: [JSONValue], facts: [Fact], next: String? = nil) {
        self.id = id
        self.state = state
        self.facts = facts
        self.next = next
    }
}

/// One decision of a service.
public struct Fact: Codable, Sendable, Hashable {
    /// An event, or a command to another service, that came of the decision.
    public struct Told: Codable, Sendable, Hashable {
        public var type: String
        /// `null` where it is too long to be told here.
        public var data: JSONValue

        public init(type: String, data: JSONValue) {
            self.type = type
            self.data = data
        }
    }

    public var service: String
    public var decidedAt: Timestamp
    /// Where the record stood that was decided.
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    /// Of that record.
    public var type: String
    public var source: SourceID
    public var commandId: CommandID
    /// The API key of whoever sent it, where that needs `support`, `user.delete` or `admin`.
    public var authId: String?
    /// Of the trace that it was sent in (W3C Trace Context): 32 hex digits.
    public var traceId: String?
    /// `succeeded`, `rejected`, `expired`, `pending` or `noted`.
    public var outcome: String
    /// Why it was rejected.
    public var reason: String?
    public var message: String?
    /// What the sender was answered; not when that holds a secret.
    public var result: JSONValue?
    /// The sender was answered with a secret, which is told to nobody else.
    public var hasSecret: Bool?
    public var events: [Told]
    public var commands: [Told]

    public init(
        service: String, decidedAt: Timestamp, topic: String, partition: Int32, offset: Int64, type: String,
        source: SourceID, commandId: CommandID, authId: String? = nil, traceId: String? = nil, outcome: String,
        reason: String? = nil, message: String? = nil, result: JSONValue? = nil, hasSecret: Bool? = nil,
        events: [Told] = [], commands: [Told] = []
    ) {
        self.service = service
        self.decidedAt = decidedAt
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.type = type
        self.source = source
        self.commandId = commandId
        self.authId = authId
        self.traceId = traceId
        self.outcome = outcome
        self.reason = reason
        self.message = message
        self.result = result
        self.hasSecret = hasSecret
        self.events = events
        self.commands = commands
    }
}
