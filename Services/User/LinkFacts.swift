// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// What the link service said about an install. Never more than this is believed of it: replies and events travel on
/// different topics and overtake each other, and `version` tells which of two is newer.
public struct LinkFacts: Sendable, Hashable {
    /// A user, as it is on this install.
    public struct KnownUser: Sendable, Hashable {
        public var id: UserID
        public var isLinked: Bool
        public var isActive: Bool
        /// Whether the user came to life on this install.
        public var isUsersFirst: Bool
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
        version: Int64, userID: UserID?, isLinked: Bool, isActive: Bool, isUsersFirst: Bool, status: InstallStatus
    ) {
        self.version = version
        self.status = status
        user = userID.map {
            KnownUser(id: $0, isLinked: isLinked, isActive: isActive, isUsersFirst: isUsersFirst)
        }
    }

    public var userID: UserID? { user?.id }
    public var isLinked: Bool { user?.isLinked ?? false }
    public var isActive: Bool { user?.isActive ?? false }
    public var isUsersFirst: Bool { user?.isUsersFirst ?? false }
    /// U16.
    public var isRemoteEnabled: Bool { isActive && status == .enabled }

    /// The newer of the two.
    func updated(by facts: LinkFacts) -> LinkFacts { facts.version > version ? facts : self }
}

extension LinkFacts {
    /// The answer to `link.establish`.
    init(_ result: LinkResult) {
        self.init(
            version: result.version, userID: result.userId, isLinked: true, isActive: result.isActive,
            isUsersFirst: result.personCreated, status: .enabled)
    }

    /// The answer to the other link commands.
    init(_ result: InstallResult) {
        self.init(
            version: result.version, userID: result.userId, isLinked: result.externalId != nil,
            isActive: result.isActive, isUsersFirst: result.isUsersFirst, status: result.status)
    }

    init(_ event: Linked) {
        self.init(
            version: event.version, userID: event.userId, isLinked: true,
            isActive: event.activeInstallId == event.installId,
            isUsersFirst: event.personCreated, status: .enabled)
    }

    /// - Parameter known: for what the event does not tell.
    init(_ event: InstallStatusChanged, _ known: LinkFacts) {
        self.init(
            version: event.version, userID: event.userId, isLinked: event.isLinked, isActive: event.isActive,
            isUsersFirst: known.isUsersFirst, status: event.status)
    }

    init(_ event: InstallDetached, _ known: LinkFacts) {
        self.init(
            version: event.version, userID: nil, isLinked: false, isActive: false, isUsersFirst: false,
            status: known.status)
    }
}
