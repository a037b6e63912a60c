// SPDX-License-Identifier: Apache-2.0

import Foundation
import Storage

@testable import Runtime

/// A fresh SQLite store of the fake service; removed when the test lets go of it.
final class FakeStore {
    let directory: URL
    let database: SQLiteDatabase

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "identitybus-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        database = try SQLiteDatabase(path: directory.appending(path: "fake.sqlite").path, synchronous: .normal)
        try Migrator(StorageSchema.migrations + FakeService.migrations).run(on: database)
    }

    deinit {
        database.close()
        try? FileManager.default.removeItem(at: directory)
    }

    func values() throws -> [String: String] {
        try database.transaction { transaction in
            try transaction.query("SELECT id, value FROM items").reduce(into: [:]) { values, row in
                values[try row.text(0)] = try row.text(1)
            }
        }
    }
}
