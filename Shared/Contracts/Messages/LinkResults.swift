// SPDX-License-Identifier: Apache-2.0

/// The `result` of a succeeded command.
public protocol CommandResult: Codable, Sendable, Hashable {
    /// Whether it holds a secret, such as an authentication code or a token: a store keeps it only encrypted.
    static var isConfidential: Bool { get }
}

extension CommandResult {
    public static var isConfidential: Bool { false }
}

/// `link.request` and `link.establish`.
public struct LinkResult: CommandResult {
    /// 24 lower-case hex characters.
    public var userId: String
    public var installId: String
    /// False when a phone keeps the person and this tablet is linked but not active (L22).
    public var isActive: Bool
    public var personCreated: Bool
    /// Counts the changes of the install. Replies and events overtake each other; what has the higher version is newer.
    public var version: Int64

    public init(userId: String, installId: String, isActive: Bool, personCreated: Bool, version: Int64) {
        self.userId = userId
        self.installId = installId
        self.isActive = isActive
        self.personCreated = personCreated
        self.version = version
    }
}

/// `link.query`, and the state after `link.register-install`, `link.detach-install` and `link.set-install-status`.
public struct InstallResult: CommandResult {
    public var installId: String
    public var appId: String
    public var userId: String?
    public var externalId: String?
    public var status: InstallStatus
    public var isActive: Bool
    /// Whether the user came to life on this install, rather than being restored on it (L35).
    public var isUsersFirst: Bool
    /// Counts the changes of the install, see ``LinkResult/version``.
    public var version: Int64

    public init(
        installId: String, appId: String, userId: String?, externalId: String?, status: InstallStatus, isActive: Bool,
        isUsersFirst: Bool, version: Int64
    ) {
        self.installId = installId
        self.appId = appId
        self.userId = userId
        self.externalId = externalId
        self.status = status
        self.isActive = isActive
        self.isUsersFirst = isUsersFirst
        self.version = version
    }
}

/// `link.erase-user`.
public struct ErasureResult: CommandResult {
    public var userId: String
    /// Installs that were removed with the person. Zero when the person had been erased before.
    public var installsRemoved: Int

    public init(userId: String, installsRemoved: Int) {
        self.userId = userId
        self.installsRemoved = installsRemoved
    }
}
