// SPDX-License-Identifier: Apache-2.0

package import Apps
package import Contracts
package import Storage

/// Brings the stored values of one app under the folding of the apps file (S111). Only the rows of values have keys that
/// depend on it: profiles and devices keep every value as it was given.
package struct Rekeying {
    /// One type whose values are stored in another way than the file wants.
    package struct Change: Sendable {
        package var type: IdentityType
        /// By the file; not yet by the store.
        package var ignoresCase: Bool
        package var values: Int
        /// How many of them would meet with others.
        package var meetings: Int
        /// The first of these.
        package var listed: [Meeting]
    }

    /// Values that the file takes for one. Each with its profiles.
    package struct Meeting: Sendable {
        package var values: [(value: IdentityValue, holders: [MPID])]
    }

    /// Answers a question that changes nothing.
    package typealias Query = (_ sql: String, _ parameters: [SQLValue]) throws -> [SQLRow]

    /// How many meetings of a type are listed.
    private static let most = 1000
    /// How many rows are held in memory: each with up to `profilesPerValue` profiles.
    private static let slice = 500

    private let app: AppID
    private let settings: SyncSettings

    package init(_ app: AppSettings) {
        self.app = app.id
        settings = app.sync
    }

    /// What is to be done.
    /// - Throws: ``OlderStore``, and what the query throws.
    package func plan(_ engine: SQLEngine, _ query: Query) throws -> [Change] {
        let newest = SyncStore.migrations.map(\.number).max() ?? 0
        guard try !query("SELECT 1 FROM migrations WHERE number = $1", [SQLValue(newest)]).isEmpty else {
            throw OlderStore()
        }
        let row = try query("SELECT types FROM foldings WHERE app = $1", [.text(app.text)]).first
        guard let stored = try row.map({ try Foldings.types($0.text(0)) }) else { return [] }
        return try stored.symmetricDifference(settings.foldedIdentities).sorted().map { type in
            let place: [SQLValue] = [.text(app.text), .text(type.rawValue)]
            let count = try query("SELECT COUNT(*) FROM identities WHERE app = $1 AND type = $2", place).first
            var change = Change(
                type: type, ignoresCase: settings.foldedIdentities.contains(type),
                values: Int(try count?.integer(0) ?? 0), meetings: 0, listed: [])
            if change.ignoresCase { try look(for: &change, engine, query, place) }
            return change
        }
    }

    /// The store was not migrated by this version.
    package struct OlderStore: Error {}

    /// S112. Values with their case kept never meet: they are more, not fewer.
    private func look(
        for change: inout Change, _ engine: SQLEngine, _ query: Query, _ place: [SQLValue]
    ) throws {
        // Of A to Z only, as `folded` (S12): SQLite's is so by itself.
        let folded = engine == .postgresql ? "lower(value COLLATE \"C\")" : "lower(value)"
        let several = """
            SELECT \(folded) FROM identities WHERE app = $1 AND type = $2 GROUP BY \(folded) HAVING COUNT(*) > 1
            """
        change.meetings = Int(
            try query("SELECT COUNT(*) FROM (\(several)) AS meeting", place).first?.integer(0) ?? 0)
        guard change.meetings > 0 else { return }
        let rows = try query(
            """
            SELECT value, holders, \(folded) FROM identities WHERE app = $1 AND type = $2
                AND \(folded) IN (\(several) ORDER BY 1 LIMIT \(Self.most)) ORDER BY 3, 1
            """, place)
        var last: IdentityValue?
        for row in rows {
            let holders: [MPID] = NumberList.read(try row.text(1)) ?? []
            let value = (value: IdentityValue(try row.text(0)), holders: holders)
            let folded = IdentityValue(try row.text(2))
            if last == folded, let index = change.listed.indices.last {
                change.listed[index].values.append(value)
            } else {
                change.listed.append(Meeting(values: [value]))
            }
            last = folded
        }
        // Each engine has an order of its own.
        for index in change.listed.indices { change.listed[index].values.sort { $0.value < $1.value } }
    }

    // MARK: Writing

    /// Does what is planned, where no values meet. All in the caller's transaction, which sees what others
    /// have committed.
    /// - Returns: how many values got another key, by type.
    package func run(_ plan: [Change], in transaction: any SQLTransaction) throws -> [IdentityType: Int] {
        guard !plan.isEmpty else { return [:] }
        var moved: [IdentityType: Int] = [:]
        for change in plan { moved[change.type] = try rekey(change, in: transaction) }
        try Foldings(transaction: transaction).write(
            plan.map { FoldingChange(app: app, type: $0.type, ignoresCase: $0.ignoresCase) })
        return moved
    }

    /// Through all values of a type by their keys. One with a new key may come again; it stays as it is then.
    private func rekey(_ change: Change, in transaction: any SQLTransaction) throws -> Int {
        var count = 0
        var after: [UInt8] = []
        while true {
            let rows = try IdentityEntry.table.find(
                "app = $1 AND type = $2 AND value_key > $3 ORDER BY value_key LIMIT $4",
                [.text(app.text), .text(change.type.rawValue), .blob(after), SQLValue(Self.slice)], in: transaction)
            guard let last = rows.last else { return count }
            after = last.key.id.digest.bytes
            let profiles = change.ignoresCase ? [:] : try holders(of: rows, in: transaction)
            let changed = rows.map { ($0, change.ignoresCase ? [folded($0)] : spelled($0, profiles)) }
                .filter { $1 != [$0] }
            // Inserted plainly: should a value be there already, all of this fails and nothing is lost.
            try IdentityEntry.table.remove(changed.map(\.0.key), in: transaction)
            try IdentityEntry.table.insert(
                changed.flatMap(\.1).sorted { $0.key < $1.key }, in: transaction)
            count += changed.count
        }
    }

    private func holders(
        of rows: [IdentityEntry], in transaction: any SQLTransaction
    ) throws -> [Profile.Key: Profile] {
        let keys = Set(rows.flatMap { row in row.holders.map { Profile.Key(app: app, id: $0) } })
        return Dictionary(
            try SyncStore(transaction: transaction).profiles(keys).map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    }

    private func folded(_ entry: IdentityEntry) -> IdentityEntry {
        var entry = entry
        entry.key.id.value = IdentityValue(entry.key.id.value.text.asciiLowercased)
        return entry
    }

    /// S113. A row for each spelling, with those who have the value so, in their order.
    private func spelled(_ entry: IdentityEntry, _ profiles: [Profile.Key: Profile]) -> [IdentityEntry] {
        let stored = entry.key.id
        var holders: [IdentityValue: [MPID]] = [:]
        for mpid in entry.holders {
            let identity = profiles[Profile.Key(app: app, id: mpid)]?.identities.first {
                $0.type == stored.type && $0.value.text.asciiLowercased == stored.value.text
            }
            holders[identity?.value ?? stored.value, default: []].append(mpid)
        }
        return holders.sorted { $0.key < $1.key }.map { value, mpids in
            var spelled = entry
            spelled.key.id.value = value
            spelled.holders = mpids
            return spelled
        }
    }
}
