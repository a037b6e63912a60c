// SPDX-License-Identifier: Apache-2.0

/// What can be put into a pipeline.
enum PostgreSQLRequest {
    /// Prepares a statement and lets the server name its types.
    case prepare(name: String, sql: String)
    case describe(name: String)
    /// A statement without parameters whose rows are not wanted.
    case command(String)
}
