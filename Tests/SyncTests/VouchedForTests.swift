// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync

/// Whatever devices do: who was verified once is found again, and nobody else is on their profile.
@Suite struct VouchedForTests {
    /// S47 to S76. What is compared are answers alone: no rule of the page is told again here.
    @Test func noDeviceChangesWhomAVerifiedLoginFinds() throws {
        let settings = RandomCommands.settings.filter { $0.strategy != .bestMatch }
        for number in 0..<UInt64(600) {
            var random = SplitMix64(seed: testSeed &+ number)
            let world = World(settings[Int(number % UInt64(settings.count))])
            world.verification = VerificationSettings(mode: .enforce)
            var profiles: [String: MPID] = [:]
            var seen: [MPID] = []
            // Who was verified last on each device.
            var verified: [DeviceID: String] = [:]
            for _ in 0..<40 {
                let device = ["anna's", "bob's", "evil"].randomElement(using: &random).map { DeviceID($0) } ?? "evil"
                if Bool.random(using: &random) {
                    attack(world, device, seen, &random)
                } else {
                    let person = Bool.random(using: &random) ? "anna" : "bob"
                    world.principal = Principal(kind: .service, scopes: [])
                    let found = world.login(names(person, &random), on: device)?.mpid
                    let trace = Comment(rawValue: "seed \(testSeed), sequence \(number): \(person)")
                    let mpid = try #require(found, trace)
                    try #require(profiles[person] ?? mpid == mpid, trace)
                    profiles[person] = mpid
                    verified[device] = person
                }
                seen = world.state.profiles.keys.map(\.id).sorted()
                #expect(Set(profiles.values).count == profiles.count, "two people are one")
                for (person, mpid) in profiles {
                    for row in world.state.devices.values where row.current == mpid {
                        #expect(verified[row.key.id] == person, "a device that \(person) did not use")
                    }
                }
            }
        }
    }

    /// What a backend signs of a person, with what the device says of itself.
    private func names(_ person: String, _ random: inout SplitMix64) -> [String: String?] {
        var names: [String: String?] = ["customerid": person, "ios_idfv": "idfv-1"]
        if Bool.random(using: &random) { names["ios_idfv"] = nil }
        return names
    }

    /// The key from the app, with everything that it may guess or read.
    private func attack(_ world: World, _ device: DeviceID, _ seen: [MPID], _ random: inout SplitMix64) {
        world.principal = Principal(kind: .apiKey("sdk"), scopes: [.identitySync])
        var request = SyncRequest(deviceId: DeviceID(device.text), knownIdentities: [:])
        for (type, values) in [
            ("customerid", ["anna", "bob"]), ("email", ["x@mail"]), ("other", ["o"]),
            ("ios_idfv", ["idfv-1", "idfv-2"]),
            ("device_application_stamp", ["stamp-1"]),
        ] where Int.random(in: 0..<3, using: &random) == 0 {
            request.knownIdentities[type] = values.randomElement(using: &random)
        }
        (request.name, request.clearAnonymousUser) = ("Mallory", true)
        let mpids = (0..<2).compactMap { _ in seen.randomElement(using: &random) }
        switch Int.random(in: 0..<6, using: &random) {
        case 0, 1: world.run(.move(.identify, request))
        case 2: world.run(.move(.login, request))
        case 3: world.run(.move(.logout, request))
        case 4 where mpids.count == 2:
            world.run(.alias(AliasUsers(sourceMPID: mpids[0], destinationMPID: mpids[1])))
        default:
            guard let mpid = mpids.first else { return }
            let type = ["customerid", "email", "ios_idfv", "push_token"].randomElement(using: &random) ?? "email"
            let value = type == "customerid" ? "anna" : type == "ios_idfv" ? "idfv-1" : "mine"
            world.run(
                .modify(ModifyIdentities(mpid: mpid, changes: [.init(identityType: type, newValue: value)])))
        }
    }
}
