// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync
@testable import Verification

/// Three people of an app that enforces verification, and all that somebody can send who has the key from the app, a
/// device, an account and a mailbox: genuine logins as themselves, and anything that the key opens, about anybody.
private struct Neighbourhood: RandomSource {
    private static let people = ["anna", "berta", "mallory"]
    /// Each has one, and all of them use the tablet.
    private static let devices: [DeviceID] = ["anna's", "berta's", "mallory's", "tablet"]

    var random: SplitMix64
    let shape: AppShape
    private(set) var services: TwoServices
    /// How somebody always proves who they are, so that it is one person for the app.
    private let way: Way
    /// Whom a genuine login has found.
    private(set) var found: [String: MPID] = [:]
    /// How often somebody went into whom another was aliased.
    private(set) var joined = 0
    /// Where they have logged in.
    private var places: [String: Set<DeviceID>] = [:]

    init(seed: UInt64, _ strategies: [SyncStrategy] = SyncStrategy.all.filter { $0 != .bestMatch }) {
        var random = SplitMix64(seed: seed)
        let strategy = strategies[Int(seed % UInt64(strategies.count))]
        let fields = VerificationSettings.SignedFields.allCases
        let field = fields[Int(seed / UInt64(strategies.count) % UInt64(fields.count))]
        let shapes = AppShape.accepted.filter { $0.shape.strategy == strategy && $0.shape.mode == .enforce }
        let (shape, app) = shapes.filter { $0.shape.fields == field }.randomElement(using: &random) ?? shapes[0]
        self.shape = shape
        way = Way.all.filter { $0.names(shape.fields) }.randomElement(using: &random) ?? Way.all[0]
        self.random = random
        services = TwoServices(app)
    }

    var description: String { "\(shape), \(way), found \(found)" }

    mutating func step() -> String {
        services.now += Int64.random(in: 1...2000, using: &random)
        if chance(20) {
            let (person, device) = (pick(Self.people), pick(Self.devices))
            logIn(person, on: device)
            return "\(person) logs in on \(device)"
        }
        if chance(15) {
            let command = verificationCommand()
            services.send(command)
            services.settle()
            return "\(command)"
        }
        if chance(4) { return leave() }
        if chance(8), way.proof == .authToken, shape.fields == .userId || shape.fields == .email {
            let (person, device) = (pick(Self.people), pick(Self.devices))
            logIn("mallory", on: device, alsoNaming(person, on: device))
            return "mallory logs in on \(device), and names \(person)"
        }
        let command = syncCommand()
        services.send(command, by: TwoServices.sdkKey)
        services.settle()
        return "\(command)"
    }

    /// A step of the shortest way to somebody else's end: joining devices, being somebody there, and going.
    mutating func stepToTheEnd() -> String {
        services.now += Int64.random(in: 1...2000, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2: return join(pick(["anna's", "berta's", "tablet"]), with: "mallory's")
        case 3: return leave()
        default:
            let person = pick(Self.people)
            logIn(person, on: DeviceID("\(person)'s"))
            return "\(person) logs in at home"
        }
    }

    /// The own account goes, as it may at any time; the next login makes a new one.
    private mutating func leave() -> String {
        guard let mpid = found.removeValue(forKey: "mallory") else { return "nothing happens" }
        if services.sync.profiles.values.contains(where: { $0.mpid == mpid && !$0.aliasedFrom.isEmpty }) { joined += 1 }
        services.send(.erase(EraseProfile(mpid: mpid)), by: TwoServices.backend)
        services.settle()
        return "mallory's account \(mpid) is erased"
    }

    /// Says that whoever uses one device is whoever uses another, which a key may where both are nobody yet.
    private mutating func join(_ one: DeviceID, with other: DeviceID) -> String {
        let users = [one, other].compactMap { device in
            let request = SyncRequest(
                deviceId: device, knownIdentities: ["device_application_stamp": .some(device.text)])
            services.send(.move(.identify, request), by: TwoServices.sdkKey)
            services.settle()
            return services.sync.devices.values.first { $0.key.id == device }?.current
        }
        if users.count == 2 {
            let alias = AliasUsers(sourceMPID: users[0], destinationMPID: users[1])
            services.send(.alias(alias), by: TwoServices.sdkKey)
        }
        return "\(one) is joined with \(other)"
    }

    /// - Parameter login: how, if not as always.
    private mutating func logIn(_ person: String, on device: DeviceID, _ login: VerificationCommand? = nil) {
        services.send(login ?? way.login(person, on: device, shape.fields))
        services.settle()
        places[person, default: []].insert(device)
        if found[person] == nil { found[person] = (try? services.session(device))?.mpid }
    }

    // MARK: What must hold

