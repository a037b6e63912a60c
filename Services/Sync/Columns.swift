// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

// The columns of each table.

extension Profile: SQLKeyedRecord {
    public static let table = SQLTable<Profile>("profiles")
    public static var blank: Profile { Profile(app: "", mpid: .max, seen: 0) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("mpid", &mpid, .key)
        try columns.stored("identities", &identities)
        try columns.column("first_seen", &firstSeen)
        try columns.column("last_seen", &lastSeen)
        try columns.numbers("given_at", &namedAt)
        guard !columns.areRead || namedAt.count == identities.count else {
            throw StorageError(kind: .invalid, message: "column given_at holds not one moment for each identity")
        }
        try columns.column("is_orphaned", &isOrphaned)
        try columns.column("name", &name)
        var (user, externalID) = (mark?.userID, mark?.externalID)
        try columns.column("user_id", &user)
        try columns.column("link_external_id", &externalID)
        var (linkedAt, ownMPID) = (mark?.linkedAt, mark?.ownMPID)
        try columns.column("linked_at", &linkedAt)
        try columns.column("link_mpid", &ownMPID)
        if let user, let externalID, let linkedAt, let ownMPID {
            mark = LinkMark(userID: user, externalID: externalID, linkedAt: linkedAt, ownMPID: ownMPID)
        } else {
            mark = nil
        }
        try formerName(columns)
        try aliases(columns)
        try columns.column("growth", &growth)
        try columns.stored(list: "barriers", &barriers)
        try restriction(columns)
        var (at, element) = (imported?.at, imported?.element)
        try columns.column("imported_at", &at)
        try columns.column("imported_as", &element)
        imported = at.flatMap { at in element.map { Imported(at: at, element: $0) } }
        try columns.lastDecision(&lastDecision)
        try columns.column("is_erased", &isErased)
    }
}

extension Profile {
    /// What few profiles have, `NULL` where there is nothing: lists of numbers, with a semicolon between them.
    private mutating func aliases(_ columns: SQLColumns) throws(StorageError) {
        var text: String?
        if columns.areWritten, isAliased {
            text = [
                NumberList.text([Int64(aliasSources)]), NumberList.text([aliasedSince].compactMap(\.self)),
                NumberList.text(aliasWindows), NumberList.text(aliasedFrom), NumberList.text(aliasedInto),
            ].joined(separator: ";")
        }
        try columns.column("aliases", &text)
        guard columns.areRead, let text else { return }
        let lists = text.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        guard lists.count == 5, let sources: [Int64] = NumberList.read(lists[0]), sources.count == 1,
            let since: [Int64] = NumberList.read(lists[1]), since.count <= 1,
            let windows: [ClosedRange<Int64>] = NumberList.read(lists[2]),
            let from: [MPID] = NumberList.read(lists[3]), let into: [MPID] = NumberList.read(lists[4])
        else { throw StorageError(kind: .invalid, message: "column aliases holds lists of numbers that are damaged") }
        (aliasSources, aliasedSince) = (Int(sources[0]), since.first)
        (aliasWindows, aliasedFrom, aliasedInto) = (windows, from, into)
    }

    private var isAliased: Bool {
        aliasSources > 0 || aliasedSince != nil || !aliasWindows.isEmpty || !aliasedFrom.isEmpty || !aliasedInto.isEmpty
    }

    /// `NULL` where it was never told: `0,170`, say, where it is not restricted and that was told at 170.
    private mutating func restriction(_ columns: SQLColumns) throws(StorageError) {
        var text: String?
        if columns.areWritten, isRestricted || restrictionToldAt != nil {
            text = NumberList.text([isRestricted ? 1 : 0] + [restrictionToldAt].compactMap(\.self))
        }
        try columns.column("restriction", &text)
        guard columns.areRead, let text else { return }
        guard let numbers: [Int64] = NumberList.read(text), 1...2 ~= numbers.count, 0...1 ~= numbers[0] else {
            throw StorageError(kind: .invalid, message: "column restriction holds numbers that are damaged")
        }
        (isRestricted, restrictionToldAt) = (numbers[0] == 1, numbers.count == 2 ? numbers[1] : nil)
    }

    private mutating func formerName(_ columns: SQLColumns) throws(StorageError) {
        var (name, since, until) = (former?.externalID, former?.since, former?.until)
        try columns.column("former_name", &name)
        try columns.column("former_since", &since)
        try columns.column("former_until", &until)
        if let name, let since, let until {
            former = FormerName(externalID: name, since: since, until: until)
        } else {
            former = nil
        }
    }
}

extension IdentityEntry: SQLKeyedRecord {
    public static let table = SQLTable<IdentityEntry>("identities")
    public static var blank: IdentityEntry { IdentityEntry(key: Key(app: "", type: .other, value: "")) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("type", &key.id.type, .key)
        try columns.written("value_key", key.id.digest, .key)
        try columns.column("value", &key.id.value)
        try columns.numbers("holders", &holders)
        try columns.bucket("tokens", "tokens_at", &bucket)
        try columns.column("is_told", &isTold)
        try columns.lastDecision(&lastDecision)
    }
}

extension FoldedIdentity: SQLBindable {
    public static var types: [SQLType] { IdentityDigest.types }

