// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Apps

@Suite struct DerivedSecretsTests {
    private func secrets(_ salt: UInt8) -> DerivedSecrets {
        DerivedSecrets(.none, salt: [UInt8](repeating: salt, count: 32))
    }

    @Test(arguments: [[], [1], Array("somebody".utf8), [UInt8](repeating: 7, count: 100_000)])
    func onlyTheSaltOpens(_ bytes: [UInt8]) throws {
        let closed = try #require(secrets(1).closed(bytes, "test", ["demo"]))
        #expect(secrets(1).closed(bytes, "test", ["demo"]) == closed)
        #expect(secrets(1).opened(closed, "test", ["demo"]) == bytes)
        #expect(secrets(2).opened(closed, "test", ["demo"]) == nil)
        #expect(secrets(1).opened(closed, "other", ["demo"]) == nil)
        #expect(secrets(1).opened(closed, "test", ["other"]) == nil)
        for place in [0, closed.count - 1] {
            var damaged = closed
            damaged[place] ^= 1
            #expect(secrets(1).opened(damaged, "test", ["demo"]) == nil)
        }
        #expect(secrets(1).opened([], "test", ["demo"]) == nil)
    }
}
