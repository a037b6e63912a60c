// SPDX-License-Identifier: Apache-2.0

/// Who decided: which apps file was in force, and which version of the code. An inbox row names it by a small number.
public struct Decider: Sendable, Hashable {
    /// The digest of the apps file and the files it names.
    public var apps: String
    /// The version of the code.
    public var code: String

    public init(apps: String, code: String) {
        self.apps = apps
        self.code = code
    }
}

public enum Deciders {
    /// The decider's number, given now if it has none. To be asked for in the transaction that claims partitions, and
    /// when the apps file has changed.
    ///
    /// - Throws: `conflict` when another replica gives a number at the same time.
    public static func number(of decider: Decider, in transaction: any SQLTransaction) throws(StorageError) -> Int64 {
        let known = { () throws(StorageError) in
            try transaction.query(
                "SELECT number FROM decider WHERE apps = $1 AND code = $2", [.text(decider.apps), .text(decider.code)]
            ).first?.integer(0)
        }
        if let number = try known() { return number }
        try transaction.execute(
            """
            INSERT INTO decider (number, apps, code)
            SELECT COALESCE(MAX(number), 0) + 1, CAST($1 AS TEXT), CAST($2 AS TEXT) FROM decider
            """, [.text(decider.apps), .text(decider.code)])
        return try known() ?? 0
    }
}
