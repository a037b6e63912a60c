// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Link
@testable import Runtime

/// A link service to which one command comes after the other.
final class Desk {
    var state = LinkState()
    var count = 0
    /// In milliseconds.
    var now: Int64 = 0
    var told: [AnyHashable] = []
    var message: String?
    var sent: [any CommandMessage] = []

    @discardableResult func run(_ command: LinkCommand, late: Int64 = 0, in app: AppSettings = Fixture.app)
        -> Answer
    {
        count += 1
        now += 1000
        let context = Fixture.context(
            app, id: CommandID("c\(count)"), moment: Moment(milliseconds: now - late), now: now)
        let decision = Fixture.decide(command, state, context)
        state = state.after(decision)
        told = decision.told
        if case .rejected(let rejection) = decision.outcome { message = rejection.message }
        sent = decision.forwards.map(\.command)
        return decision.answer
    }

    func link(_ install: InstallID, _ externalID: ExternalID, _ kind: Device.Kind = .phone) -> UserID? {
        run(
            .registerInstall(
                RegisterInstall(installId: install, device: Fixture.device(kind), user: .none)))
        guard case .link(let result) = run(Fixture.request(install, externalID)) else { return nil }
        return result.userId
    }

    func change(_ user: UserID, to externalID: ExternalID) -> Answer {
        run(
            .changeExternalID(
                ChangeExternalID(userId: user, newExternalId: externalID, author: "kim", reason: "typo")))
    }

    func unlink(_ user: UserID) -> Answer {
        run(.unlink(UnlinkUser(userId: user, author: "kim", reason: "wrong person")))
    }

    func read(_ query: GetLinkedUser, in app: AppSettings = Fixture.app) -> LinkedUserResult? {
        guard case .user(let result) = run(.getUser(query), in: app) else { return nil }
        return result
    }
}
