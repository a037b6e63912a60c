// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Link

/// The link service has lagged. A replay that knows when each command was decided comes to the same rows, all of them
/// (docs/loop.md, "A replay").
@Suite struct RandomReplayTests {
    @Test func allRowsAreTheSame() throws {
        var differed = 0
        try runSequences(40, until: { differed > 20 }) { seed in
            var commands = RandomCommands(seed: seed)
            var log = try LaggingLog(LinkService(), seed: seed)
            for _ in 0..<60 {
                for _ in 0..<Int.random(in: 0...3, using: &log.random) {
                    let users = try log.live.rows(["persons ORDER BY user_id"]).compactMap { row -> UserID? in
                        if case .text(let id)? = row.first { UserID(id) } else { nil }
                    }
                    let step = commands.next(users: users, forwards: [])
                    guard let key = step.command.partitionSubject else { continue }
                    log.tell(step.command, step.context, key: key)
                }
                try log.decideSome()
            }
            while !log.isDecided { try log.decideSome() }
            let live = try log.live.rows()
            #expect(try log.replayed().rows() == live, "seed \(seed)")
            // By the order of the log alone, they would be others.
            differed += try log.replayed(knowing: false).rows() == live ? 0 : 1
        }
        #expect(differed > 20)
    }
}

extension LinkCommand {
    /// Of what has a Kafka key of the sender; nothing of what other services tell.
    fileprivate var partitionSubject: String? {
        switch self {
        case .request(let command): command.partitionSubject
        case .registerInstall(let command): command.partitionSubject
        case .establish(let command): command.partitionSubject
        case .query(let command): command.partitionSubject
        case .detachInstall(let command): command.partitionSubject
        case .setInstallStatus(let command): command.partitionSubject
        case .eraseUser(let command): command.partitionSubject
        case .forget(let command): command.partitionSubject
        case .getErasure(let command): command.partitionSubject
        case .getUser(let command): command.partitionSubject
        case .makeActive(let command): command.partitionSubject
        case .unlink(let command): command.partitionSubject
        case .changeExternalID(let command): command.partitionSubject
        case .importUsers(let command): command.partitionSubject
        case .expire(let command): command.partitionSubject
        case .restricted, .answered, .facts: nil
        }
    }
}
