// SPDX-License-Identifier: Apache-2.0

import Apps
import Crypto
import Testing

@testable import Runtime

/// The deployment's keys as the environment names them.
@Suite struct DeploymentKeysEnvironmentTests {
    private let old = SymmetricKey(data: Array("an-internal-key-of-the-tests".utf8))

    private func read(
        _ environment: [String: String], _ derived: DeploymentKeys.Derived? = .gateway
    ) throws(ConfigurationProblem) -> DeploymentKeys {
        try DeploymentKeys(environment: EnvironmentSettings(environment), derived: derived)
    }

    @Test func theListOfInternalKeys() throws {
        let keys = try read([
            "IDENTITYBUS_INTERNAL_KEY": "aaaaaaaaaaaaaaaa",
            "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "bbbbbbbbbbbbbbbb,cccccccccccccccc\n",
        ])
        let expected = ["a", "b", "c"].map { SymmetricKey(data: Array(String(repeating: $0, count: 16).utf8)) }
        #expect(keys.internalKeys == expected)
        #expect(try read([:]).isEmpty)
    }

    @Test func derivedKeysStandInThePlaceOfInternalOnes() throws {
        let text = DeploymentKeys(internalKeys: [old]).text(for: DeploymentKeys.gatewayPurposes)
        let keys = try read(["IDENTITYBUS_GATEWAY_KEYS": text])
        #expect(keys.internalKeys.isEmpty && keys.signing(.gateway) == KeyPurpose.gateway.key(from: old))
        // Services take no notice of what is the gateway's.
        #expect(try read(["IDENTITYBUS_GATEWAY_KEYS": text], nil).isEmpty)
    }

    @Test(arguments: [
        (["IDENTITYBUS_GATEWAY_KEYS": "hunter2"], "IDENTITYBUS_GATEWAY_KEYS", "derive-keys"),
        (
            ["IDENTITYBUS_GATEWAY_KEYS": "hunter2", "IDENTITYBUS_INTERNAL_KEY": "hunter2hunter2hunter2"],
            "IDENTITYBUS_GATEWAY_KEYS", "IDENTITYBUS_INTERNAL_KEY"
        ),
        (
            ["IDENTITYBUS_GATEWAY_KEYS": "hunter2", "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "hunter2hunter2hunter2"],
            "IDENTITYBUS_GATEWAY_KEYS", "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS"
        ),
        (["IDENTITYBUS_INTERNAL_KEY": "hunter2"], "IDENTITYBUS_INTERNAL_KEY", "16 bytes"),
        (
            ["IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "hunter2hunter2hunter2"], "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS",
            "IDENTITYBUS_INTERNAL_KEY is not"
        ),
        (
            ["IDENTITYBUS_INTERNAL_KEY": "hunter2hunter2hunter2", "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "hunter2"],
            "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS", "16 bytes"
        ),
    ]) func mistakesAreNamed(_ environment: [String: String], _ variable: String, _ hint: String) throws {
        let problem = try #require(throws: ConfigurationProblem.self) { try read(environment) }
        #expect(problem.variable == variable)
        #expect(problem.description.contains(hint) && !problem.description.contains("hunter2"))
    }
}
