// SPDX-License-Identifier: Apache-2.0

public import Apps
import Contracts
public import Storage

/// A type of which the apps file says something else than the store.
struct FoldingChange: Sendable, Hashable {
    var app: AppID
    var type: IdentityType
    /// By the file.
    var ignoresCase: Bool

    private var kept: String { ignoresCase ? "with its case" : "without its case" }
    private var wanted: String { ignoresCase ? "ignores it" : "tells it apart" }

    /// S108.
    var refusal: AppsFile.Problem {
        AppsFile.Problem(
            "app \(app), sync: the store has values of \(type.rawValue) \(kept), and this file \(wanted) "
                + "(caseInsensitiveIdentities, or the strategy's own list); undo that, or stop the sync service and run: "
                + "identitybus rekey --app \(app)")
    }

    /// S110.
    var disagreement: AppsFile.Problem {
        AppsFile.Problem(
            "app \(app), sync: another replica has a file by which values of \(type.rawValue) are stored \(kept), and this "
                + "file \(wanted); give all replicas one file")
    }
}

/// Under which folding the values of each app are stored: the types whose case is ignored, a row for each app that was
/// ever in force. What is decided relies on it through its claim, see ``SyncService/refusal(of:in:)``.
struct Foldings {
    let transaction: any SQLTransaction

    /// - Returns: `nil` for an app that was never in force.
    func types(of app: AppID) throws -> Set<IdentityType>? {
        try transaction.query("SELECT types FROM foldings WHERE app = $1", [.text(app.text)]).first
            .map { try Self.types($0.text(0)) }
    }

    /// Where file and store differ. An app that was never in force gets its row.
    ///
    /// The rows stay as they are until the transaction ends: a claim that found its file in them is seen by whoever changes
    /// them, and ended.
    func changes(by apps: AppDirectory) throws -> [FoldingChange] {
        let lock = transaction.engine == .postgresql ? " FOR SHARE" : ""
        var stored: [AppID: Set<IdentityType>] = [:]
        for row in try transaction.query("SELECT app, types FROM foldings\(lock)") {
            stored[AppID(try row.text(0))] = try Self.types(row.text(1))
        }
        var changes: [FoldingChange] = []
        for app in apps.ids {
            guard let settings = apps[app]?.sync else { continue }
            guard let types = stored[app] else {
                try transaction.execute(
                    "INSERT INTO foldings (app, types) VALUES ($1, $2)",
                    [.text(app.text), .text(Self.text(settings.foldedIdentities))])
                continue
            }
            changes += types.symmetricDifference(settings.foldedIdentities).sorted().map {
                FoldingChange(app: app, type: $0, ignoresCase: settings.foldedIdentities.contains($0))
            }
        }
        return changes
    }

    /// Whether the app has values of the type.
    func hasValues(_ change: FoldingChange) throws -> Bool {
        let found = try transaction.query(
            "SELECT 1 FROM identities WHERE app = $1 AND type = $2 LIMIT 1",
            [.text(change.app.text), .text(change.type.rawValue)])
        return !found.isEmpty
    }

    /// Replicas by other files decide nothing more: their claims are ended, after their last batches.
    func write(_ changes: [FoldingChange]) throws {
        for (app, changes) in Dictionary(grouping: changes, by: \.app) {
            var types = try types(of: app) ?? []
            for change in changes {
                if change.ignoresCase { types.insert(change.type) } else { types.remove(change.type) }
            }
            try transaction.execute(
                "UPDATE foldings SET types = $2 WHERE app = $1", [.text(app.text), .text(Self.text(types))])
        }
        try Progress.endClaims(in: transaction)
    }

    private static func text(_ types: Set<IdentityType>) -> String {
        types.sorted().map(\.rawValue).joined(separator: ",")
    }

    static func types(_ text: String) throws(StorageError) -> Set<IdentityType> {
        var types: Set<IdentityType> = []
        for name in text.split(separator: ",") {
            guard let type = IdentityType(rawValue: String(name)) else {
                throw StorageError(kind: .invalid, message: "column types of foldings holds a type that is not known")
            }
            types.insert(type)
        }
        return types
    }
}

extension SyncService {
    /// S108, S109. Alone, as migrations are: each statement sees what was committed before it.
    public static func refusal(of apps: AppDirectory, on database: any SQLDatabase) throws -> AppsFile.Problem? {
        do {
            try database.exclusiveTransaction { transaction in
                let foldings = Foldings(transaction: transaction)
                let changes = try foldings.changes(by: apps)
                func refuse() throws {
                    if let change = try changes.first(where: foldings.hasValues) { throw change.refusal }
                }
                // Before anything is locked: a file that is refused holds nobody up.
                try refuse()
                guard !changes.isEmpty else { return }
                try foldings.write(changes)
                // What was decided until the claims were ended.
                try refuse()
            }
            return nil
        } catch let problem as AppsFile.Problem {
            return problem
        }
    }

    /// S110.
    public static func refusal(of apps: AppDirectory, in transaction: any SQLTransaction) throws -> AppsFile.Problem? {
        let foldings = Foldings(transaction: transaction)
        return try foldings.changes(by: apps).first.map { change in
            try foldings.hasValues(change) ? change.refusal : change.disagreement
        }
    }
}
