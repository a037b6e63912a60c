// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite

extension StorageError {
    /// What one of SQLite's extended result codes means to the caller.
    ///
    /// A damaged or unreadable file counts as `unavailable`: the request is not to blame, and must not be given up.
    static func sqlite(code: CInt, message: String) -> StorageError {
        let kind: Kind =
            switch ResultCode(rawValue: code) {
            case .SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID: .conflict
            default: kind(primaryCode: code & 0xff)
            }
        return StorageError(kind: kind, message: message, sqlState: String(code))
    }

    static func sqlite(_ error: DatabaseError) -> StorageError {
        let code = error.extendedResultCode.rawValue
        return sqlite(code: code, message: error.message ?? String(cString: sqlite3_errstr(code)))
    }

    /// The same error as the answer to a COMMIT. After a failed write to the log the commit record may be in it all
    /// the same, and a recovery may find it there.
    static func sqliteCommit(_ error: DatabaseError) -> StorageError {
        let failure = sqlite(error)
        return error.resultCode.rawValue == SQLITE_IOERR ? failure.atCommit : failure
    }

    private static func kind(primaryCode: CInt) -> Kind {
        switch primaryCode {
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_INTERRUPT, SQLITE_IOERR,
            SQLITE_CORRUPT, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_PERM, SQLITE_NOTADB,
            SQLITE_INTERNAL, SQLITE_NOLFS, SQLITE_AUTH:
            .unavailable
        default:
            .invalid
        }
    }
}
