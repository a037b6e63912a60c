// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Chaos
import Observability

@main
struct IdentityBusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identitybus",
        abstract: "Runs IdentityBus on this machine, sends commands to it and watches what it says.",
        version: "identitybus \(Release.version)",
        subcommands: [
            UpCommand.self, SendCommand.self, WatchCommand.self, SignCommand.self, TokenCommand.self,
            VerifyTokenCommand.self, ExplainCommand.self, RekeyCommand.self, SaltsCommand.self, DeriveKeysCommand.self,
            ChaosCommand.self,
        ])
}
