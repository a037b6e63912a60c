// SPDX-License-Identifier: Apache-2.0

/// Whether the gateway's admin port shows the console (docs/console.md).
package enum ConsoleMode: String, Sendable, CaseIterable {
    case no, yes
    /// Of `identitybus up --demo`: the first page leads through its cases, and the public keys are named.
    case demo

    /// - Throws: `ConfigurationProblem`.
    package init(_ settings: EnvironmentSettings) throws(ConfigurationProblem) {
        self = try settings.choice(Setting.console.name, default: .no)
    }
}
