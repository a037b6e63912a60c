// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage

/// What leads to the decisions of a batch.
struct Chains {
    /// For each record, the decisions before the one on it.
    private(set) var before: [[UInt8]]
    private var mentions: [(app: AppID, text: String, link: ChainLink)] = []

    init(count: Int) { before = [[UInt8]](repeating: [], count: count) }

    mutating func note(_ chain: DecisionChain, at place: Int, of app: AppID) {
        before[place] = chain.before
        guard !chain.mentions.isEmpty else { return }
        mentions += chain.mentions.map { (app, $0.text, $0.link) }
    }

    func mentions(_ secrets: DerivedSecrets, _ now: Timestamp) -> [Mentions.Row] {
        mentions.map { app, text, link in
            Mentions.Row(subject: secrets.subject(text, of: app), decidedAt: now.milliseconds, link: link)
        }
    }
}

extension DerivedSecrets {
    /// What stands for an id of an app where it must not be found by guessing.
    func subject(_ id: String, of app: AppID) -> Int64 {
        bytes("subject", [app.text, id]).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }
}
