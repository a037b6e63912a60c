// SPDX-License-Identifier: Apache-2.0

/// A running transaction on PostgreSQL. See ``SQLTransaction`` for the rules that both engines keep.
final class PostgreSQLTransaction: SQLTransaction {
    let engine = SQLEngine.postgresql
    private let connection: PostgreSQLConnection
    /// Travels with the first statement, which saves a round trip; nil once it was sent.
    private var beginning: String?
    /// The first failure; nothing more is run after it.
    private(set) var failure: StorageError?

    init(_ connection: PostgreSQLConnection, beginning: String) {
        self.connection = connection
        self.beginning = beginning
    }

    /// Whether the server knows of this transaction.
    var hasBegun: Bool { beginning == nil }

    /// Makes later use of an escaped reference an error instead of a statement outside of any transaction.
    func end() {
        failure = failure ?? .invalid("the transaction has ended")
    }

    func query(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> [SQLRow] {
        try queryEach(sql, [parameters]).first ?? []
    }

    func queryEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [[SQLRow]] {
        var answers: [[SQLRow]] = []
        answers.reserveCapacity(parameterSets.count)
        try run(sql, parameterSets) { (statement, result) throws(StorageError) in
            answers.append(try statement.rows(result))
        }
        return answers
    }

    func execute(_ sql: String, _ parameters: [SQLValue]) throws(StorageError) -> Int {
        try executeEach(sql, [parameters]).first ?? 0
    }

    func executeEach(_ sql: String, _ parameterSets: [[SQLValue]]) throws(StorageError) -> [Int] {
        var counts: [Int] = []
        counts.reserveCapacity(parameterSets.count)
        try run(sql, parameterSets) { (_, result) throws(StorageError) in
            counts.append(PostgreSQLStatement.affectedRows(result))
        }
        return counts
    }

    private func run(
        _ sql: String, _ sets: [[SQLValue]],
        receive: (PostgreSQLStatement, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        if let failure { throw failure }
        guard !sets.isEmpty else { return }
        do {
            let preamble = beginning
            // From here on the server may have seen it, whatever fails.
            beginning = nil
            let (statement, didSend) = try connection.statement(sql, after: preamble)
            try connection.run(statement, sets, after: didSend ? nil : preamble) { (result) throws(StorageError) in
                try receive(statement, result)
            }
        } catch {
            failure = error
            throw error
        }
    }
}
