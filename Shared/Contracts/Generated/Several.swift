// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import WireJSON

/// An event that was not sent.
public struct ReplyEvent: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public var type: String
    public var data: JSONValue

    public init(type: String, data: JSONValue) {
        self.type = type
        self.data = data
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let type = json.text("type"),
            let data = json.value("data", as: JSONValue.self)
        else { return nil }
        self.init(type: type, data: data)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("type", type)
        try json.member("data", data)
        json.end()
    }
}

/// What an erasure did, and what remains: ids, counts and times, and no other value of the person. The final answer to
/// `link.erase-user` and `sync.erase-profile`, and kept beside the tombstones. What one service asks another to forget
/// is answered by the certificate of that part.
public struct ErasureCertificate: CommandResult {
    /// The ids that are kept, so that nothing brings them back.
    public struct Subject: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var userIds: [UserID]
        /// The smallest first.
        public var mpids: [MPID]

        public init(userIds: [UserID] = [], mpids: [MPID] = []) {
            self.userIds = userIds
            self.mpids = mpids
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let userIds = json.value("userIds", as: [UserID].self),
                let mpids = json.value("mpids", as: [MPID].self)
            else { return nil }
            self.init(userIds: userIds, mpids: mpids)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("userIds", userIds)
            try json.member("mpids", mpids)
            json.end()
        }
    }

    /// How much of it is gone, by service. A service that is not there was not asked: another certificate has its part.
    public struct Counts: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public struct Link: Codable, WireReadable, WireWritable, Sendable, Hashable {
            public var persons: Int
            public var installs: Int

            public init(persons: Int = 0, installs: Int = 0) {
                self.persons = persons
                self.installs = installs
            }

            public init?(usual view: JSONView) {
                guard var json = JSONObjectReader(view),
                    let persons = json.value("persons", as: Int.self),
                    let installs = json.value("installs", as: Int.self)
                else { return nil }
                self.init(persons: persons, installs: installs)
            }

            public func write(to json: inout JSONOutput) throws {
                json.begin()
                try json.member("persons", persons)
                try json.member("installs", installs)
                json.end()
            }
        }

        public struct User: Codable, WireReadable, WireWritable, Sendable, Hashable {
            public var installs: Int
            public var codes: Int

            public init(installs: Int = 0, codes: Int = 0) {
                self.installs = installs
                self.codes = codes
            }

            public init?(usual view: JSONView) {
                guard var json = JSONObjectReader(view),
                    let installs = json.value("installs", as: Int.self),
                    let codes = json.value("codes", as: Int.self)
                else { return nil }
                self.init(installs: installs, codes: codes)
            }

            public func write(to json: inout JSONOutput) throws {
                json.begin()
                try json.member("installs", installs)
                try json.member("codes", codes)
                json.end()
            }
        }

        public struct Sync: Codable, WireReadable, WireWritable, Sendable, Hashable {
            public var profiles: Int
            public var identities: Int
            /// Those that have lost a user.
            public var devices: Int
            public var aliases: Int

            public init(profiles: Int = 0, identities: Int = 0, devices: Int = 0, aliases: Int = 0) {
                self.profiles = profiles
                self.identities = identities
                self.devices = devices
                self.aliases = aliases
            }

            public init?(usual view: JSONView) {
                guard var json = JSONObjectReader(view),
                    let profiles = json.value("profiles", as: Int.self),
                    let identities = json.value("identities", as: Int.self),
                    let devices = json.value("devices", as: Int.self),
                    let aliases = json.value("aliases", as: Int.self)
                else { return nil }
                self.init(profiles: profiles, identities: identities, devices: devices, aliases: aliases)
            }

            public func write(to json: inout JSONOutput) throws {
                json.begin()
                try json.member("profiles", profiles)
                try json.member("identities", identities)
                try json.member("devices", devices)
                try json.member("aliases", aliases)
                json.end()
            }
        }

        public struct Verification: Codable, WireReadable, WireWritable, Sendable, Hashable {
            public var sessions: Int

            public init(sessions: Int = 0) {
                self.sessions = sessions
            }

            public init?(usual view: JSONView) {
                guard var json = JSONObjectReader(view),
                    let sessions = json.value("sessions", as: Int.self)
                else { return nil }
                self.init(sessions: sessions)
            }

            public func write(to json: inout JSONOutput) throws {
                json.begin()
                try json.member("sessions", sessions)
                json.end()
            }
        }

        public var link: Link?
        public var user: User?
        public var sync: Sync?
        public var verification: Verification?

        public init(link: Link? = nil, user: User? = nil, sync: Sync? = nil, verification: Verification? = nil) {
            self.link = link
            self.user = user
            self.sync = sync
            self.verification = verification
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let link = json.valueIfPresent("link", as: Link.self),
                let user = json.valueIfPresent("user", as: User.self),
                let sync = json.valueIfPresent("sync", as: Sync.self),
                let verification = json.valueIfPresent("verification", as: Verification.self)
            else { return nil }
            self.init(link: link, user: user, sync: sync, verification: verification)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.memberIfPresent("link", link)
            try json.memberIfPresent("user", user)
            try json.memberIfPresent("sync", sync)
            try json.memberIfPresent("verification", verification)
            json.end()
        }
    }

    /// Where copies are that no erasure reaches.
    public struct Remainder: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public enum Place: String, WireEnum {
            /// The record of what was asked and answered.
            case inbox
            /// Of commands, events and replies.
            case topics
            case deadLetters
            case backups
        }

        public var place: Place
        /// Absent: as long as the operator keeps them.
        public var until: Timestamp?

        public init(place: Place, until: Timestamp? = nil) {
            self.place = place
            self.until = until
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let place = json.value("place", as: Place.self),
                let until = json.valueIfPresent("until", as: Timestamp.self)
            else { return nil }
            self.init(place: place, until: until)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("place", place)
            try json.memberIfPresent("until", until)
            json.end()
        }
    }

    /// The command that began it.
    public var requestId: CommandID
    public var erasedAt: Timestamp
    /// Absent while another service has not answered, or could not do its part; then `done` is what is known so far.
    public var completedAt: Timestamp?
    public var subject: Subject
    public var done: Counts
    /// How many profiles hold a value that the command named, and stay.
    public var heldByOthers: Int
    public var remains: [Remainder]

    public init(
        requestId: CommandID, erasedAt: Timestamp, completedAt: Timestamp? = nil, subject: Subject = Subject(),
        done: Counts, heldByOthers: Int = 0, remains: [Remainder] = []
    ) {
        self.requestId = requestId
        self.erasedAt = erasedAt
        self.completedAt = completedAt
        self.subject = subject
        self.done = done
        self.heldByOthers = heldByOthers
        self.remains = remains
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let requestId = json.text("requestId"),
            let erasedAt = json.value("erasedAt", as: Timestamp.self),
            let completedAt = json.valueIfPresent("completedAt", as: Timestamp.self),
            let subject = json.value("subject", as: Subject.self),
            let done = json.value("done", as: Counts.self),
            let heldByOthers = json.value("heldByOthers", as: Int.self),
            let remains = json.value("remains", as: [Remainder].self)
        else { return nil }
        self.init(
            requestId: CommandID(requestId), erasedAt: erasedAt, completedAt: completedAt, subject: subject,
            done: done, heldByOthers: heldByOthers, remains: remains)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("requestId", requestId)
        try json.member("erasedAt", erasedAt)
        try json.memberIfPresent("completedAt", completedAt)
        try json.member("subject", subject)
        try json.member("done", done)
        try json.member("heldByOthers", heldByOthers)
        try json.member("remains", remains)
        json.end()
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let id = json.text("id"),
            let state = json.value("state", as: [JSONValue].self),
            let facts = json.value("facts", as: [Fact].self),
            let next = json.textIfPresent("next")
        else { return nil }
        self.init(id: id, state: state, facts: facts, next: next)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("id", id)
        try json.member("state", state)
        try json.member("facts", facts)
        json.memberIfPresent("next", next)
        json.end()
    }
}

