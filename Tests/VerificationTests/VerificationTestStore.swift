// SPDX-License-Identifier: Apache-2.0

import Storage
import TestKit

@testable import Verification

typealias VerificationTestStore = ServiceStore<VerificationService>

extension ServiceStore where Service == VerificationService {
    /// Every row of all tables, as it stands; of the counters their sums.
    func rows() throws -> [[SQLValue]] {
        try rows(["sessions ORDER BY app, device_id", "login_sagas ORDER BY forward_id", "people ORDER BY app, mpid"])
            + database.transaction { transaction in
                try transaction.query(
                    """
                    SELECT app, method, reason, key_id, CAST(SUM(count) AS BIGINT), MAX(last_used) FROM verification_counts
                    GROUP BY app, method, reason, key_id ORDER BY app, method, reason, key_id
                    """
                ).map(\.values)
            }
    }

    func run(_ steps: [RandomCommands.Step], shard: Int64 = 0) throws -> [VerificationDecider.Decision] {
        try run(VerificationService(counterShard: shard), steps.map { ($0.command, $0.context) })
    }
}
