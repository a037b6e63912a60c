// SPDX-License-Identifier: Apache-2.0

import Crypto
import Testing

@testable import Apps

/// Keys by purpose: each of an internal key, and none of another purpose.
@Suite struct DeploymentKeysTests {
    private let old = SymmetricKey(data: Array("an-internal-key-of-the-tests".utf8))
    private let new = SymmetricKey(data: Array("the-next-internal-key-of-the-tests".utf8))

    private func hex(_ key: SymmetricKey?) -> String {
        key?.withUnsafeBytes { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() } ?? ""
    }

    /// Made with Python's hmac (HKDF by hand): what was signed and closed must open in every later version.
    @Test(
        arguments: [
            (.commands, "6db13587909585703ea3d3c555fd6422a886090e6ee112bbd390b96758599ce2"),
            (.events, "8a29c3dab0822e11ff92981be5f288c34c26fcaa2c4c8eb91fbf5c6753ffac65"),
            (.gateway, "1671df7f716cffba09f004f174f262790d4c5b72533504ae4b0fda349c34c1ec"),
            (.store, "414add9ebe91a334d37e1eab58ef385d34cb869f6449eaa9291457631f56f432"),
            (.tokens, "a0a17a8697f3e3ae1416345311ee1e93b5146407b21bf891e028fa859cf4ebcd"),
        ] as [(KeyPurpose, String)]) func derivation(_ purpose: KeyPurpose, _ expected: String)
    {
        #expect(hex(purpose.key(from: old)) == expected)
    }

    @Test func noKeyServesTwoPurposes() {
        let keys = [old, new].flatMap { key in KeyPurpose.allCases.map { $0.key(from: key) } + [key] }
        #expect(Set(keys.map(hex)).count == 12)
    }

    @Test func theFirstSignsAndAllCheck() {
        let keys = DeploymentKeys(internalKeys: [new, old])
        for purpose in KeyPurpose.allCases {
            #expect(keys.signing(purpose) == purpose.key(from: new))
            #expect(keys.checking(purpose) == [purpose.key(from: new), purpose.key(from: old)])
        }
        #expect(keys.internalKeys == [new, old])
        #expect(DeploymentKeys.none.isEmpty && DeploymentKeys.none.signing(.commands) == nil)
    }

    @Test func theGatewayGetsItsOwnPurposesAndNoOthers() throws {
        let text = DeploymentKeys(internalKeys: [new, old]).text(for: DeploymentKeys.gatewayPurposes)
        #expect(text.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyz0123456789:.,".utf8.contains($0) })
        let keys = try #require(DeploymentKeys(text: text, purposes: DeploymentKeys.gatewayPurposes))
        #expect(keys.internalKeys.isEmpty)
        for purpose in KeyPurpose.allCases {
            let isGiven = DeploymentKeys.gatewayPurposes.contains(purpose)
            #expect(keys.checking(purpose) == (isGiven ? [purpose.key(from: new), purpose.key(from: old)] : []))
        }
        // What is not asked for is not kept, and what is asked for has to be there.
        let one = try #require(DeploymentKeys(text: text, purposes: [.tokens]))
        #expect(one.checking(.gateway).isEmpty && one.checking(.tokens).count == 2)
        #expect(DeploymentKeys(text: text, purposes: DeploymentKeys.readerPurposes) == nil)
    }

    @Test func anythingElseIsRefused() {
        let good = DeploymentKeys(internalKeys: [old]).text(for: DeploymentKeys.gatewayPurposes)
        let events = DeploymentKeys(internalKeys: [old]).text(for: DeploymentKeys.readerPurposes)
        let texts = [
            "", ",", good + ",", "," + good, good + "," + events, events, good + ".", good + "0",
            String(good.dropLast()),
            good.uppercased(), good.replacing("tokens", with: "other"), good + "." + good, "hunter2hunter2hunter2",
            good.replacing(":", with: "="), good.replacing("tokens:", with: "tokens:g"), " " + good,
        ]
        for text in texts {
            #expect(DeploymentKeys(text: text, purposes: DeploymentKeys.gatewayPurposes) == nil, "\(text)")
        }
    }
}