    public func bind(to binder: any SQLBinder) throws(StorageError) { try key.bind(to: binder) }
}

extension IdentityDigest: SQLBindable {
    static var types: [SQLType] { [.text, .bytes] }

    func bind(to binder: any SQLBinder) throws(StorageError) {
        try binder.bind(type.rawValue)
        try digest.bind(to: binder)
    }
}

extension DeviceRecord: SQLKeyedRecord {
    public static let table = SQLTable<DeviceRecord>("devices")
    public static var blank: DeviceRecord { DeviceRecord(key: Key(app: "", id: "")) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("device_id", &key.id, .key)
        try columns.column("current_mpid", &current)
        try columns.column("anonymous_mpid", &anonymous)
        try columns.numbers("users", &users)
        try columns.stored("identities", &identities)
        try columns.column("last_move", &lastMove)
        try columns.lastDecision(&lastDecision)
        try columns.bucket("tokens", "tokens_at", &bucket)
    }
}

extension MoveFloor: SQLKeyedRecord {
    static let table = SQLTable<MoveFloor>("move_floors")
    static let blank = MoveFloor(key: "", move: 0)

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key, .key)
        try columns.column("move", &move, .highest)
    }
}

extension AliasRecord: SQLKeyedRecord {
    public static let table = SQLTable<AliasRecord>("aliases")
    public static var blank: AliasRecord {
        AliasRecord(
            key: Key(app: "", id: ""), source: .max, destination: .max, window: 0...0, reach: .device,
            stamp: nil, dueAt: 0, isVouched: false, growth: 0)
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("alias_id", &key.id, .key)
        try columns.column("source_mpid", &source)
        try columns.column("destination_mpid", &destination)
        var (start, end) = (window.lowerBound, window.upperBound)
        try columns.column("start_at", &start)
        try columns.column("end_at", &end)
        window = start...max(start, end)
        try columns.column("reach", &reach)
        try columns.column("stamp", &stamp)
        try columns.column("due_at", &dueAt)
        try columns.column("is_vouched", &isVouched)
        try columns.column("growth", &growth)
        // When it is next looked at; a due alias has another time here.
        try columns.written("ask_at", dueAt)
    }
}

extension Erasure: SQLKeyedRecord {
    public static let table = SQLTable<Erasure>("erasures")
    public static var blank: Erasure {
        Erasure(
            command: CommandKey(app: "", source: "", id: ""), certificate: ErasedProfile.blank.certificate, waiting: [])
    }

    public var key: CommandKey { command }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.command("app", "source", "command_id", &command, .key)
        try columns.stored("certificate", &certificate)
        var forwards = waiting.map(\.text).joined(separator: ",")
        try columns.column("waiting", &forwards)
        waiting = forwards.split(separator: ",").map { CommandID(String($0)) }
        try columns.column("has_failed", &hasFailed)
        try columns.stored("persons", &persons)
        var others = also.map { [$0.source.text, $0.id.text] }
        try columns.stored("also", &others)
        also = others.filter { $0.count == 2 }.map {
            CommandKey(app: command.app, source: SourceID($0[0]), id: CommandID($0[1]))
        }
    }
}

extension ErasedProfile: SQLKeyedRecord {
    public static let table = SQLTable<ErasedProfile>("certificates")
    public static var blank: ErasedProfile {
        ErasedProfile(
            key: Profile.Key(app: "", id: .max),
            certificate: ErasureCertificate(requestId: "", erasedAt: Timestamp(milliseconds: 0), done: .init()))
    }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("mpid", &key.id, .key)
        try columns.stored("certificate", &certificate)
    }
}

/// By which forward an erasure is found, and by whose external id.
struct ErasureForward: SQLRecord {
    static let table = SQLTable<ErasureForward>("erasure_forwards")
    static let blank = ErasureForward(id: "", command: CommandKey(app: "", source: "", id: ""))

    var id: CommandID
    var command: CommandKey
    /// Of the person whom the link service is to forget by it.
    var externalID: ExternalID?

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &command.app, .key)
        try columns.column("forward_id", &id, .key)
        try columns.column("source", &command.source, .fixed)
        try columns.column("command_id", &command.id, .fixed)
        try columns.column("external_id", &externalID, .fixed)
    }
}

/// A user of the link service whom a profile took from a link, who was renamed, or who was erased and stays so. No clear text.
struct LinkedUserRow: SQLKeyedRecord {
    static let table = SQLTable<LinkedUserRow>("linked_users")
    static let blank = LinkedUserRow(LinkedUser(app: "", id: ""), SyncState())

    var key: Scoped<TextDigest>
    var isErased: Bool
    /// 0 for one that was not.
    var renamedAt: Int64

    init(_ user: LinkedUser, _ state: SyncState) {
        key = Self.key(user)
        isErased = state.erasedUsers.contains(user)
        renamedAt = state.renamedAt[user] ?? 0
    }

    static func key(_ user: LinkedUser) -> Key { Key(app: user.app, id: TextDigest(of: user.id.text)) }

    mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &key.app, .key)
        try columns.column("user_key", &key.id, .key)
        try columns.column("is_erased", &isErased, .highest)
        try columns.column("renamed_at", &renamedAt, .highest)
    }
}
