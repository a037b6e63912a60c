// SPDX-License-Identifier: Apache-2.0

internal import CLibpq
internal import GRDBSQLite

/// The libraries that speak to databases.
public enum StorageLibraries {
    /// Such as `15.18`.
    public static var libpq: String {
        let number = PQlibVersion()
        return "\(number / 10_000).\(number % 10_000)"
    }

    /// Such as `3.40.1`.
    public static var sqlite: String { String(cString: sqlite3_libversion()) }
}
