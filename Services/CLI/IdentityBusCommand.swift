// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Dispatch
import Glibc
import Observability
import Synchronization

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

/// Notices SIGINT and SIGTERM instead of dying of them.
final class Interruption {
    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private let flag = Flag()
    private let sources: [any DispatchSourceSignal]

    init() {
        let flag = flag
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { flag.value.store(true, ordering: .releasing) }
            source.activate()
            return source
        }
    }

    var isRequested: Bool { flag.value.load(ordering: .acquiring) }
}
