// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
import Storage

/// The rows that a batch touches. With an identity come the profiles that hold it; with a device its current user and
/// its anonymous one.
public struct SyncState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case profile(Profile)
        case identity(IdentityEntry)
        case device(DeviceRecord)
        case alias(AliasRecord)
        case aliasDone(AliasRecord.Key)
        /// The profile gives the value up. For a value that no command of the batch names, so that its row is not
        /// here and nothing relies on it.
        case release(IdentityEntry.Key, MPID)
        /// The value's row is written as it stands, see `Draft.guardSwitched`.
        case touch(IdentityEntry.Key)
        /// A profile took the link service's user from a link.
        case linked(LinkedUser)
        /// The link service's user is gone for good. Events about them that are read later, because they come over
        /// another topic, must not bring anybody back.
        case forgotten(LinkedUser)
        case erasure(Erasure)
        case erasureDone(CommandKey)
        /// A value that names nobody was passed over.
        case ignored(IdentityType)
    }

    private(set) var profiles = Table<Profile>()
    private(set) var identities = Table<IdentityEntry>()
    private(set) var devices = Table<DeviceRecord>()
    private(set) var aliases = Table<AliasRecord>()
    private(set) var erasures = Table<Erasure>()
    private(set) var erasedUsers: Set<LinkedUser> = []

    /// The MPIDs that the batch's commands give to profiles they make. Each is an HMAC, and asked for several times.
    var newMPIDs: [CommandKey: MPID] = [:]

    /// What `save` has to write beside the tables.
    private(set) var releases: [IdentityEntry.Key: Set<MPID>] = [:]
    private(set) var changedUsers: Set<LinkedUser> = []
    private(set) var ignored: [IdentityType: Int] = [:]

    public init() {}

    func profile(_ app: AppID, _ mpid: MPID) -> Profile? { profiles[Profile.Key(app: app, id: mpid)] }

    /// See ``Runtime/DecisionContext/newMPID(_:)``.
    func newMPID(_ context: DecisionContext, _ counter: Int) -> MPID {
        if counter == 0, let mpid = newMPIDs[context.command] { return mpid }
        return context.newMPID(counter)
    }

    func device(_ app: AppID, _ id: DeviceID) -> DeviceRecord {
        let key = DeviceRecord.Key(app: app, id: id)
        return devices[key] ?? DeviceRecord(key: key)
    }

    // MARK: Loading. Rows that are here already stay as they are.

    mutating func load(_ rows: [Profile]) { rows.forEach { profiles.load($0) } }

    /// - Parameter keys: what was asked for; what has no row is held by nobody.
    mutating func load(_ rows: [IdentityEntry], of keys: Set<IdentityEntry.Key>) {
        rows.forEach { identities.load($0) }
        for key in keys { identities.load(IdentityEntry(key: key), isStored: false) }
    }

    mutating func load(_ rows: [DeviceRecord]) { rows.forEach { devices.load($0) } }

    mutating func load(_ rows: [AliasRecord]) { rows.forEach { aliases.load($0) } }

    mutating func load(_ rows: [Erasure]) { rows.forEach { erasures.load($0) } }

    mutating func load(erased users: Set<LinkedUser>) { erasedUsers.formUnion(users) }

    // MARK: Changes

    public mutating func apply(_ change: Change) {
        switch change {
        case .profile(let profile): profiles.put(profile)
        case .identity(let entry): identities.put(entry)
        case .device(let device): devices.put(device)
        case .alias(let alias): aliases.put(alias)
        case .aliasDone(let key): aliases.remove(key)
        case .release(let key, let mpid):
            releases[key, default: []].insert(mpid)
        case .touch(let key):
            releases[key, default: []].formUnion([])
        case .linked(let user): changedUsers.insert(user)
        case .forgotten(let user):
            if erasedUsers.insert(user).inserted { changedUsers.insert(user) }
        case .erasure(let erasure): erasures.put(erasure)
        case .erasureDone(let command): erasures.remove(command)
        case .ignored(let type):
            ignored[type, default: 0] += 1
        }
    }
}
