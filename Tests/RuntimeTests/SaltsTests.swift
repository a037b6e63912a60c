// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime

@Suite struct SaltsTests {
    private let salts = ["link": [UInt8](repeating: 0xAB, count: 32), "user": [UInt8](0..<32)]

    @Test func aLineIsReadAsItWasWritten() throws {
        #expect(try Salts.read(Salts.text(salts)) == salts)
        #expect(Salts.text(salts).hasPrefix("link=abab"))
    }

    @Test(arguments: ["x", "link=ab", "link=", "link=\(String(repeating: "g", count: 64))"]) func anyOtherIsRefused(
        _ text: String
    ) {
        #expect(throws: ConfigurationProblem.self) { try Salts.read(text) }
    }

    @Test func aServiceHasOneSalt() {
        let twice = "\(Salts.text(salts)),\(Salts.text(salts))"
        #expect(throws: ConfigurationProblem.self) { try Salts.read(twice) }
    }

    @Test(arguments: [SQLEngine.sqlite, .postgresql]) func anEmptyStoreTakesASaltAndKeepsIt(_ engine: SQLEngine) throws
    {
        let store = try TestStore(engine)
        let database = try store.open(.normal)
        defer { database.close() }
        try FakeService.migrator.run(on: database)
        let given = [UInt8](repeating: 1, count: Salt.byteCount)
        #expect(try database.transaction { try Salt.stored(in: $0) } == nil)
        try database.transaction { try Salt.keep(given, in: $0) }
        #expect(try database.transaction { try Salt.read(in: $0) } == given)
        try database.transaction { try Salt.keep([UInt8](repeating: 2, count: Salt.byteCount), in: $0) }
        #expect(try database.transaction { try Salt.read(in: $0) } == given)
    }

    /// - Returns: what stops the start.
    private func problem(_ given: [String: [UInt8]]?, isReplay: Bool, _ database: any SQLDatabase) throws -> String? {
        var configuration = try ServiceConfiguration(
            environment: ["KAFKA_BOOTSTRAP_SERVERS": "a:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef"],
            service: "link")
        configuration.salts = given
        configuration.replayUntil = isReplay ? Timestamp(milliseconds: 1) : nil
        do {
            try Salts.settle(configuration, "link", on: database, .quiet)
            return nil
        } catch let problem as ConfigurationProblem {
            return problem.variable
        }
    }

    @Test func aStoreHasTheSaltThatItsDeploymentHad() throws {
        let store = try TestStore(.sqlite)
        let database = try store.open(.normal)
        defer { database.close() }
        try FakeService.migrator.run(on: database)
        func stored() throws -> [UInt8]? { try database.transaction { try Salt.stored(in: $0) } }

        #expect(try problem(nil, isReplay: true, database) == nil)
        #expect(try problem(["user": salts["user"] ?? []], isReplay: true, database) == Salts.variable)
        // Its past would be read in any order.
        #expect(try problem(salts, isReplay: false, database) == "REPLAY_UNTIL")
        #expect(try stored() == nil)
        #expect(try problem(salts, isReplay: true, database) == nil)
        #expect(try stored() == salts["link"])
        #expect(try problem(salts, isReplay: false, database) == nil)
        #expect(try problem(nil, isReplay: true, database) == nil)
        let other = ["link": [UInt8](repeating: 1, count: Salt.byteCount)]
        #expect(try problem(other, isReplay: true, database) == Salts.variable)
        #expect(try stored() == salts["link"])
    }
}
