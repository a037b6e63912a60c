// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

extension NaiveUserModel {
    /// The events of a step: `command` if it was one to the link service, else one to the user service or the clock.
    func events(since before: NaiveUserModel, by command: LinkCommand? = nil) -> [any EventMessage] {
        told.dropFirst(before.told.count) + news(since: before, by: command)
    }

    /// What became of the users that had come to their installs before and are there still (U15, U28, U31).
    private func news(since before: NaiveUserModel, by command: LinkCommand?) -> [any EventMessage] {
        var news: [any EventMessage] = []
        for home in before.atHome.intersection(atHome) {
            let (before, after) = (before.seen(in: home.app), seen(in: home.app))
            let id = home.id
            guard let user = after.install(id)?.user else { continue }
            if after.isLinked(id), !before.isLinked(id) { news.append(UserLinked(installId: id, userId: user)) }
            if before.isLinked(id), !after.isLinked(id), before.install(id)?.user == user {
                news.append(UserUnlinked(installId: id, userId: user))
            }
            switch (before.isRemoteEnabled(id), after.isRemoteEnabled(id)) {
            case (true, false):
                news.append(UserDeactivated(installId: id, userId: user, cause: Self.cause(command)))
            case (false, true): news.append(UserActivated(installId: id, userId: user))
            default: break
            }
        }
        return news
    }

    /// The installs that have a user for the SDK to use.
    private var atHome: Set<Scoped<InstallID>> {
        let devices = devices.filter { device in
            if case .awaiting(_, let isCreation, _) = device.value { !isCreation } else { device.value == .present }
        }
        return Set(
            devices.keys.compactMap { key in
                let parts = key.split(separator: "/").map(String.init)
                return parts.count == 2 ? Scoped(app: AppID(parts[0]), id: InstallID(parts[1])) : nil
            })
    }

    /// Who is not disabled or deleted has lost the user to another install.
    private static func cause(_ command: LinkCommand?) -> UserDeactivated.Cause {
        guard case .setInstallStatus(let command)? = command else { return .superseded }
        return command.status == .deleted ? .deleted : .disabled
    }
}