/// Of `link.import-users` and `sync.import-profiles`: one for each element, in their order.
public struct ImportResult: CommandResult {
    public struct Element: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var index: Int
        public var outcome: ImportOutcome
        /// Of a conflict.
        public var reason: ImportConflict?
        /// Of the identity that is in the way.
        public var type: IdentityType?
        /// What is wrong with what is invalid, for people.
        public var message: String?

        public init(
            index: Int, outcome: ImportOutcome, reason: ImportConflict? = nil, type: IdentityType? = nil,
            message: String? = nil
        ) {
            self.index = index
            self.outcome = outcome
            self.reason = reason
            self.type = type
            self.message = message
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let index = json.value("index", as: Int.self),
                let outcome = json.value("outcome", as: ImportOutcome.self),
                let reason = json.valueIfPresent("reason", as: ImportConflict.self),
                let type = json.valueIfPresent("type", as: IdentityType.self),
                let message = json.textIfPresent("message")
            else { return nil }
            self.init(index: index, outcome: outcome, reason: reason, type: type, message: message)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("index", index)
            try json.member("outcome", outcome)
            try json.memberIfPresent("reason", reason)
            try json.memberIfPresent("type", type)
            json.memberIfPresent("message", message)
            json.end()
        }
    }

    public var results: [Element]

    public init(results: [Element]) {
        self.results = results
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let results = json.value("results", as: [Element].self)
        else { return nil }
        self.init(results: results)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("results", results)
        json.end()
    }
}

