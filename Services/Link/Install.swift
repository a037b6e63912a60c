// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
public import Storage

/// An install as the link service knows it. It belongs to its app: another app may give the same id to an install of its
/// own (L47).
public struct Install: Sendable, Hashable {
    public typealias Key = Scoped<InstallID>

    /// An install that lost the person to another one, as it was left.
    public struct Superseded: Sendable, Hashable {
        var installID: InstallID
        /// An install that has changed since is not what was left any more.
        var version: Int64
        var wasSuspended: Bool

        init(installID: InstallID, version: Int64, wasSuspended: Bool) {
            self.installID = installID
            self.version = version
            self.wasSuspended = wasSuspended
        }

        /// - Parameters:
        ///   - install: as it was.
        ///   - left: as it is without the person.
        init(_ install: Install, as left: Install) {
            self.init(installID: left.id, version: left.version, wasSuspended: install.activity == .suspended)
        }
    }

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
        case suspended = "active-once-enabled"
    }

    public var id: InstallID
    public var app: AppID
    public var device: Device
    public var status: InstallStatus
    public var userID: UserID?
    public var activity: Activity
    /// Whether the person came to life on this install.
    public var isUsersFirst: Bool
    /// Nobody is on the install, and the user service waits for the app's linker: a link request may put a person on it.
    /// One that comes when the linker has failed or expired, or the install was reset, finds it closed.
    public var isOpen: Bool
    /// Counts the changes of status, person and activity, so that whoever hears of two knows which one is newer.
    public var version: Int64
    public var lastDecision = LastDecision()
    /// When the present turn began: the linker's, or that of a person without an external id (L45).
    public var turn: Moment?
    /// Its person, who has no external id, was imported with it, and no creation has been here yet (L157).
    var isImported = false
    /// The moment of the command that brought its person, in milliseconds since 1970 (L77).
    var personSince: Int64?
    /// From whom this install took its person over, the latest first: they get it back if the creation here fails (L50).
    public var superseded: [Superseded] = []
    /// The moment at which the last person on it was erased, in milliseconds since 1970: what is of before does not count
    /// any more (L62).
    public var erasedAt: Int64?

    public init(
        id: InstallID, app: AppID, device: Device, status: InstallStatus = .enabled, userID: UserID? = nil,
        activity: Activity = .none, isUsersFirst: Bool = false, isOpen: Bool = false, version: Int64 = 0,
        turn: Moment? = nil, erasedAt: Int64? = nil
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
        self.turn = turn
        self.erasedAt = erasedAt
    }

    public var isActive: Bool { activity == .active }

    /// Whether its person is active on it, or would be if it were not disabled (L49).
    var hasItsPerson: Bool { isActive || activity == .suspended }

    /// Whether nobody has used the install since its person was erased.
    var isErased: Bool { erasedAt != nil && userID == nil && device == Self.noDevice }

    private static let noDevice = Device(kind: .other, platform: "erased")

    /// The same install with `userID` on it. `isNew` says that the person comes to life with this change.
    public func with(_ userID: UserID?, _ activity: Activity, isNew: Bool = false) -> Install {
        var install = self
        install.isUsersFirst = isNew || userID != nil && self.userID != nil && isUsersFirst
        install.userID = userID
        install.activity = activity
        install.isOpen = false
        install.isImported = false
        install.version += 1
        install.turn = nil
        if userID != self.userID { (install.superseded, install.personSince) = ([], nil) }
        return install
    }

    /// What is left of an erased person's install: nothing about the person, and a phone that can be used again (L36, L62).
    public func erased(at moment: Timestamp) -> Install {
        Install(
            id: id, app: app, device: Self.noDevice, status: status, version: version + 1,
            erasedAt: max(moment.milliseconds, erasedAt ?? .min))
    }
}

extension Install: SQLKeyedRecord {
    public static let table = SQLTable<Install>("installs")
    public static var blank: Install { Install(id: "", app: "", device: Device(kind: .other, platform: "")) }

    public var key: Key { Key(app: app, id: id) }

    public mutating func columns(_ columns: SQLColumns) throws(StorageError) {
        try columns.column("app", &app, .key)
        try columns.column("install_id", &id, .key)
        try columns.column("kind", &device.kind)
        try columns.column("platform", &device.platform)
        try columns.column("model", &device.model)
        try columns.column("os_version", &device.osVersion)
        try columns.column("status", &status)
        try columns.column("user_id", &userID)
        try columns.column("activity", &activity)
        try columns.column("is_users_first", &isUsersFirst)
        try columns.column("version", &version)
        try columns.column("is_open", &isOpen)
        try columns.column("erased_at", &erasedAt)
        var (began, isBrokers) = (turn?.milliseconds, turn?.isBrokers ?? false)
        try columns.column("turn_began", &began)
        try columns.column("turn_is_brokers", &isBrokers)
        try columns.column("person_since", &personSince)
        try columns.column("is_imported", &isImported)
        turn = began.map { Moment(milliseconds: $0, isBrokers: isBrokers) }
        var text = superseded.isEmpty ? nil : Superseded.text(superseded)
        try columns.column("superseded", &text)
        if columns.areRead { superseded = try text.map(Superseded.read) ?? [] }
        try columns.lastDecision(&lastDecision)
    }
}

/// How they stand in their column, one after the other: `3,0,36:` is version 3, not suspended, and an id of 36 bytes, which
/// follows. JSON took a hundredth of what a link request costs.
extension Install.Superseded {
    static func text(_ list: [Self]) -> String {
        var text = ""
        for one in list {
            text += "\(one.version),\(one.wasSuspended ? 1 : 0),\(one.installID.text.utf8.count):\(one.installID.text)"
        }
        return text
    }

    /// - Throws: `StorageError` for what ``text(_:)`` did not write.
    static func read(_ text: String) throws(StorageError) -> [Self] {
        var list: [Self] = []
        var rest = text.utf8[...]
        while let colon = rest.firstIndex(of: UInt8(ascii: ":")) {
            let numbers = rest[..<colon].split(separator: UInt8(ascii: ",")).map { Int64(Substring($0)) }
            rest = rest[rest.index(after: colon)...]
            guard numbers.count == 3, let version = numbers[0], let flag = numbers[1], let length = numbers[2],
                (0...Int64(rest.count)).contains(length), let id = String(rest.prefix(Int(length)))
            else { throw StorageError(kind: .invalid, message: "column superseded cannot be read") }
            list.append(Self(installID: InstallID(id), version: version, wasSuspended: flag == 1))
            rest = rest.dropFirst(Int(length))
        }
        guard rest.isEmpty else { throw StorageError(kind: .invalid, message: "column superseded cannot be read") }
        return list
    }
}
