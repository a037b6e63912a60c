// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Sync

typealias SyncTestStore = ServiceStore<SyncService>

extension ServiceStore where Service == SyncService {
    /// Every row of all tables, as it stands.
    func rows() throws -> [[SQLValue]] {
        try rows([
            "profiles ORDER BY app, mpid", "identities ORDER BY app, type, value_key",
            "devices ORDER BY app, device_id",
            "aliases ORDER BY app, alias_id", "linked_users ORDER BY app, user_key",
            "erasures ORDER BY app, source, command_id", "erasure_forwards ORDER BY app, forward_id",
            "certificates ORDER BY app, mpid",
        ])
    }

    /// The profiles and the aliases that a command may name.
    func known() throws -> ([MPID], [AliasID: [MPID]]) {
        try database.transaction { transaction in
            let profiles = try transaction.query("SELECT mpid FROM profiles ORDER BY mpid").map {
                try #require(MPID($0.integer(0)))
            }
            var aliases: [AliasID: [MPID]] = [:]
            for row in try transaction.query("SELECT alias_id, source_mpid, destination_mpid FROM aliases") {
                aliases[AliasID(try row.text(0))] = try [1, 2].map { try #require(MPID(row.integer($0))) }
            }
            return (profiles, aliases)
        }
    }

    /// When each profile was heard of last, and each device.
    func heard() throws -> ([MPID: Int64], [DeviceID: Int64]) {
        try database.transaction { transaction in
            let profiles = try Profile.table.find("app = $1", [.text("demo")], in: transaction)
            let devices = try DeviceRecord.table.find("app = $1", [.text("demo")], in: transaction)
            return (
                Dictionary(uniqueKeysWithValues: profiles.map { ($0.mpid, $0.quietSince) }),
                Dictionary(uniqueKeysWithValues: devices.map { ($0.key.id, $0.quietSince) })
            )
        }
    }

    /// What each profile has.
    func held() throws -> [MPID: [Identity]] {
        try database.transaction { transaction in
            let rows = try transaction.query("SELECT mpid, identities FROM profiles")
            return Dictionary(
                uniqueKeysWithValues: try rows.map { row in
                    let identities = try [Identity](storedBytes: row.blob(1))
                    return (try #require(MPID(row.integer(0))), identities)
                })
        }
    }

    /// What profiles say of themselves, and by what devices are known: identities, names, the link service's users. And whom
    /// that one has yet to forget.
    func liveTexts() throws -> [String] {
        try database.transaction { transaction in
            func texts(_ identities: [UInt8]) throws -> [String] {
                try [Identity](storedBytes: identities).map(\.value.text)
            }
            let profiles = "SELECT identities, name, user_id, link_external_id, former_name FROM profiles"
            let said = try transaction.query(profiles).flatMap { row in
                try texts(row.blob(0)) + (1...4).compactMap { try row.optionalText($0) }
            }
            let barriers = "SELECT barriers FROM profiles WHERE barriers IS NOT NULL"
            let barred = try transaction.query(barriers).flatMap { row in
                try [Barrier](storedBytes: row.blob(0)).map(\.identity.value.text)
            }
            let devices = try transaction.query("SELECT identities FROM devices")
            let asked = try transaction.query("SELECT persons FROM erasures").flatMap { row in
                try [String: ForgetPerson](storedBytes: row.blob(0)).values
            }
            return try said + barred + devices.flatMap { try texts($0.blob(0)) }
                + asked.flatMap { [$0.userId?.text, $0.externalId?.text].compactMap(\.self) }
        }
    }

    /// The users that certificates name.
    func certifiedUsers() throws -> [String] {
        try database.transaction { transaction in
            try ["erasures", "certificates"].flatMap { table in
                try transaction.query("SELECT certificate FROM \(table)").flatMap { row in
                    let certificate = try ErasureCertificate(storedBytes: row.blob(0))
                    return certificate.subject.userIds.map(\.text)
                }
            }
        }
    }

    func run(_ steps: [RandomCommands.Step]) throws -> [SyncDecider.Decision] {
        try run(SyncService(aliasDelay: .seconds(1)), steps.map { ($0.command, $0.context) })
    }
}