/// Asks a service what it holds about any id, and what was decided about it (contracts.md, "Facts").
public struct FactsQuery: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// An install, a user, an external id, an MPID, an identity value, a device, or a command's id: 1 to 750
    /// characters.
    public var id: String
    /// Of a command's id: the CloudEvents `source` that it was sent with. Default: the gateway and `identitybus send`.
    public var source: SourceID?
    /// Where the page before ended (`next`).
    public var page: String?

    public init(id: String, source: SourceID? = nil, page: String? = nil) {
        self.id = id
        self.source = source
        self.page = page
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let id = json.text("id"),
            let source = json.textIfPresent("source"),
            let page = json.textIfPresent("page")
        else { return nil }
        self.init(id: id, source: source.map { SourceID($0) }, page: page)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("id", id)
        json.memberIfPresent("source", source)
        json.memberIfPresent("page", page)
        json.end()
    }

    func validate() throws(Rejection) {
        try Validation.identityValue(id, "id")
        if let source { try Validation.text(source.text, "source", atMost: 1024) }
        if let page { try Validation.text(page, "page", atMost: 8192) }
    }
}

/// One decision of a service.
public struct Fact: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// An event, or a command to another service, that came of the decision.
    public struct Told: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var type: String
        /// `null` where it is too long to be told here.
        public var data: JSONValue

        public init(type: String, data: JSONValue) {
            self.type = type
            self.data = data
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let type = json.text("type"),
                let data = json.value("data", as: JSONValue.self)
            else { return nil }
            self.init(type: type, data: data)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("type", type)
            try json.member("data", data)
            json.end()
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
    /// Of the trace that it was sent in (W3C Trace Context).
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

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let service = json.text("service"),
            let decidedAt = json.value("decidedAt", as: Timestamp.self),
            let topic = json.text("topic"),
            let partition = json.value("partition", as: Int32.self),
            let offset = json.value("offset", as: Int64.self),
            let type = json.text("type"),
            let source = json.text("source"),
            let commandId = json.text("commandId"),
            let authId = json.textIfPresent("authId"),
            let traceId = json.textIfPresent("traceId"),
            let outcome = json.text("outcome"),
            let reason = json.textIfPresent("reason"),
            let message = json.textIfPresent("message"),
            let result = json.valueIfPresent("result", as: JSONValue.self),
            let hasSecret = json.valueIfPresent("hasSecret", as: Bool.self),
            let events = json.value("events", as: [Told].self),
            let commands = json.value("commands", as: [Told].self)
        else { return nil }
        self.init(
            service: service, decidedAt: decidedAt, topic: topic, partition: partition, offset: offset, type: type,
            source: SourceID(source), commandId: CommandID(commandId), authId: authId, traceId: traceId,
            outcome: outcome, reason: reason, message: message, result: result, hasSecret: hasSecret, events: events,
            commands: commands)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("service", service)
        try json.member("decidedAt", decidedAt)
        json.member("topic", topic)
        try json.member("partition", partition)
        json.member("offset", offset)
        json.member("type", type)
        json.member("source", source)
        json.member("commandId", commandId)
        json.memberIfPresent("authId", authId)
        json.memberIfPresent("traceId", traceId)
        json.member("outcome", outcome)
        json.memberIfPresent("reason", reason)
        json.memberIfPresent("message", message)
        try json.memberIfPresent("result", result)
        json.memberIfPresent("hasSecret", hasSecret)
        try json.member("events", events)
        try json.member("commands", commands)
        json.end()
    }
}

