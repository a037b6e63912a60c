// SPDX-License-Identifier: Apache-2.0

public import Apps
import Crypto

extension DeploymentKeys {
    static let internalKeyVariable = "IDENTITYBUS_INTERNAL_KEY"
    static let previousKeysVariable = "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS"

    /// A variable that may stand in the place of the internal keys: a process that needs only some purposes is given only
    /// those.
    public struct Derived: Sendable {
        public var variable: String
        public var purposes: [KeyPurpose]

        public static let gateway = Derived(
            variable: "IDENTITYBUS_GATEWAY_KEYS", purposes: DeploymentKeys.gatewayPurposes)
        public static let events = Derived(
            variable: "IDENTITYBUS_EVENTS_KEYS", purposes: DeploymentKeys.readerPurposes)
    }

    /// The keys that the environment names; ``none`` when it names none.
    /// - Throws: `ConfigurationProblem`.
    public init(environment settings: EnvironmentSettings, derived: Derived? = nil) throws(ConfigurationProblem) {
        let current = try settings.secret(Self.internalKeyVariable)
        let previous = try settings.secret(Self.previousKeysVariable)
        if let derived, let text = try settings.secret(derived.variable) {
            guard current == nil, previous == nil else {
                throw ConfigurationProblem(
                    derived.variable,
                    "is set together with \(current == nil ? Self.previousKeysVariable : Self.internalKeyVariable); "
                        + "remove that one, it is not needed then")
            }
            guard let keys = DeploymentKeys(text: text, purposes: derived.purposes) else {
                throw ConfigurationProblem(derived.variable, "is not what `identitybus derive-keys` prints for it")
            }
            self = keys
            return
        }
        guard let current else {
            guard previous == nil else {
                throw ConfigurationProblem(Self.previousKeysVariable, "is set, but \(Self.internalKeyVariable) is not")
            }
            self = .none
            return
        }
        guard current.utf8.count >= 16 else {
            throw ConfigurationProblem(Self.internalKeyVariable, "has fewer than 16 bytes")
        }
        let others = (previous ?? "").split { $0 == "," || $0.isNewline }
        guard others.allSatisfy({ $0.utf8.count >= 16 }) else {
            throw ConfigurationProblem(
                Self.previousKeysVariable, "has a key of fewer than 16 bytes; separate keys with commas")
        }
        self.init(internalKeys: ([current] + others.map(String.init)).map { SymmetricKey(data: Array($0.utf8)) })
    }
}
