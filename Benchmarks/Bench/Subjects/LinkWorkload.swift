// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

/// Link requests.
///
/// Persons get a new install in three requests of five and ask for the link of their present one again in the others
/// (an app that starts). Of every 100 commands 5 are repeated byte for byte some time later, and 1 is poison: half of
/// these are no JSON, half are signed for other bytes.
struct LinkWorkload {
    private let factory: CommandFactory
    private var random = SeededGenerator(seed: 1)
    private var records: [Record] = []
    /// Where poison stands in `records`.
    private var garbled = Set<Int>()
    private var forged = Set<Int>()
    private var repetitions = 0
    private var garbledOriginals = 0
    private var installs = 0

    static func requests(_ count: Int, _ factory: CommandFactory) throws -> Workload {
        var maker = LinkWorkload(factory)
        try maker.fill(count)
        var workload = Workload(
            "link.request", preparation: try registrations(max(1, maker.installs), factory), maker.records)
        workload.replies = count - maker.garbled.count
        workload.answered = count - maker.repetitions - maker.garbledOriginals
        workload.deadLetters = maker.garbled.count + maker.forged.count
        workload.expected = ["succeeded", ReasonCode.unauthenticated.rawValue]
        return workload
    }

    /// Every command has one reply: a first link for the installs of as many persons, repeated by each.
    /// - Parameter spare: so many installs more, that nobody asks for here.
    static func plain(_ count: Int, _ factory: CommandFactory, spare: Int = 0) throws -> Workload {
        let persons = max(1, count / 2)
        return Workload(
            "link.request", preparation: try registrations(persons + spare, factory),
            try (0..<count).map { number in
                try factory.record(
                    request(install: number % persons, person: number % persons), id: CommandFactory.id(number))
            })
    }

    /// Goes on for as long as one likes: each install is registered and, a second later, linked to a person whose install
    /// before that is deactivated. Every command changes rows and tells events.
    static func steady(_ count: Int, rate: Int, _ factory: CommandFactory) throws -> Workload {
        // The registrations of the first second, whose links nobody asks for before.
        let ahead = max(1, rate / 2)
        let persons = max(1, min(20_000, count / 8))
        return Workload(
            "link.request and register-install", preparation: try registrations(ahead, factory),
            try (0..<count).map { number in
                let install = number / 2
                let id = CommandFactory.id(number)
                guard number.isMultiple(of: 2) else { return try registration(ahead + install, factory, id: id) }
                return try factory.record(request(install: install, person: install % persons), id: id)
            })
    }

    static func request(install: Int, person: Int) -> LinkRequest {
        LinkRequest(installId: UserWorkload.installID(install), externalId: UserWorkload.externalID(person))
    }

    private static func registrations(_ count: Int, _ factory: CommandFactory) throws -> [Record] {
        try (0..<count).map { try registration($0, factory, id: "register-\($0)") }
    }

    static func registration(_ install: Int, _ factory: CommandFactory, id: String) throws -> Record {
        let device = Device(kind: .phone, platform: "ios", model: "Phone 15", osVersion: "18.1")
        return try factory.record(
            RegisterInstall(installId: UserWorkload.installID(install), device: device, user: .none), id: id)
    }

    private init(_ factory: CommandFactory) { self.factory = factory }

    private mutating func fill(_ count: Int) throws {
        let persons = max(1, count / 5)
        var current = [Int?](repeating: nil, count: persons)
        records.reserveCapacity(count)
        for number in 0..<count {
            let lot = Int.random(in: 0..<1000, using: &random)
            let person = Int.random(in: 0..<persons, using: &random)
            if lot < 50, records.count > 100 {
                repeatOne()
                continue
            }
            var install = current[person]
            if install == nil || Int.random(in: 0..<5, using: &random) < 3 {
                install = installs
                installs += 1
            }
            let record = try factory.record(
                Self.request(install: install ?? 0, person: person), id: CommandFactory.id(number))
            switch lot {
            case 50..<55:
                garbled.insert(number)
                garbledOriginals += 1
                records.append(factory.truncated(record))
            case 55..<60:
                forged.insert(number)
                records.append(factory.withBadSignature(record))
            default:
                current[person] = install
                records.append(record)
            }
        }
    }

    private mutating func repeatOne() {
        let original = Int.random(in: max(0, records.count - 20_000)..<records.count, using: &random)
        // A repeated piece of poison is one more piece.
        if garbled.contains(original) { garbled.insert(records.count) }
        if forged.contains(original) { forged.insert(records.count) }
        repetitions += 1
        records.append(records[original])
    }
}
