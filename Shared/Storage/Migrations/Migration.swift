// SPDX-License-Identifier: Apache-2.0

/// One step in the history of a schema.
///
/// A migration that has landed is never edited: write a new one. Statements are run one by one, on both engines, so
/// they use what both understand: `TEXT`, `BIGINT` and `BYTEA` columns, `CREATE TABLE`, `CREATE INDEX`,
/// `ALTER TABLE … ADD COLUMN`.
public struct Migration: Sendable, Hashable {
    /// Orders the migrations and names them for ever. 1 to 99 belong to Storage, services start at 100.
    public let number: Int
    public let name: String
    public let statements: [String]

    public init(number: Int, name: String, statements: [String]) {
        self.number = number
        self.name = name
        self.statements = statements
    }

    /// Notices that a landed migration was edited.
    var checksum: String {
        String(Fingerprint.of(statements), radix: 16)
    }
}
