// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

/// Answers dry runs that have waited for too long. A reply stands in the store until it is delivered: who owns the first
/// partition after a crash sends it once more.
struct LateDryRuns {
    /// Whose replies the publisher has.
    private var sent: Set<Scoped<String>> = []

    /// - Parameters:
    ///   - isDelivered: whether all that the publisher had is delivered.
    ///   - end: writes down the replies of those whose time is over.
    ///   - limit: of the replies.
    /// - Returns: the replies to publish, as the store has them.
    mutating func step(
        isDelivered: Bool, limit: Int, on database: any SQLDatabase, end: (any SQLTransaction) throws -> Void
    ) throws -> [[UInt8]] {
        let delivered = isDelivered ? sent : []
        let ended = try database.transaction { transaction in
            for id in delivered.sorted() { try DryRuns.remove(app: id.app, id: id.id, in: transaction) }
            try end(transaction)
            return try DryRuns.ended(limit: limit, in: transaction)
        }
        sent.subtract(delivered)
        return ended.filter { sent.insert(Scoped(app: $0.app, id: $0.id)).inserted }.map(\.message)
    }

    /// Another replica owns the first partition.
    mutating func forget() { sent = [] }
}
