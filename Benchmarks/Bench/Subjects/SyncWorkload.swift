// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

/// What apps send about the users of 100,000 devices, some of which are used more than others (Zipf): 70 % identify,
/// 20 % login, 5 % logout, 5 % modify. The exponent is 0.6, so that the busiest device stays below the rate that a device
/// may have as shipped, also when a backlog is drained.
struct SyncWorkload {
    static let devices = 100_000
    /// Who uses a device takes turns with so many others.
    private static let usersPerDevice = 3

    private let factory: CommandFactory
    private let profiles: Int
    private var random = SeededGenerator(seed: 3)
    private var zipf = Zipf(count: devices, exponent: 0.6)
    /// Who is logged in on a device.
    private var users: [Int: Int] = [:]
    /// The last phone number that a profile got.
    private var numbers: [Int: String] = [:]

    /// - Parameter profiles: how many are stored, see ``StoredProfiles``.
    static func commands(_ count: Int, profiles: Int, _ factory: CommandFactory) throws -> Workload {
        var maker = SyncWorkload(factory: factory, profiles: profiles)
        return Workload(
            "sync, \(profiles) profiles stored", try (0..<count).map { try maker.next($0) })
    }

    static func deviceID(_ number: Int) -> DeviceID {
        DeviceID("device-0000-4000-8000-" + CommandFactory.padded(number))
    }

    private init(factory: CommandFactory, profiles: Int) {
        self.factory = factory
        self.profiles = profiles
    }

    private mutating func next(_ number: Int) throws -> Record {
        let id = CommandFactory.id(number)
        let device = zipf.next(using: &random)
        let lot = Int.random(in: 0..<100, using: &random)
        let profile = profile(of: device)
        let stamp = StoredProfiles.stamp(device)
        switch lot {
        case 0..<70:
            // An app sends what it knows about who is there.
            let user = users[device]
            let identities = (user.map(StoredProfiles.identities) ?? []) + [stamp]
            return try factory.record(IdentifyUser(request(device, identities)), id: id)
        case 70..<90:
            users[device] = profile
            return try factory.record(
                LogInUser(request(device, StoredProfiles.identities(profile) + [stamp])), id: id)
        case 90..<95:
            users[device] = nil
            return try factory.record(LogOutUser(request(device, [stamp])), id: id)
        default:
            let value = "+32\(CommandFactory.padded(number))"
            let change = ModifyIdentities.Change(
                identityType: IdentityType.mobileNumber.rawValue, oldValue: numbers.updateValue(value, forKey: profile),
                newValue: value)
            return try factory.record(
                ModifyIdentities(
                    mpid: try StoredProfiles.mpid(profile), changes: [change], deviceId: Self.deviceID(device)),
                id: id)
        }
    }

    /// One of those who use the device; over all devices they are spread over all that is stored.
    private mutating func profile(of device: Int) -> Int {
        var mixer = SeededGenerator(
            seed: UInt64(device * Self.usersPerDevice + Int.random(in: 0..<Self.usersPerDevice, using: &random)))
        return Int(mixer.next() % UInt64(profiles))
    }

    private func request(_ device: Int, _ identities: [Identity]) -> SyncRequest {
        SyncRequest(
            deviceId: Self.deviceID(device),
            knownIdentities: Dictionary(uniqueKeysWithValues: identities.map { ($0.type.rawValue, $0.value.text) }),
            environment: .production)
    }
}
