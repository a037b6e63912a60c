// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Runtime

struct DeriveKeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "derive-keys",
        abstract: "Prints the keys of one purpose, for a process that is not to hold the internal key.",
        discussion: """
            Reads IDENTITYBUS_INTERNAL_KEY and IDENTITYBUS_PREVIOUS_INTERNAL_KEYS (or their _FILE variants) and prints one \
            line. `gateway` is for IDENTITYBUS_GATEWAY_KEYS: it speaks for callers, and checks its replies and user tokens. \
            `events-reader` is for IDENTITYBUS_EVENTS_KEYS: it checks events and replies, and signs no command. The line \
            is a secret, like the keys it comes from.
            """)

    enum Reader: String, ExpressibleByArgument, CaseIterable {
        case gateway
        case eventsReader = "events-reader"
    }

    @Option(name: .customLong("for"), help: "Who will hold the keys: gateway or events-reader.")
    var reader: Reader

    func run() throws {
        let keys: DeploymentKeys
        do {
            keys = try DeploymentKeys(environment: EnvironmentSettings(ProcessInfo.processInfo.environment))
        } catch {
            throw ValidationError("\(error)")
        }
        guard !keys.isEmpty else { throw ValidationError("IDENTITYBUS_INTERNAL_KEY is not set") }
        print(
            keys.text(
                for: reader == .gateway ? DeploymentKeys.gatewayPurposes : DeploymentKeys.readerPurposes))
    }
}
