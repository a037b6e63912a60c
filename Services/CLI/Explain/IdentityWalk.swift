// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Runtime
import Storage
import WireJSON

/// An id of whatever kind: people who ask know only the text.
enum AnyID {}

/// Finds what the stores hold about an id, and goes on from what it finds: install, person, external id, customer id,
/// profile, device.
struct IdentityWalk {
    let app: String
    private let stores: [String: StoreReader]

    /// One line for each row that was found.
    private(set) var facts: [String] = []
    /// Every id that names the same person, profile, install or device.
    private(set) var ids: Set<ID<AnyID>> = []
    private var waiting: [String] = []
    private var seenFacts: Set<String> = []

    /// A shared value must not drag the whole store along.
    private static let most = 200

    init(app: String, stores: [StoreReader]) {
        self.app = app
        self.stores = Dictionary(stores.map { ($0.service, $0) }, uniquingKeysWith: { first, _ in first })
    }

    mutating func start(from id: String) throws {
        visit(id)
        // Only what was asked for is looked up as an identity value: devices share values, and persons must not meet.
        try identityValue(id)
        while let next = waiting.popLast(), facts.count < Self.most {
            try links(next)
            try users(next)
            try profiles(next)
            try sessions(next)
        }
    }

    private mutating func visit(_ id: String?) {
        guard let id, !id.isEmpty, ids.insert(ID(id)).inserted else { return }
        waiting.append(id)
    }

    private mutating func note(_ fact: String) {
        if seenFacts.insert(fact).inserted { facts.append(fact) }
    }

    private func rows(_ service: String, _ sql: String, _ parameters: [SQLValue]) throws -> [SQLRow] {
        try stores[service]?.query(sql, parameters) ?? []
    }

    // MARK: Services

    private mutating func links(_ id: String) throws {
        let installs = try rows(
            "link",
            """
            SELECT install_id, user_id, status, activity, kind, platform FROM installs
            WHERE app = $1 AND (install_id = $2 OR user_id = $2) ORDER BY install_id LIMIT 50
            """, [.text(app), .text(id)])
        for row in installs {
            let user = try row.optionalText(1)
            note(
                "link: install \(try row.text(0)) (\(try row.text(4)), \(try row.text(5))) is \(try row.text(2)), "
                    + "\(user.map { "user \($0)" } ?? "no user"), \(try row.text(3))")
            visit(try row.text(0))
            visit(user)
        }
        let persons = try rows(
            "link",
            """
            SELECT user_id, external_id, is_erased FROM persons
            WHERE app = $1 AND (user_id = $2 OR external_id = $2) LIMIT 50
            """, [.text(app), .text(id)])
        for row in persons {
            let external = try row.optionalText(1)
            let state = try row.integer(2) == 0 ? "" : ", erased"
            note("link: user \(try row.text(0)) is \(external.map { "external id \($0)" } ?? "unlinked")\(state)")
            visit(try row.text(0))
            visit(external)
            if let external { try identityValue(external, type: .customerID) }
        }
    }

    private mutating func users(_ id: String) throws {
        let found = try rows(
            "user",
            """
            SELECT install_id, user_id, phase FROM installations
            WHERE app = $1 AND (install_id = $2 OR user_id = $2) ORDER BY install_id LIMIT 50
            """, [.text(app), .text(id)])
        for row in found {
            let user = try row.optionalText(1)
            note("user: install \(try row.text(0)) is \(try row.text(2))\(user.map { ", user \($0)" } ?? "")")
            visit(try row.text(0))
            visit(user)
        }
    }

    private mutating func identityValue(_ value: String, type: IdentityType? = nil) throws {
        let found = try rows(
            "sync",
            """
            SELECT type, value, holders FROM identities
            WHERE app = $1 AND (value = $2 OR value = $3) ORDER BY type LIMIT 50
            """, [.text(app), .text(value), .text(value.asciiLowercased)])
        for row in found where try type == nil || row.text(0) == type?.rawValue {
            let holders = try row.text(2).split(separator: ",").map(String.init)
            let list = holders.isEmpty ? "nobody" : holders.joined(separator: ", ")
            note("sync: \(try row.text(0)) \(try row.text(1)) is held by \(list)")
            holders.forEach { visit($0) }
        }
    }

    private mutating func profiles(_ id: String) throws {
        let mpid = MPID(id)?.value ?? 0
        let found = try rows(
            "sync",
            """
            SELECT mpid, identities, is_orphaned, user_id, first_seen, last_seen, is_erased FROM profiles
            WHERE app = $1 AND (mpid = $2 OR user_id = $3) LIMIT 50
            """, [.text(app), .integer(mpid), .text(id)])
        for row in found {
            let identities = try WireJSONDecoder().decode([Identity].self, from: Array(row.text(1).utf8))
            let list = identities.map { "\($0.type.rawValue) \($0.value)" }.joined(separator: ", ")
            let user = try row.optionalText(3)
            note(
                "sync: profile \(try row.integer(0)) has \(list.isEmpty ? "no identities" : list)"
                    + (try row.integer(6) != 0 ? ", erased" : row.integer(2) != 0 ? ", orphaned" : "")
                    + (user.map { ", link user \($0)" } ?? "")
                    + ", seen \(Self.time(try row.integer(4))) to \(Self.time(try row.integer(5)))")
            visit(String(try row.integer(0)))
            visit(user)
            // Its customer id is the external id of the link service, if it has one there.
            for identity in identities where identity.type == .customerID { visit(identity.value.text) }
        }
        let devices = try rows(
            "sync",
            """
            SELECT device_id, current_mpid, users FROM devices
            WHERE app = $1 AND (device_id = $2 OR current_mpid = $3) ORDER BY device_id LIMIT 50
            """, [.text(app), .text(id), .integer(mpid)])
        for row in devices {
            let users = try row.text(2).split(separator: ",").compactMap {
                $0.split(separator: ":").first.map(String.init)
            }
            let current = try row.optionalInteger(1).map(String.init)
            note(
                "sync: device \(try row.text(0)) has current user \(current ?? "nobody"); "
                    + "seen there: \(users.joined(separator: ", "))")
            visit(try row.text(0))
            users.forEach { visit($0) }
        }
    }

    private mutating func sessions(_ id: String) throws {
        let found = try rows(
            "verification", "SELECT device_id, state, mpid FROM sessions WHERE app = $1 AND device_id = $2",
            [.text(app), .text(id)])
        for row in found {
            let mpid = try row.optionalInteger(2).map(String.init)
            note("verification: device \(try row.text(0)) is \(try row.text(1))\(mpid.map { ", profile \($0)" } ?? "")")
            visit(mpid)
        }
    }

    private static func time(_ milliseconds: Int64) -> String { Timestamp(milliseconds: milliseconds).rfc3339 }
}
