// SPDX-License-Identifier: Apache-2.0

import CLibpq

extension StorageError {
    /// What an error answer of the server means to the caller.
    ///
    /// Only the primary message is kept: the detail lines quote the values of keys.
    static func postgreSQL(_ result: OpaquePointer) -> StorageError {
        let state = field(result, "C") ?? ""
        let message = field(result, "M") ?? String(cString: PQresultErrorMessage(result))
        if isStalePlan(result, state) {
            return .unavailable("the tables changed under a prepared statement", sqlState: state)
        }
        // Data exceptions quote the value that they complain about.
        let safeMessage = state.hasPrefix("22") ? "a value does not fit its column or function" : message
        return StorageError(kind: kind(sqlState: state), message: safeMessage, sqlState: state)
    }

    /// Whether the connection cannot be used after this error, although it may still look alive.
    var endsPostgreSQLSession: Bool {
        guard let sqlState, kind == .unavailable else { return false }
        // Plans and prepared statements that no longer fit, a server that became read-only, a session that was ended.
        return ["0A000", "26000", "25006", "25P03", "25P04", "3F000"].contains(sqlState) || sqlState.hasPrefix("57P")
            || sqlState.hasPrefix("08")
    }

    private static func kind(sqlState: String) -> Kind {
        switch sqlState {
        case "40001", "40P01", "55P03", "23505", "23P01": return .conflict
        // Statement gone, read-only server, idle or running for too long, no such database, no right, no such schema.
        case "26000", "25006", "25P03", "25P04", "3D000", "42501", "3F000", "40003": return .unavailable
        default: break
        }
        switch sqlState.prefix(2) {
        // Connection, authorisation, resources, operator, system, configuration, damage.
        case "08", "28", "53", "57", "58", "F0", "XX", "": return .unavailable
        default: return .invalid
        }
    }

    /// A migration by another replica changed what a prepared statement returns. Preparing it again mends that.
    private static func isStalePlan(_ result: OpaquePointer, _ state: String) -> Bool {
        state == "0A000" && field(result, "R") == "RevalidateCachedQuery"
    }

    /// - Parameter letter: a field's letter in the protocol: libpq's PG_DIAG macros, which Swift does not import.
    ///   C is the SQLSTATE, M the primary message, R the server's function.
    private static func field(_ result: OpaquePointer, _ letter: Unicode.Scalar) -> String? {
        PQresultErrorField(result, CInt(letter.value)).map { String(cString: $0) }
    }
}
