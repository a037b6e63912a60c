// SPDX-License-Identifier: Apache-2.0

import GRDB

@testable import Storage

/// A connection that does not care for the lock file, as a person with a command line tool would open.
final class RawSQLite {
    private let queue: DatabaseQueue

    init(_ path: String) throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        queue = try DatabaseQueue(path: path, configuration: configuration)
    }

    func run(_ sql: String) {
        try? queue.unsafeReentrantWrite { try $0.execute(sql: sql) }
    }
}
