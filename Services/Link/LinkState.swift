// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
import Storage

/// The installs, persons and erasures that a batch touches. With a person come its active installs, and all of its
/// installs when a command of the batch erases it.
public struct LinkState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Install)
        case person(Person)
        case erasure(Erasure)
        /// All have forgotten the person.
        case erasureOver(userID: UserID)
    }

    private(set) var installs = Table<Install>()
    private(set) var persons = Table<Person>()
    /// By user id.
    private(set) var erasures = Table<Erasure>()

    /// By external id.
    private var userIDs: [Scoped<ExternalID>: UserID] = [:]
    private var installIDs: [UserID: Set<InstallID>] = [:]
    /// By the forward that is waited for. Entries that are out of date stay; who looks there checks.
    private var awaited: [CommandID: UserID] = [:]

    public init(installs: [Install] = [], persons: [Person] = [], erasures: [Erasure] = []) {
        load(installs)
        load(persons)
        load(erasures)
    }

    func install(_ id: InstallID) -> Install? { installs[id] }

    func person(userID: UserID) -> Person? { persons[userID] }

    func person(app: AppID, externalID: ExternalID) -> Person? {
        userIDs[Scoped(app: app, id: externalID)].flatMap { persons[$0] }
    }

    /// The person's installs that are here, by id.
    func installs(of userID: UserID) -> [Install] {
        (installIDs[userID] ?? []).sorted().compactMap { installs[$0] }
    }

    func erasure(of userID: UserID) -> Erasure? { erasures[userID] }

    /// The erasure that waits for the answer to the command with this id.
    func erasure(_ app: AppID, awaiting forward: CommandID) -> Erasure? {
        guard let erasure = awaited[forward].flatMap({ erasures[$0] }), erasure.app == app,
            [erasure.user, erasure.sync].contains(where: { $0.forward == forward })
        else { return nil }
        return erasure
    }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Install]) {
        for install in rows where installs.load(install) { index(install, insteadOf: nil) }
    }

    mutating func load(_ rows: [Person]) {
        for person in rows where persons.load(person) { index(person, insteadOf: nil) }
    }

    mutating func load(_ rows: [Erasure]) {
        for erasure in rows where erasures.load(erasure) { index(erasure) }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install): index(install, insteadOf: installs.put(install))
        case .person(let person): index(person, insteadOf: persons.put(person))
        case .erasure(let erasure):
            erasures.put(erasure)
            index(erasure)
        case .erasureOver(let userID): erasures.remove(userID)
        }
    }

    private mutating func index(_ install: Install, insteadOf previous: Install?) {
        if let userID = previous?.userID { installIDs[userID]?.remove(install.key) }
        if let userID = install.userID { installIDs[userID, default: []].insert(install.key) }
    }

    private mutating func index(_ person: Person, insteadOf previous: Person?) {
        if let previous, let externalID = previous.externalID {
            userIDs[Scoped(app: previous.app, id: externalID)] = nil
        }
        if let externalID = person.externalID { userIDs[Scoped(app: person.app, id: externalID)] = person.key }
    }

    private mutating func index(_ erasure: Erasure) {
        for forward in [erasure.user.forward, erasure.sync.forward].compactMap({ $0 }) {
            awaited[forward] = erasure.key
        }
    }
}

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

    public init(
        id: InstallID, app: AppID, device: Device, status: InstallStatus = .enabled, userID: UserID? = nil,
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
    public func with(_ userID: UserID?, _ activity: Activity, isNew: Bool = false) -> Install {
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

/// A person: the user id the platform gave, and the external id once it is linked. (app, external id) -> user id is
/// 1:1 (L18).
public struct Person: Sendable, Hashable {
    /// 24 lower-case hex characters.
    public var userID: UserID
    public var app: AppID
    /// `nil` for a person that was created unlinked, and for an erased one.
    public var externalID: ExternalID?
    /// An erased person is a tombstone: the id is never used again.
    public var isErased: Bool

    public init(userID: UserID, app: AppID, externalID: ExternalID? = nil, isErased: Bool = false) {
        self.userID = userID
        self.app = app
        self.externalID = externalID
        self.isErased = isErased
    }

    /// L38.
    public var tombstone: Person { Person(userID: userID, app: app, isErased: true) }
}