/// A service says when it decided what neither an event nor a reply tells of: events of others that changed nothing,
/// and commands that are answered later. It says also which records of commands it did not decide. The `time` of the
/// message is that of all these. A replay goes by it (docs/loop.md).
public struct DecisionsNoted: EventMessage {
    public static let type = "identity.noted.v1"

    /// Of each decision the id that its first message would have had.
    public var decisions: [String]
    /// The records that repeated a command. Each has an id that comes from its place.
    public var repeated: [String]?
    /// The records that were refused: without taking an id, by a reply that may reach nobody, or as they repeated a
    /// refusal.
    public var refused: [String]?
    /// Replies by which a replay refused what nothing of the past tells to have been refused. The next one does not go
    /// by them: the apps file of this one was another, perhaps.
    public var refusedInReplay: [String]?

    public init(
        decisions: [String] = [], repeated: [String]? = nil, refused: [String]? = nil, refusedInReplay: [String]? = nil
    ) {
        self.decisions = decisions
        self.repeated = repeated
        self.refused = refused
        self.refusedInReplay = refusedInReplay
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let decisions = json.value("decisions", as: [String].self),
            let repeated = json.valueIfPresent("repeated", as: [String].self),
            let refused = json.valueIfPresent("refused", as: [String].self),
            let refusedInReplay = json.valueIfPresent("refusedInReplay", as: [String].self)
        else { return nil }
        self.init(decisions: decisions, repeated: repeated, refused: refused, refusedInReplay: refusedInReplay)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("decisions", decisions)
        try json.memberIfPresent("repeated", repeated)
        try json.memberIfPresent("refused", refused)
        try json.memberIfPresent("refusedInReplay", refusedInReplay)
        json.end()
    }

    public var subject: String { decisions.last ?? repeated?.last ?? refused?.last ?? refusedInReplay?.last ?? "" }
}

/// How one replica of a service or of the gateway is doing: the data of its record on `identity.status.v1`, which each
/// replica replaces every ten seconds (docs/contracts.md "Status"). It names no person and no app.
public struct ReplicaStatus: Message {
    public static let type = "identity.status.v1"

    /// Why a replica is not ready: a line of `/readyz`.
    public struct Failure: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var name: String
        public var detail: String

