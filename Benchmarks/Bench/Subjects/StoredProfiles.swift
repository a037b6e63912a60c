// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Runtime
import Storage

/// Fills the sync service's store with profiles of known users, as if they had logged in some time ago: each has a
/// customer id, an e-mail and, as far as there are devices, is the current user of one. Written straight into the
/// tables: commands would take hours.
enum StoredProfiles {
    /// Any time before now, in milliseconds since 1970.
    private static let seen = Int64(1_770_000_000_000)
    private static let chunk = 10_000

    /// - Parameter stage: on which nothing runs yet.
    static func load(_ count: Int, into stage: Stage) throws {
        // The service makes its tables.
        try stage.start().stop()
        let database = try stage.store(of: "sync")
        defer { database.close() }
        let start = ContinuousClock.now
        for first in stride(from: 0, to: count, by: chunk) {
            let numbers = first..<min(first + chunk, count)
            try database.transaction { try insert(numbers, in: $0) }
            Progress.show(numbers.upperBound, of: count, "profiles", since: start)
        }
        if stage.engine == .postgresql {
            // As autovacuum would have done meanwhile.
            for table in ["profiles", "identities", "devices"] {
                try database.transaction { _ = try $0.execute("ANALYZE \(table)") }
            }
        }
    }

    // MARK: What is in a profile

    static func identities(_ number: Int) -> [Identity] {
        let digits = CommandFactory.padded(number)
        return [
            Identity(.customerID, IdentityValue("customer-\(digits)")),
            Identity(.email, IdentityValue("customer-\(digits)@shop.example")),
        ]
    }

    static func stamp(_ device: Int) -> Identity {
        Identity(.deviceApplicationStamp, IdentityValue("stamp-0000-4000-8000-" + CommandFactory.padded(device)))
    }

    static func mpid(_ number: Int) throws -> MPID {
        var mixer = SeededGenerator(seed: UInt64(number))
        guard let mpid = MPID(Int64(bitPattern: mixer.next())) else { throw BenchError("profile \(number) has MPID 0") }
        return mpid
    }

    // MARK: Rows

    private static func insert(_ numbers: Range<Int>, in transaction: any SQLTransaction) throws {
        let app = SQLValue.text(Stage.app.text)
        let profiles = try numbers.map { (number: $0, mpid: try mpid($0), identities: identities($0)) }
        try transaction.executeEach(
            """
            INSERT INTO profiles (app, mpid, identities, first_seen, last_seen, given_at, is_orphaned, is_erased,
            growth)
            VALUES ($1, $2, $3, $4, $4, $5, 0, 0, 0)
            """,
            profiles.sorted { $0.mpid < $1.mpid }.map { profile in
                let moments = profile.identities.map { _ in "\(seen)" }.joined(separator: ",")
                return [
                    app, .integer(profile.mpid.value), .blob(profile.identities.storedBytes), .integer(seen),
                    .text(moments),
                ]
            })
        let values = profiles.flatMap { profile in
            profile.identities.map { identity in
                (
                    key: Array(SHA256.hash(data: Array(identity.value.text.utf8))), identity: identity,
                    holder: profile.mpid
                )
            }
        }
        try transaction.executeEach(
            "INSERT INTO identities (app, type, value_key, value, holders, is_told) VALUES ($1, $2, $3, $4, $5, 0)",
            values.sorted { ($0.identity.type.rawValue, $0.key[0]) < ($1.identity.type.rawValue, $1.key[0]) }.map {
                [
                    app, .text($0.identity.type.rawValue), .blob($0.key), .text($0.identity.value.text),
                    .text($0.holder.description),
                ]
            })
        try transaction.executeEach(
            """
            INSERT INTO devices (app, device_id, current_mpid, users, identities, last_move)
            VALUES ($1, $2, $3, $4, $5, 0)
            """,
            profiles.filter { $0.number < SyncWorkload.devices }.map { profile in
                [
                    app, .text(SyncWorkload.deviceID(profile.number).text), .integer(profile.mpid.value),
                    .text("\(profile.mpid):\(seen):\(seen)"), .blob([Identity]().storedBytes),
                ]
            })
    }
}
