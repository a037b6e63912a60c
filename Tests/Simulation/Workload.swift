// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import TestKit
import WireJSON

/// What a client wants to send, before it knows what was answered to it.
struct PlannedCommand {
    enum Kind: Equatable {
        case fresh
        /// An earlier one again, byte by byte.
        case again(of: Int)
        /// Something else, under the id of an earlier one.
        case reused(of: Int)
        case dryRun
        /// No message at all.
        case poison
        /// Signed by somebody who has not the key.
        case forged
    }

    var number: Int
    /// Microseconds after the beginning.
    var time: Int64
    var kind: Kind
    var seed: UInt64
}

/// A message before it is signed.
struct Draft {
    var type: String
    var subject: String
    var data: JSONValue
    var isInternal = false
}

/// What answers said, to be used in later commands.
struct Facts {
    var codes: [String] = []
    var users: [String] = []
    var mpids: [String] = []
}

/// Commands about few people and devices, so that they meet. Written as JSON, as foreign producers do it.
struct Workload: RandomSource {
    let service: SimulatedService
    var random: SplitMix64

    init(_ service: SimulatedService, seed: UInt64) {
        self.service = service
        random = SplitMix64(seed: seed)
    }

    /// Mostly the newest.
    private mutating func recent(_ values: [String]) -> String? { values.suffix(5).randomElement(using: &random) }

    mutating func draft(_ facts: Facts) -> Draft {
        switch service {
        case .link: link(facts)
        case .user: user(facts)
        case .sync: sync(facts)
        case .verification: verification(facts)
        }
    }

    private mutating func install() -> String { pick(["i1", "i1", "i1", "i2", "i3", "i4"]) }
    private mutating func externalID() -> String { pick(["anna", "anna", "anna", "bert", "carl"]) }

    private mutating func device() -> JSONValue {
        ["kind": .string(pick(["phone", "phone", "tablet", "other"])), "platform": "p"]
    }

    private mutating func link(_ facts: Facts) -> Draft {
        let install = install()
        let external = externalID()
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40:
            return Draft(
                type: "identity.link.request.v1", subject: external,
                data: ["installId": .string(install), "externalId": .string(external)])
        case 40..<55:
            return Draft(
                type: "identity.link.register-install.v1", subject: install,
                data: [
                    "installId": .string(install), "device": device(), "user": .string(pick(["new", "none"])),
                ], isInternal: true)
        case 55..<72:
            return Draft(
                type: "identity.link.establish.v1", subject: external,
                data: [
                    "installId": .string(install), "device": device(), "externalId": .string(external),
                    "mode": .string(pick(["create", "link-existing-user"])),
                ], isInternal: true)
        case 72..<80: return query(install)
        case 80..<87:
            return Draft(
                type: "identity.link.detach-install.v1", subject: install, data: ["installId": .string(install)],
                isInternal: true)
        case 87..<94:
            return Draft(
                type: "identity.link.set-install-status.v1", subject: install,
                data: ["installId": .string(install), "status": .string(pick(["enabled", "enabled", "disabled"]))])
        default:
            let user = recent(facts.users) ?? "nobody"
            return Draft(type: "identity.link.erase-user.v1", subject: user, data: ["userId": .string(user)])
        }
    }

    func query(_ install: String) -> Draft {
        Draft(
            type: "identity.link.query.v1", subject: install, data: ["installId": .string(install)], isInternal: true)
    }

    static let installs = ["i1", "i2", "i3", "i4"]

    private mutating func user(_ facts: Facts) -> Draft {
        let install = install()
        let data: JSONObject = ["installId": .string(install)]
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<28:
            let external = externalID()
            return Draft(
                type: "identity.user.request-auth-code.v1", subject: external, data: ["externalId": .string(external)])
        case 28..<62:
            var data = data
            data["device"] = device()
            if chance(65) {
                data["authCode"] = .string(recent(facts.codes) ?? "unknown")
            } else {
                data["appSecret"] = "demo-app-secret"
                data["linking"] = "none"
            }
            return Draft(type: "identity.user.create.v1", subject: install, data: .object(data))
        case 62..<76:
            var data = data
            data["authCode"] = .string(recent(facts.codes) ?? "unknown")
            return Draft(type: "identity.user.link.v1", subject: install, data: .object(data))
        case 76..<88: return Draft(type: "identity.user.reset.v1", subject: install, data: .object(data))
        default: return Draft(type: "identity.user.get.v1", subject: install, data: .object(data))
        }
    }

    private mutating func sync(_ facts: Facts) -> Draft {
        let device = pick(["d1", "d1", "d2", "d3"])
        var identities: JSONObject = [:]
        if chance(60) { identities["customerid"] = .string(pick(["anna", "bob"])) }
        if chance(40) { identities["email"] = .string(pick(["x@mail", "z@mail"])) }
        if chance(40) { identities["ios_idfv"] = .string(pick(["idfv-1", "idfv-2"])) }
        let mpid = recent(facts.mpids) ?? "17"
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<65:
            let name = pick(["identify", "login", "login", "logout", "search"])
            return Draft(
                type: "identity.sync.\(name).v1", subject: device,
                data: ["deviceId": .string(device), "knownIdentities": .object(identities)])
        case 65..<82:
            return Draft(
                type: "identity.sync.modify.v1", subject: device,
                data: [
                    "mpid": .string(mpid), "deviceId": .string(device),
                    "changes": [["identityType": "email", "newValue": .string(pick(["x@mail", "y@mail"]))]],
                ])
        case 82..<92:
            let other = recent(facts.mpids) ?? "18"
            return Draft(
                type: "identity.sync.alias.v1", subject: other,
                data: ["sourceMPID": .string(mpid), "destinationMPID": .string(other)])
        default:
            return Draft(
                type: "identity.sync.get-users.v1", subject: device, data: ["deviceId": .string(device)])
        }
    }

    private mutating func verification(_ facts: Facts) -> Draft {
        let device = pick(["d1", "d1", "d2", "d3"])
        let user = pick(["anna", "berta"])
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(user.utf8), using: SymmetricKey(data: Array(Kit.tokenSecret.utf8)))
        let token = chance(85) ? Data(code).base64EncodedString() : "wrong"
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<55:
            return Draft(
                type: "identity.verification.login.v1", subject: device,
                data: ["deviceId": .string(device), "userId": .string(user), "userAuthToken": .string(token)])
        case 55..<68:
            return Draft(
                type: "identity.verification.logout.v1", subject: device, data: ["deviceId": .string(device)])
        case 68..<80:
            return Draft(
                type: "identity.verification.check.v1", subject: user,
                data: ["userId": .string(user), "userAuthToken": .string(token)])
        case 80..<86: return Draft(type: "identity.verification.usage.v1", subject: "usage", data: [:])
        default:
            return Draft(
                type: "identity.verification.get-session.v1", subject: device, data: ["deviceId": .string(device)])
        }
    }
}