        public init(name: String, detail: String) {
            self.name = name
            self.detail = detail
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let name = json.text("name"),
                let detail = json.text("detail")
            else { return nil }
            self.init(name: name, detail: detail)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("name", name)
            json.member("detail", detail)
            json.end()
        }
    }

    /// The version of the apps file that is in force.
    public struct Apps: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var digest: String
        /// Whether the file as it is now is in force.
        public var isValid: Bool

        public init(digest: String, isValid: Bool) {
            self.digest = digest
            self.isValid = isValid
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let digest = json.text("digest"),
                let isValid = json.value("isValid", as: Bool.self)
            else { return nil }
            self.init(digest: digest, isValid: isValid)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("digest", digest)
            json.member("isValid", isValid)
            json.end()
        }
    }

    /// What was decided since the status before.
    public struct Decided: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var seconds: Double
        /// How many decisions ended how.
        @SortedKeys public var outcomes: [String: Int]
        /// Of those that were refused.
        @SortedKeys public var reasons: [String: Int]
        /// How long a batch took to be decided and committed, on the average; missing when there was none.
        public var commitMilliseconds: Double?

        public init(
            seconds: Double, outcomes: [String: Int], reasons: [String: Int], commitMilliseconds: Double? = nil
        ) {
            self.seconds = seconds
            self.outcomes = outcomes
            self.reasons = reasons
            self.commitMilliseconds = commitMilliseconds
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let seconds = json.value("seconds", as: Double.self),
                let outcomes = json.map("outcomes", of: Int.self),
                let reasons = json.map("reasons", of: Int.self),
                let commitMilliseconds = json.valueIfPresent("commitMilliseconds", as: Double.self)
            else { return nil }
            self.init(seconds: seconds, outcomes: outcomes, reasons: reasons, commitMilliseconds: commitMilliseconds)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            try json.member("seconds", seconds)
            try json.map("outcomes", outcomes)
            try json.map("reasons", reasons)
            try json.memberIfPresent("commitMilliseconds", commitMilliseconds)
            json.end()
        }
    }

    /// Of the service, whichever replica says it.
    public struct DeadLetters: Codable, WireReadable, WireWritable, Sendable, Hashable {
        public var open: Int64
        public var oldestSeconds: Double?

        public init(open: Int64, oldestSeconds: Double? = nil) {
            self.open = open
            self.oldestSeconds = oldestSeconds
        }

        public init?(usual view: JSONView) {
            guard var json = JSONObjectReader(view),
                let open = json.value("open", as: Int64.self),
                let oldestSeconds = json.valueIfPresent("oldestSeconds", as: Double.self)
            else { return nil }
            self.init(open: open, oldestSeconds: oldestSeconds)
        }

        public func write(to json: inout JSONOutput) throws {
            json.begin()
            json.member("open", open)
            try json.memberIfPresent("oldestSeconds", oldestSeconds)
            json.end()
        }
    }

    public var service: String
    /// Host and process, as in the progress table.
    public var replica: String
    public var version: String
    public var commit: String
    public var startedAt: Timestamp
    public var isReady: Bool
    public var failing: [Failure]
    public var apps: Apps
    /// How many partitions it decides.
    public var partitions: Int
    /// What stands in the topics and is not decided, and for how long the oldest of it; missing when it is not known.
    /// Of a gateway: how many requests wait for an answer.
    public var waiting: Int64?
    public var oldestSeconds: Double?
    /// Missing in a gateway, which decides nothing.
    public var decided: Decided?
    public var deadLetters: DeadLetters?

    public init(
        service: String, replica: String, version: String, commit: String, startedAt: Timestamp, isReady: Bool,
        failing: [Failure] = [], apps: Apps, partitions: Int, waiting: Int64? = nil, oldestSeconds: Double? = nil,
        decided: Decided? = nil, deadLetters: DeadLetters? = nil
    ) {
        self.service = service
        self.replica = replica
        self.version = version
        self.commit = commit
        self.startedAt = startedAt
        self.isReady = isReady
        self.failing = failing
        self.apps = apps
        self.partitions = partitions
        self.waiting = waiting
        self.oldestSeconds = oldestSeconds
        self.decided = decided
        self.deadLetters = deadLetters
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let service = json.text("service"),
            let replica = json.text("replica"),
            let version = json.text("version"),
            let commit = json.text("commit"),
            let startedAt = json.value("startedAt", as: Timestamp.self),
            let isReady = json.value("isReady", as: Bool.self),
            let failing = json.value("failing", as: [Failure].self),
            let apps = json.value("apps", as: Apps.self),
            let partitions = json.value("partitions", as: Int.self),
            let waiting = json.valueIfPresent("waiting", as: Int64.self),
            let oldestSeconds = json.valueIfPresent("oldestSeconds", as: Double.self),
            let decided = json.valueIfPresent("decided", as: Decided.self),
            let deadLetters = json.valueIfPresent("deadLetters", as: DeadLetters.self)
        else { return nil }
        self.init(
            service: service, replica: replica, version: version, commit: commit, startedAt: startedAt,
            isReady: isReady, failing: failing, apps: apps, partitions: partitions, waiting: waiting,
            oldestSeconds: oldestSeconds, decided: decided, deadLetters: deadLetters)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        json.member("service", service)
        json.member("replica", replica)
        json.member("version", version)
        json.member("commit", commit)
        try json.member("startedAt", startedAt)
        json.member("isReady", isReady)
        try json.member("failing", failing)
        try json.member("apps", apps)
        try json.member("partitions", partitions)
        json.memberIfPresent("waiting", waiting)
        try json.memberIfPresent("oldestSeconds", oldestSeconds)
        try json.memberIfPresent("decided", decided)
        try json.memberIfPresent("deadLetters", deadLetters)
        json.end()
    }
}

