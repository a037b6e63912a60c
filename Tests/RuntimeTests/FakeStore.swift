// SPDX-License-Identifier: Apache-2.0

import Storage
import TestKit

typealias FakeStore = ServiceStore<FakeService>

extension ServiceStore where Service == FakeService {
    func values() throws -> [String: String] {
        try database.transaction { transaction in
            try transaction.query("SELECT id, value FROM items").reduce(into: [:]) { values, row in
                values[try row.text(0)] = try row.text(1)
            }
        }
    }
}
