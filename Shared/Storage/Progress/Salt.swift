// SPDX-License-Identifier: Apache-2.0

/// 32 random bytes that a store makes once and keeps: what keys the ids and codes that its service gives out.
///
/// It is part of the store, so it outlives every key of the deployment, and a copy that is put back decides again with
/// the salt that it decided with.
public enum Salt {
    public static let byteCount = 32

    /// The store's salt, made now if it has none. To be called in the transaction that claims partitions: whoever holds
    /// a valid claim then knows the salt of the store that it is valid in.
    ///
    /// - Throws: `conflict` when another replica makes it at the same time.
    public static func read(in transaction: any SQLTransaction) throws(StorageError) -> [UInt8] {
        if let known = try stored(transaction) { return known }
        var generator = SystemRandomNumberGenerator()
        let made = (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        try transaction.execute(
            "INSERT INTO salt (id, value) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", [.blob(made)])
        guard let known = try stored(transaction) else {
            throw StorageError(kind: .conflict, message: "another replica makes the salt")
        }
        return known
    }

    private static func stored(_ transaction: any SQLTransaction) throws(StorageError) -> [UInt8]? {
        try transaction.query("SELECT value FROM salt WHERE id = 1").first?.blob(0)
    }
}