/// What became of an element.
public enum ImportOutcome: String, WireEnum {
    case created
    /// It was there already, with all that the element says, or by this very element.
    case same
    /// Something was added.
    case changed
    /// Nothing of it was done, for a reason.
    case conflict
    /// It is not such an element.
    case invalid
}

/// Why nothing of an element was done. For programs; never renamed.
public enum ImportConflict: String, WireEnum {
    /// Another user has the external id, or it is held for one.
    case externalIDTaken = "EXTERNAL_ID_TAKEN"
    /// Another app has a user with this id.
    case userIDTaken = "USER_ID_TAKEN"
    case userErased = "USER_ERASED"
    case profileErased = "PROFILE_ERASED"
    /// Another profile has a value that belongs to one.
    case identityTaken = "IDENTITY_TAKEN"
    /// Something is known of the install already, and not this user on it.
    case installTaken = "INSTALL_TAKEN"
    /// The device has another current user.
    case deviceTaken = "DEVICE_TAKEN"
    case twoActiveInstalls = "TWO_ACTIVE_INSTALLS"
    case valueNamesNobody = "VALUE_NAMES_NOBODY"
    /// It cannot be changed once it is set.
    case immutable = "IMMUTABLE"
    case limitExceeded = "LIMIT_EXCEEDED"
    case badTime = "BAD_TIME"
    /// It is known, and other things of it than the element says.
    case differs = "DIFFERS"
    case mergeBarred = "MERGE_BARRED"
    case restricted = "RESTRICTED"
}

/// Why a person is not active on an install that it is on; the strongest reason.
public enum InactiveBecause: String, WireEnum {
    /// What is known of the person is kept and not used (`sync.restrict`).
    case restricted
    /// The platform disabled the install, or deleted it.
    case disabled
    /// The person moved to another install.
    case superseded
    /// A tablet that came when a phone had the person (L22).
    case waitsForPhone
}

/// The device an install lives on. Only `kind` takes part in decisions (phones are preferred to tablets, L22).
public struct Device: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public enum Kind: String, WireEnum {
        case phone, tablet, other
    }

    public var kind: Kind
    public var platform: String
    public var model: String?
    public var osVersion: String?

    public init(kind: Kind, platform: String, model: String? = nil, osVersion: String? = nil) {
        self.kind = kind
        self.platform = platform
        self.model = model
        self.osVersion = osVersion
    }

    public init?(usual view: JSONView) {
        guard var json = JSONObjectReader(view),
            let kind = json.value("kind", as: Kind.self),
            let platform = json.text("platform"),
            let model = json.textIfPresent("model"),
            let osVersion = json.textIfPresent("osVersion")
        else { return nil }
        self.init(kind: kind, platform: platform, model: model, osVersion: osVersion)
    }

    public func write(to json: inout JSONOutput) throws {
        json.begin()
        try json.member("kind", kind)
        json.member("platform", platform)
        json.memberIfPresent("model", model)
        json.memberIfPresent("osVersion", osVersion)
        json.end()
    }

    func validate(_ path: @autoclosure () -> String) throws(Rejection) {
        try Validation.text(platform, "\(path()).platform")
        if let model { try Validation.text(model, "\(path()).model") }
        if let osVersion { try Validation.text(osVersion, "\(path()).osVersion") }
    }
}
