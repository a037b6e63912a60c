// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage

extension Account {
    /// Of whom it is noted when they come: an unlinked user is found by nothing but the install. A restricted one stays.
    var mayExpire: Bool { !user.isLinked && !user.isRestricted }
}

/// Unlinked users who do not come back (docs/user.md "Retention").
extension UserDecider {
    /// U200. Not more often than once a day: a write for each read would cost more than it is worth.
    static let seenEvery: Int64 = 86_400_000

    func noteSeen(_ account: Account, _ install: Installation) -> [UserState.Change] {
        guard app.retention.unlinked != nil, case .present = install.state, account.mayExpire,
            account.registration.seenAt.map({ now.milliseconds - $0 >= Self.seenEvery }) != false
        else { return [] }
        return seen(account, install)
    }

    private func seen(_ account: Account, _ install: Installation) -> [UserState.Change] {
        var account = account
        account.registration.seenAt = now.milliseconds
        return put(install.with(.present(account)))
    }

    /// U201. The link service decides: somebody may have linked the user by now. When nobody is on the install any more, it says
    /// so as it always does.
    func expire(_ command: ExpireUser) -> Decision {
        guard let period = app.retention.unlinked, let install = install(command.installId),
            case .present(let account) = install.state, account.user.id == command.userId, account.mayExpire,
            account.registration.seenAt == command.lastSeen?.milliseconds
        else { return Decision(.noted) }
        guard let seenAt = account.registration.seenAt else {
            return Decision(.noted, changes: seen(account, install))
        }
        // The day in which it is not noted is the user's.
        guard context.hasPassed(period + Self.seenEvery, since: seenAt) else { return Decision(.noted) }
        return Decision(
            .noted, changes: put(install),
            forwards: [forward(ExpirePerson(installId: install.id, userId: account.user.id))])
    }
}

extension UserStore {
    /// Unlinked users of all apps whose days are over, or begin to be counted.
    func dueRetention(now: Timestamp, limit: Int, apps: AppDirectory) throws -> [DueCommand] {
        var due: [DueCommand] = []
        for app in apps.ids.compactMap({ apps[$0] }) where due.count < limit {
            guard let period = app.retention.unlinked.map({ $0 + UserDecider.seenEvery }) else { continue }
            due += try RetentionWalk(app.id, "user").due(now: now, in: transaction) { after in
                let rows = try Installation.table.find(
                    "app = $1 AND install_id > $2 ORDER BY install_id LIMIT $3",
                    [.text(app.id.text), .text(after), SQLValue(limit)], in: transaction)
                return RetentionWalk.Step(
                    last: rows.count < limit ? nil : rows.last?.id.text,
                    found: rows.compactMap { found($0, now, period) })
            }
        }
        return due
    }

    private func found(_ install: Installation, _ now: Timestamp, _ period: Int64) -> RetentionWalk.Found? {
        guard case .present(let account) = install.state, account.mayExpire else { return nil }
        let seenAt = account.registration.seenAt
        guard seenAt.map({ $0 <= now.milliseconds - period }) != false else { return nil }
        return RetentionWalk.Found(
            key: install.id.text, end: seenAt.map { $0 + period } ?? 0,
            command: ExpireUser(
                installId: install.id, userId: account.user.id, lastSeen: seenAt.map(Timestamp.init(milliseconds:))))
    }
}
