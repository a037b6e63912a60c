// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

// The columns of each table.

extension Session: SQLKeyedRecord {
    public typealias Key = Scoped<DeviceID>

    public static let table = SQLTable<Session>("sessions")
    public static var blank: Session { Session(app: "", deviceID: "") }

    public var key: Key { Key(app: app, id: deviceID) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("device_id", &deviceID, .key)
        try columns.column("state", &state)
        try columns.column("may_file_issues", &mayFileIssues)
        try columns.column("mpid", &mpid)
        try columns.column("number", &number)
        try columns.column("shown", &shown)
        try columns.column("moved", &moved)
        try columns.column("has_login", &hasLogin)
        try columns.column("move", &move)
        try columns.column("seen_at", &seenAt)
        var (number, heardOf, user) = (heard?.number, heard?.mpid, heard?.user)
        try columns.column("heard_move", &number)
        try columns.column("heard_mpid", &heardOf)
        try columns.column("heard_user", &user)
        var isDetached = heard?.isDetached ?? false
        try columns.column("heard_detached", &isDetached)
        heard = number.flatMap { number in
            heardOf.flatMap { mpid in
                user.map { DeviceMove(number: number, mpid: mpid, user: $0, isDetached: isDetached) }
            }
        }
        try columns.lastDecision(&lastDecision)
        var keyID = standing?.keyID
        try columns.column("key_id", &keyID)
        try columns.standing(&standing, keyID: keyID)
    }
}

extension LoginSaga: SQLKeyedRecord {
    public static let table = SQLTable<LoginSaga>("login_sagas")
    public static var blank: LoginSaga {
        LoginSaga(
            forwardID: "", command: CommandKey(app: "", source: "", id: ""), deviceID: "", kind: .login, number: 0,
            result: VerificationResult(state: .anonymous, mayFileIssues: true))
    }

    public var key: CommandID { forwardID }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("forward_id", &forwardID, .key)
        try columns.command("app", "source", "command_id", &command)
        try columns.column("device_id", &deviceID)
        try columns.column("kind", &kind)
        try columns.column("number", &number)
        try columns.column("state", &result.state)
        try columns.column("may_file_issues", &result.mayFileIssues)
        try columns.column("key_id", &result.keyId)
        try columns.column("anonymous_reason", &result.anonymousReason)
        try columns.standing(&standing, keyID: result.keyId)
    }
}

/// Somebody who was on a device; who was erased stays so.
struct Person: SQLKeyedRecord {
    static let table = SQLTable<Person>("people")
    static let blank = Person(key: Scoped(app: "", id: .max), isErased: false)

    var key: Scoped<MPID>
    var isErased: Bool

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("mpid", &key.id, .key)
        try columns.column("is_erased", &isErased, .highest)
    }
}

/// What one shard has counted.
struct CountRow: SQLRecord {
    static let table = SQLTable<CountRow>("verification_counts")
    static var blank: CountRow {
        CountRow(
            app: "", tally: Tally(method: .authToken), shard: 0,
            count: Count(count: 0, lastUsed: Timestamp(milliseconds: 0)))
    }

    var app: AppID
    var tally: Tally
    var shard: Int64
    var count: Count

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("method", &tally.method, .key)
        // A key column holds no null.
        var (reason, keyID) = (tally.reason?.rawValue ?? "", tally.keyID ?? "")
        try columns.column("reason", &reason, .key)
        try columns.column("key_id", &keyID, .key)
        if columns.areRead {
            tally.reason = ReasonCode(rawValue: reason)
            guard reason.isEmpty || tally.reason != nil else {
                throw StorageError(kind: .invalid, message: "column reason holds a word that is not known")
            }
            tally.keyID = keyID.text.isEmpty ? nil : keyID
        }
        try columns.column("shard", &shard, .key)
        try columns.column("count", &count.count, .sum)
        try columns.column("last_used", &count.lastUsed, .highest)
    }
}

extension SQLColumns {
    /// What a session rests on, but for the key's id, which stands in a column before.
    func standing(_ standing: inout Standing?, keyID: KeyID?) throws(StorageError) {
        var (basis, since) = (standing?.basis.number, standing?.since)
        try column("basis", &basis)
        try column("since", &since)
        standing = basis.map { Standing(Standing.Basis(number: $0), keyID: keyID, since: since) }
    }
}
