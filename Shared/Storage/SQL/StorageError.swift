// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Why the store did not do what it was asked.
///
/// The description may be logged: it never holds parameter values, row values, passwords or connection URLs.
public struct StorageError: Error, Sendable, Hashable {
    /// What the caller should do about it.
    public enum Kind: Sendable, Hashable {
        /// A concurrent writer won (serialisation failure, deadlock, unique violation) or holds a lock for too long.
        /// Read again, decide again.
        case conflict
        /// The store cannot work now: connection lost, server stopping, busy, full, damaged, access refused, and all
        /// else that an operator or time has to mend. Nothing is wrong with the request: back off and try again.
        case unavailable
        /// These partitions were claimed by another replica, or the store no longer stands where this replica left it.
        /// Roll back and let go of them.
        case fenced([TopicPartition])
        /// The statement or its values are wrong. Trying again cannot help.
        case invalid
    }

    public let kind: Kind
    public let message: String
    /// PostgreSQL's five-character SQLSTATE or SQLite's extended result code in decimal.
    public let sqlState: String?
    /// Whether a commit was sent and its answer lost. The transaction may or may not have happened: look, then act.
    public let outcomeUnknown: Bool

    public init(kind: Kind, message: String, sqlState: String? = nil, outcomeUnknown: Bool = false) {
        self.kind = kind
        self.message = message
        self.sqlState = sqlState
        self.outcomeUnknown = outcomeUnknown
    }

    static func invalid(_ message: String) -> StorageError {
        StorageError(kind: .invalid, message: message)
    }

    @usableFromInline
    static func unknownWord(in column: StaticString) -> StorageError {
        .invalid("column \(column) holds a word that is not known")
    }

    static func noColumn(_ column: Int, of count: Int) -> StorageError {
        .invalid("column \(column) was asked of a row with \(count) columns")
    }

    static func mismatch(_ column: Int, _ value: SQLValue, _ wanted: String) -> StorageError {
        .invalid("column \(column) holds \(value.typeName), not \(wanted)")
    }

    static func unavailable(_ message: String, sqlState: String? = nil) -> StorageError {
        StorageError(kind: .unavailable, message: message, sqlState: sqlState)
    }

    /// Whether this conflict came of a lock that was not free in time: nobody has won yet, and waiting is done.
    public var isLockTimeout: Bool { sqlState == "55P03" }

    /// The same error as the answer to a COMMIT: unless the store said that it refused, nobody knows.
    var atCommit: StorageError {
        guard kind == .unavailable else { return self }
        return StorageError(kind: kind, message: message, sqlState: sqlState, outcomeUnknown: true)
    }
}

extension StorageError: CustomStringConvertible {
    public var description: String {
        let name =
            switch kind {
            case .conflict: "conflict"
            case .unavailable: "unavailable"
            case .fenced: "fenced"
            case .invalid: "invalid"
            }
        let state = sqlState.map { " [\($0)]" } ?? ""
        return "storage \(name)\(state): \(message)" + (outcomeUnknown ? " (outcome of the commit unknown)" : "")
    }
}
