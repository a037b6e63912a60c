// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// What the link service said about an install. Never more than this is believed of it: replies and events travel on
/// different topics and overtake each other, and `version` tells which of two is newer.
public struct LinkFacts: Stored, Sendable, Hashable {
    /// A user, as it is on this install.
    public struct KnownUser: Stored, Sendable, Hashable {
        public var id: UserID
        public var isLinked: Bool
        public var isActive: Bool
        /// Whether the user came to life on this install.
        public var isUsersFirst: Bool
        /// Whether the install is a tablet that came when a phone had the user, and was never active.
        public var waitsForPhone = false
        /// Whether what is known of the user is kept and not used.
        public var isRestricted = false
    }

    public var version: Int64
    public var status: InstallStatus
    /// Who is on the install, if anybody is.
    public var user: KnownUser?

    /// Older than anything the link service says.
    public static let nothing = LinkFacts(version: -1, status: .enabled, user: nil)

    init(version: Int64, status: InstallStatus, user: KnownUser?) {
        self.version = version
        self.status = status
        self.user = user
    }

    public init(
        version: Int64, userID: UserID?, isLinked: Bool, isActive: Bool, isUsersFirst: Bool,
        inactiveBecause: InactiveBecause? = nil, status: InstallStatus
    ) {
        self.version = version
        self.status = status
        user = userID.map {
            KnownUser(
                id: $0, isLinked: isLinked, isActive: isActive, isUsersFirst: isUsersFirst,
                waitsForPhone: inactiveBecause == .waitsForPhone, isRestricted: inactiveBecause == .restricted)
        }
    }

    public var userID: UserID? { user?.id }
    public var isLinked: Bool { user?.isLinked ?? false }
    public var isActive: Bool { user?.isActive ?? false }
    public var isUsersFirst: Bool { user?.isUsersFirst ?? false }
    /// U16.
    public var isRemoteEnabled: Bool { isActive && status == .enabled }

    /// U76. The link service says which of its reasons is the strongest; a status that came later counts here too.
    public var inactiveBecause: InactiveBecause? {
        guard let user, !isRemoteEnabled else { return nil }
        if user.isRestricted { return .restricted }  // U95
        if status != .enabled { return .disabled }
        return user.waitsForPhone ? .waitsForPhone : .superseded
    }

    /// The newer of the two.
    func updated(by facts: LinkFacts) -> LinkFacts { facts.version > version ? facts : self }
}

extension LinkFacts {
    /// The answer to `link.establish`.
    init(_ result: LinkResult) {
        self.init(
            version: result.version, userID: result.userId, isLinked: true, isActive: result.isActive,
            isUsersFirst: result.personCreated,
            inactiveBecause: result.isRestricted == true ? .restricted : result.isActive ? nil : .waitsForPhone,
            status: .enabled)
    }

    /// The answer to the other link commands.
    init(_ result: InstallResult) {
        self.init(
            version: result.version, userID: result.userId, isLinked: result.externalId != nil,
            isActive: result.isActive, isUsersFirst: result.isUsersFirst,
            inactiveBecause: result.inactiveBecause, status: result.status)
    }

    init(_ event: Linked) {
        let isActive = event.activeInstallId == event.installId
        self.init(
            version: event.version, userID: event.userId, isLinked: true, isActive: isActive,
            isUsersFirst: event.personCreated,
            inactiveBecause: event.activeInstallId == nil ? .restricted : isActive ? nil : .waitsForPhone,
            status: .enabled)
    }

    /// - Parameter known: for what the event does not tell.
    init(_ event: InstallStatusChanged, _ known: LinkFacts) {
        self.init(
            version: event.version, userID: event.userId, isLinked: event.isLinked, isActive: event.isActive,
            isUsersFirst: known.isUsersFirst, inactiveBecause: event.inactiveBecause, status: event.status)
    }

    init(_ event: InstallDetached, _ known: LinkFacts) {
        self.init(
            version: event.version, userID: nil, isLinked: false, isActive: false, isUsersFirst: false,
            status: known.status)
    }
}

/// What the link service says has happened: on this install, or on another one that the user has moved to. Outside of
/// what goes on here, or in it.
extension UserDecider {
    /// - Parameter read: the facts of the event, given those that are known.
    func heard(of installID: InstallID, _ read: (LinkFacts) -> LinkFacts) -> Decision {
        // We keep no record of the install: what it went through is asked for when it creates a user.
        guard let install = install(installID) else { return Decision(.noted) }
        let facts = read(install.facts)
        guard facts.version > install.facts.version else { return Decision(.noted) }  // U32
        guard let changed = install.knowing(facts) else { return close(install, .noUser) }
        // Where the link service's answer is awaited, that will tell.
        let isAwaited = [.creating, .resetting].contains(changed.phase)
        if !isAwaited, isErased(changed) { return close(changed, .userErased) }
        switch changed.state {
        case .creating, .resetting: return Decision(.noted, changes: put(changed))
        case .present, .linking, .electing:
            return Decision(
                .noted, changes: put(changed), events: changes(from: install.facts, to: facts, install.id))
        }
    }

    /// U92, U93. Codes of an external id that its user gave up name nobody; one that is asked for later is its next owner's.
    func forgetCodes(of externalID: ExternalID?, until moment: Timestamp) -> Decision {
        let codes = externalID.map { state.codes(app.id, $0) } ?? []
        return Decision(.noted, changes: codes.filter { $0.moment <= moment }.map { .removeCode($0.digest) })
    }

    func isErased(_ install: Installation) -> Bool { install.facts.userID.map { state.isErased($0) } ?? false }

    /// What has changed for the SDK of an install that has a user.
    func changes(from before: LinkFacts, to after: LinkFacts, _ installID: InstallID) -> [any EventMessage] {
        guard after.version > before.version, let userID = after.userID else { return [] }
        var events: [any EventMessage] = []
        if after.isLinked, !before.isLinked { events.append(UserLinked(installId: installID, userId: userID)) }  // U28
        if before.isLinked, !after.isLinked, before.userID == userID {
            events.append(UserUnlinked(installId: installID, userId: userID))  // U91
        }
        if before.isRemoteEnabled, !after.isRemoteEnabled {
            let cause: UserDeactivated.Cause =
                switch after.status {
                case .enabled: after.inactiveBecause == .restricted ? .restricted : .superseded  // U15
                case .disabled: .disabled
                case .deleted: .deleted
                }
            events.append(UserDeactivated(installId: installID, userId: userID, cause: cause))
        }
        if !before.isRemoteEnabled, after.isRemoteEnabled {
            events.append(UserActivated(installId: installID, userId: userID))  // U31
        }
        return events
    }
}
