// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// An install as the link service knows it. Install ids are unique across apps, so that an install of another app can
/// be told from an unknown one (L5, L6).
public struct Install: Sendable, Hashable {
    /// What the install is to its person. Kept per install, so that a broken "at most one active" can be seen.
    public enum Activity: String, Sendable, Hashable, CaseIterable {
        /// No person is on the install.
        case none
        case active
        /// A tablet that was linked while a phone had the person; it was never active (L22).
        case standby
        /// Was active until the person moved to another install.
        case deactivated
        /// Was active until the platform disabled it; active again when it is enabled, unless another took over.
        case suspended
    }

    public var id: String
    public var app: String
    public var device: Device
    public var status: InstallStatus
    public var userID: String?
    public var activity: Activity
    /// Whether the person came to life on this install.
    public var isUsersFirst: Bool
    /// Nobody is on the install, and the user service waits for the app's linker: a link request may put a person on it.
    /// One that comes when the linker has failed or expired, or the install was reset, finds it closed.
    public var isOpen: Bool
    /// Counts the changes of status, person and activity, so that whoever hears of two knows which one is newer.
    public var version: Int64

    public init(
        id: String, app: String, device: Device, status: InstallStatus = .enabled, userID: String? = nil,
        activity: Activity = .none, isUsersFirst: Bool = false, isOpen: Bool = false, version: Int64 = 0
    ) {
        self.id = id
        self.app = app
        self.device = device
        self.status = status
        self.userID = userID
        self.activity = activity
        self.isUsersFirst = isUsersFirst
        self.isOpen = isOpen
        self.version = version
    }

    public var isActive: Bool { activity == .active }

    /// The same install with `userID` on it. `isNew` says that the person comes to life with this change.
    public func with(_ userID: String?, _ activity: Activity, isNew: Bool = false) -> Install {
        var install = self
        install.isUsersFirst = isNew || userID != nil && self.userID != nil && isUsersFirst
        install.userID = userID
        install.activity = activity
        install.isOpen = false
        install.version += 1
        return install
    }

    /// What is left of an erased person's install: enough to refuse it for ever, nothing about the person (L36, L37).
    public var tombstone: Install {
        Install(
            id: id, app: app, device: Device(kind: .other, platform: "erased"), status: .deleted, version: version + 1)
    }
}
