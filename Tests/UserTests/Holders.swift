// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime
@testable import User

/// Who was active, told from what is seen of both services: each person's installs in the order in which they became
/// active, until a later one is there for good. Of those that are left when all is quiet, one must be active.
struct Holders {
    private struct Holder: Equatable {
        var install: Install.Key
        /// It was disabled or deleted. What was before it may be meant still, unless its creation ends well.
        var isGone = false
    }

    private var holders: [UserID: [Holder]] = [:]
    /// How often a creation failed while somebody else had been active before.
    private(set) var failures = 0

    /// What the link service has decided.
    mutating func note(_ command: LinkCommand, _ before: LinkState, _ after: LinkState) {
        for install in after.installs.values {
            let old = before.installs[install.key]
            if let user = old?.userID, user != install.userID { remove(install.key, of: user, command) }
            guard let user = install.userID else { continue }
            if install.status != .enabled { set(isGone: true, install.key, of: user) }
            guard install.isActive, old?.isActive != true || old?.userID != user else { continue }
            // Elected anew, it is the latest: of creations that are still open, none began behind it.
            if command.elects { holders[user]?.removeAll { $0.install == install.key } }
            if !set(isGone: false, install.key, of: user) {
                holders[user, default: []].append(Holder(install: install.key))
            }
            // Only creations can fail.
            if case .request = command, old?.isOpen == true { continue }
            if case .establish(let command) = command, command.mode == .create { continue }
            settle(install.key, of: user)
        }
    }

    /// What the user service has told: creations that ended well, also where the install was disabled meanwhile.
    mutating func note(_ decision: UserDecider.Decision, of app: AppID) {
        for settlement in decision.settlements {
            guard case .succeeded(let user as UserResult) = settlement.outcome else { continue }
            settle(Install.Key(app: app, id: user.installId), of: user.userId)
        }
        for event in decision.events {
            switch event {
            case let event as UserCreated: settle(Install.Key(app: app, id: event.installId), of: event.userId)
            case let event as UserRestored: settle(Install.Key(app: app, id: event.installId), of: event.userId)
            case let event as UserActivated: settle(Install.Key(app: app, id: event.installId), of: event.userId)
            default: break
            }
        }
    }

    /// The person is there for good: who was active before is not meant any more.
    private mutating func settle(_ install: Install.Key, of user: UserID) {
        guard let place = holders[user]?.firstIndex(where: { $0.install == install }) else { return }
        holders[user]?.removeFirst(place)
    }

    /// - Returns: false when it never held the person.
    @discardableResult
    private mutating func set(isGone: Bool, _ install: Install.Key, of user: UserID) -> Bool {
        guard let place = holders[user]?.firstIndex(where: { $0.install == install }) else { return false }
        holders[user]?[place].isGone = isGone
        return true
    }

    /// Off the install: by a failure, or because it was itself reset or erased.
    private mutating func remove(_ install: Install.Key, of user: UserID, _ command: LinkCommand) {
        if case .detachInstall(let command) = command, command.cause == .creationFailed,
            holders[user]?.first?.install != install, holders[user]?.contains(where: { $0.install == install }) == true
        {
            failures += 1
        }
        holders[user]?.removeAll { $0.install == install }
    }

    /// Whoever was active stays active until somebody else is. A person who is on one of the `open` installs, whose
    /// creation waits for its linker, is not looked at: only its end decides who is meant.
    func check(_ links: LinkState, open: Set<Install.Key>, _ trace: Comment) throws {
        for (user, holders) in holders.mapValues({ $0.filter { !$0.isGone } })
        where links.person(userID: user)?.isErased == false && !holders.isEmpty {
            let installs = links.installs(of: user)
            if installs.contains(where: { open.contains($0.key) }) { continue }
            let isActive = installs.contains { $0.isActive }
            try #require(isActive, "\(trace.rawValue): \(user) was active on \(holders), is on \(installs)")
        }
    }
}

extension LinkCommand {
    /// Whether it may make an install active that another one has superseded.
    fileprivate var elects: Bool {
        switch self {
        case .request, .establish, .makeActive: true
        default: false
        }
    }
}
