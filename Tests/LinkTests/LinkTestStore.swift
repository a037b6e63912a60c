// SPDX-License-Identifier: Apache-2.0

import Link
import Storage
import TestKit

typealias LinkTestStore = ServiceStore<LinkService>

extension ServiceStore where Service == LinkService {
    /// Every row of all tables, as it stands.
    func rows() throws -> [[SQLValue]] {
        try rows([
            "installs ORDER BY install_id, app", "persons ORDER BY user_id", "erasures ORDER BY user_id",
            "holds ORDER BY app, external_key",
        ])
    }

    func run(_ steps: [RandomCommands.Step]) throws -> [LinkDecider.Decision] {
        try run(LinkService(), steps.map { ($0.command, $0.context) })
    }
}
