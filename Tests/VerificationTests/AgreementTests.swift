// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync
@testable import Verification

/// Anybody's commands for two devices of an app that the loader takes.
private struct RandomDay: RandomSource {
    private static let devices: [DeviceID] = ["d1", "d2"]
    private static let people = ["anna", "berta"]

    var random: SplitMix64
    let shape: AppShape
    private(set) var services: TwoServices

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        // Each strategy and mode in turn, then any of its shapes.
        let strategy = SyncStrategy.all[Int(seed % UInt64(SyncStrategy.all.count))]
        let mode = VerificationSettings.Mode.allCases[Int(seed / UInt64(SyncStrategy.all.count) % 3)]
        let shapes = AppShape.accepted.filter { $0.shape.strategy == strategy }
        // Best match knows nobody, so there is nobody to verify.
        let (shape, app) = shapes.filter { $0.shape.mode == mode }.randomElement(using: &random) ?? shapes[0]
        self.random = random
        self.shape = shape
        services = TwoServices(app)
    }

    mutating func step() {
        if chance(60) { services.now += Int64.random(in: 1...2000, using: &random) }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: services.send(syncCommand(), by: chance(60) ? TwoServices.backend : TwoServices.sdkKey)
        case 3...5: services.send(verificationCommand())
        case 6, 7: services.takeAsked()
        case 8, 9: services.takeAnswer()
        default: services.takeEvent()
        }
    }

    /// Until nothing is under way.
    mutating func settle() {
        while services.isBusy {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: services.takeAsked()
            case 1: services.takeAnswer()
            default: services.takeEvent()
            }
        }
    }

    func check(_ trace: Comment) throws {
        for device in Self.devices {
            let shown = try services.session(device)
            let current = try services.users(device).first { $0.isCurrent }
            let told = services.told[device].flatMap { $0.user == .erased ? nil : $0 }
            try #require(current?.mpid == told?.mpid, trace)
            try #require((current?.isLoggedIn ?? false) == (told?.user == .known), trace)
            if let mpid = shown.mpid { try #require(current?.mpid == mpid && current?.isLoggedIn == true, trace) }
            let isRefusal = shown.state == .unverified && !shown.mayFileIssues
            try #require(shown.state == .anonymous || isRefusal || shown.mpid != nil, trace)
        }
    }

    private mutating func syncCommand() -> SyncCommand {
        if chance(10), let mpid = services.sync.profiles.values.map(\.mpid).sorted().randomElement(using: &random) {
            let change = ModifyIdentities.Change(
                identityType: pick(["customerid", "email"]), oldValue: nil,
                newValue: chance(40) ? pick(Self.people) : nil)
            return chance(25)
                ? .erase(EraseProfile(mpid: mpid)) : .modify(ModifyIdentities(mpid: mpid, changes: [change]))
        }
        var identities: [String: String?] = [:]
        if chance(80) { identities["device_application_stamp"] = pick(["s1", "s2"]) }
        if chance(40) { identities["customerid"] = pick(Self.people) }
        if chance(20) { identities["email"] = "\(pick(Self.people))@x.io" }
        let operation: SyncCommand.Operation = pick([.identify, .login, .logout])
        return .move(operation, SyncRequest(deviceId: pick(Self.devices), knownIdentities: identities))
    }

    private mutating func verificationCommand() -> VerificationCommand {
        let device = pick(Self.devices)
        let person = pick(Self.people)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .logout(VerificationLogout(deviceId: device))
        case 1: return .login(VerificationLogin(deviceId: device))
        case 2: return .login(VerificationLogin(deviceId: device, userId: person, userAuthToken: "x"))
        default: return pick(Way.all).login(person, on: device, shape.fields)
        }
    }
}

@Suite struct AgreementTests {
    /// S86, V71 to V76.
    @Test func theServicesAgreeWheneverNothingIsUnderWay() throws {
        var reached: Set<String> = []
        let ends: Set = ["userChanged", "erased", "verified", "unverified", "unchecked", "anonymous"]
        try runSequences(100, until: { reached.isSuperset(of: ends) }) { seed in
            var day = RandomDay(seed: seed)
            for place in 0..<15 {
                for _ in 0..<15 { day.step() }
                day.settle()
                try day.check("seed \(seed), place \(place): \(day.shape)")
            }
            reached.formUnion(day.services.reached)
        }
        // A test that never reaches an end proves nothing about it.
        #expect(reached.isSuperset(of: ends), "\(reached)")
    }
}