    func check(_ trace: String) throws {
        let trace = Comment(rawValue: "\(trace): \(description)")
        for person in Self.people {
            // Anywhere: on a device that nobody has seen, and where others have been.
            for device in ["new", "tablet"] {
                var probe = services
                probe.now += 1000
                probe.send(way.login(person, on: DeviceID(device), shape.fields))
                probe.settle()
                let session = try probe.session(DeviceID(device))
                try #require(session.state == .verified, trace)
                if let mpid = found[person] {
                    try #require(session.mpid == mpid, "\(trace): \(person) on \(device)")
                } else {
                    try #require(!found.values.contains { $0 == session.mpid }, "\(trace): \(person) on \(device)")
                }
                try onlyTheirs(session.mpid, person, probe, trace)
            }
        }
        for device in Self.devices {
            guard let current = try services.users(device).first(where: \.isCurrent)?.mpid else { continue }
            for (person, mpid) in found where mpid == current {
                try #require(places[person]?.contains(device) == true, "\(trace): \(device) is \(person)")
            }
        }
    }

    /// What is known of a person, but for devices, is what they said themselves.
    private func onlyTheirs(_ mpid: MPID?, _ person: String, _ services: TwoServices, _ trace: Comment) throws {
        let profile = try #require(services.sync.profiles.values.first { $0.mpid == mpid }, trace)
        let others = profile.identities.filter { identity in
            ["customerid", "email", "other", "mobile_number"].contains(identity.type.rawValue)
                && ![person, "\(person)@x.io"].contains(identity.value.text)
        }
        try #require(others.isEmpty, "\(trace): \(person) has \(others)")
    }

    // MARK: What is tried

    private mutating func verificationCommand() -> VerificationCommand {
        let (person, device) = (pick(Self.people), pick(Self.devices))
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return .logout(VerificationLogout(deviceId: device))
        case 1: return .login(VerificationLogin(deviceId: device))
        default:
            return .login(
                VerificationLogin(
                    deviceId: device, userId: person, userEmail: "\(person)@x.io",
                    userAuthToken: chance(50) ? Fixture.token("somebody") : nil))
        }
    }

    /// A genuine login of mallory's: what is not signed goes with what is.
    private func alsoNaming(_ person: String, on device: DeviceID) -> VerificationCommand {
        let isByID = shape.fields == .userId
        return .login(
            VerificationLogin(
                deviceId: device, userId: isByID ? "mallory" : person,
                userEmail: isByID ? "\(person)@x.io" : "mallory@x.io",
                userAuthToken: Fixture.token(isByID ? "mallory" : "mallory@x.io")))
    }

    private mutating func syncCommand() -> SyncCommand {
        let mpids = services.sync.profiles.values.map(\.mpid).sorted()
        if chance(20), let mpid = mpids.randomElement(using: &random) {
            let changes = identities().map { type, value in
                ModifyIdentities.Change(
                    identityType: type, oldValue: nil, newValue: chance(70) ? value : nil)
            }
            return .modify(ModifyIdentities(mpid: mpid, changes: changes.sorted { $0.identityType < $1.identityType }))
        }
        if chance(12), let source = mpids.randomElement(using: &random), let other = mpids.randomElement(using: &random)
        {
            return .alias(AliasUsers(sourceMPID: source, destinationMPID: other))
        }
        var request = SyncRequest(
            deviceId: pick(Self.devices), knownIdentities: identities().mapValues { .some($0) })
        if chance(20) { request.name = "Mallory" }
        if chance(20) { request.clearAnonymousUser = true }
        if chance(20) { request.vouchedFor = [.customerID, .email] }
        let operation: SyncCommand.Operation = pick([.identify, .login, .logout])
        return chance(10) ? .search(request) : .move(operation, request)
    }

    /// Often a device's alone, which the key may name; also those that several devices have.
    private mutating func identities() -> [String: String] {
        var identities: [String: String] = [:]
        if chance(70) { identities["device_application_stamp"] = pick(Self.devices).text }
        if chance(40) { identities["ios_idfv"] = pick(["idfv-1", "idfv-2"]) }
        if chance(20) { identities["android_uuid"] = "uuid-1" }
        guard chance(25) else { return identities }
        let person = pick(Self.people)
        if chance(40) { identities["customerid"] = person }
        if chance(50) { identities["email"] = "\(person)@x.io" }
        if chance(20) { identities["other"] = person }
        if chance(20) { identities["mobile_number"] = person }
        return identities
    }
}

@Suite struct StrangersTests {
    /// V59, V60, S48, S70 to S76: no command of one person's key, device or mailbox changes which profile another person's
    /// verified login finds, whatever app the loader takes.
    @Test func nobodyChangesWhomAnotherPersonFinds() throws {
        var people = 0
        try runSequences(50, until: { people > 65 }) { seed in
            var world = Neighbourhood(seed: seed)
            for place in 0..<16 {
                let step = world.step()
                try world.check("seed \(seed), step \(place), \(step)")
            }
            people += world.found.count
        }
        // A test in which nobody is anybody proves nothing.
        #expect(people > 65)
    }

    /// S96: whoever erases their own account takes nobody along.
    @Test func nobodyGoesWithAnotherPerson() throws {
        var joined = 0
        let strategies = SyncStrategy.all.filter { $0.allowsAlias && $0.newLogin == .convertAnonymous }
        try runSequences(40, until: { joined > 10 }) { seed in
            var world = Neighbourhood(seed: seed, strategies)
            for place in 0..<16 {
                let step = world.stepToTheEnd()
                try world.check("seed \(seed), step \(place), \(step)")
            }
            joined += world.joined
        }
        #expect(joined > 10)
    }
}
