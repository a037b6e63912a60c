// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// What a person asked for (docs/sync.md "Requests of data subjects").
public struct SubjectRequestRow: Stored, Sendable, Hashable {
    public typealias Key = Scoped<SubjectRequestID>

    var app: AppID
    var id: SubjectRequestID
    var kind: SubjectRequest.Kind
    var status = SubjectRequest.Status.pending
    var reason: ReasonCode?
    /// Of what was asked, keyed by the store's salt: the same request is known again, and the values are not.
    var digest: TextDigest
    var groupId: String?
    var receivedAt: Int64
    /// The moment of the command: who comes later is not meant.
    var moment: Int64
    var startsAt: Int64
    var completedAt: Int64?
    /// Whom it named, until it is over.
    var mpid: MPID?
    var identities: [Identity] = []
    var isEveryHolder = false
    /// Who was meant when it came: nobody is added later (S213).
    var first: [MPID] = []
    /// Who of them was anonymous.
    var anonymous: [MPID] = []
    /// Who was erased, or whose data can be had.
    var mpids: [MPID] = []
    /// The app's own id of the person, if it named that: the link service's user of that external id is meant too (S218).
    var customerID: ExternalID?
    var profileCount = 0
    var heldByOthers = 0
    /// When to go on with it; `nil`: never.
    var askAt: Int64?

    public var key: Key { Key(app: app, id: id) }

    /// Whether it names anybody yet.
    var isOpen: Bool { mpid != nil || !identities.isEmpty || !mpids.isEmpty }

    /// Everybody whose profile it may need.
    var profiles: Set<MPID> { Set(first + mpids + [mpid].compactMap(\.self)) }

    /// Until when its results can be had (S217).
    var resultsUntil: Int64? { kind == .erasure ? nil : completedAt.map { $0 + Self.resultsKept } }

    static let resultsKept: Int64 = 7 * 86_400_000

    /// Nothing is left of whom it named.
    mutating func forgetNames() { (mpid, identities, first, isEveryHolder) = (nil, [], [], false) }
}

extension SubjectRequestRow: SQLKeyedRecord {
    public static let table = SQLTable<SubjectRequestRow>("subject_requests")
    public static var blank: SubjectRequestRow {
        SubjectRequestRow(
            app: "", id: "", kind: .access, digest: TextDigest(bytes: []), receivedAt: 0, moment: 0, startsAt: 0)
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.written("app", app, .key)
        try columns.written("request_id", id, .key)
        try columns.written("group_key", groupId.map { TextDigest(of: $0) })
        try columns.written("received_at", receivedAt)
        try columns.written("is_open", isOpen)
        try columns.written("ask_at", askAt)
        try columns.stored("record", &self)
    }
}

extension SyncStore {
    static let requestStatements = [
        // `record` is the whole request; the other columns are what it is looked up by.
        """
        CREATE TABLE subject_requests (
          app TEXT NOT NULL, request_id TEXT NOT NULL, group_key BYTEA, received_at BIGINT NOT NULL,
          is_open BIGINT NOT NULL, ask_at BIGINT, record BYTEA NOT NULL, PRIMARY KEY (app, request_id))
        """,
        "CREATE INDEX subject_requests_of_group ON subject_requests (app, group_key) WHERE group_key IS NOT NULL",
        "CREATE INDEX subject_requests_open ON subject_requests (app) WHERE is_open = 1",
        "CREATE INDEX subject_requests_to_ask ON subject_requests (ask_at) WHERE ask_at IS NOT NULL",
    ]

    func requests(_ keys: Set<SubjectRequestRow.Key>) throws -> [SubjectRequestRow] {
        try SubjectRequestRow.table.find(keys, in: transaction)
    }

    /// The latest, and one more than are told.
    func requests(ofGroup group: String, _ app: AppID) throws -> [SubjectRequestRow] {
        try SubjectRequestRow.table.find(
            "app = $1 AND group_key = $2 ORDER BY received_at DESC, request_id LIMIT $3",
            [.text(app.text), .blob(TextDigest(of: group).bytes), SQLValue(SyncDecider.requestsTold)],
            in: transaction)
    }

    /// Those that may need somebody's profile.
    func openRequests(_ apps: Set<AppID>) throws -> [SubjectRequestRow] {
        try SubjectRequestRow.table.find("app = $1 AND is_open = 1", apps, in: transaction)
    }

    /// Requests whose time has come. What is not decided then comes again under the same id.
    func dueRequests(now: Int64, limit: Int) throws -> [DueCommand] {
        let due = try SubjectRequestRow.table.find(
            "ask_at <= $1 ORDER BY ask_at, app, request_id LIMIT $2", [.integer(now), SQLValue(limit)],
            in: transaction)
        try transaction.sendEach(
            "UPDATE subject_requests SET ask_at = $3 WHERE app = $1 AND request_id = $2",
            due.map { request in
                let pause = DueCommand.pause(overdue: now - (request.askAt ?? now))
                return [.text(request.app.text), .text(request.id.text), .integer(now + pause)]
            })
        return due.map { request in
            let askAt = request.askAt ?? 0
            return DueCommand(
                app: request.app,
                id: DerivedID.forward(
                    of: CommandKey(
                        app: request.app, source: SourceID("request/\(askAt)"), id: CommandID(request.id.text)),
                    number: 0),
                dueAt: Timestamp(milliseconds: askAt),
                command: ProcessRequest(
                    requestId: request.id,
                    startsAt: request.status == .pending ? Timestamp(milliseconds: request.startsAt) : nil))
        }
    }
}
