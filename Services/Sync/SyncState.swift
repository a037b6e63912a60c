// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
public import Storage

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
        /// The value's row is written as it stands, see `Draft.guardNewlyAnonymous`.
        case touch(IdentityEntry.Key)
        /// The link service's user is gone for good.
        case forgotten(ForgottenUser)
        case erasure(Erasure)
        case erasureDone(CommandKey)
        /// A value that names nobody was passed over.
        case ignored(IdentityType)
    }

    private(set) var profiles: [Profile.Key: Profile] = [:]
    private(set) var identities: [IdentityEntry.Key: IdentityEntry] = [:]
    private(set) var devices: [DeviceRecord.Key: DeviceRecord] = [:]
    private(set) var aliases: [AliasRecord.Key: AliasRecord] = [:]
    private(set) var forgottenUsers: Set<ForgottenUser> = []
    private(set) var erasures: [CommandKey: Erasure] = [:]

    /// What `save` has to write.
    private(set) var storedProfiles: Set<Profile.Key> = []
    private(set) var changedProfiles: Set<Profile.Key> = []
    private(set) var storedIdentities: Set<IdentityEntry.Key> = []
    private(set) var changedIdentities: Set<IdentityEntry.Key> = []
    private(set) var changedDevices: Set<DeviceRecord.Key> = []
    private(set) var changedAliases: Set<AliasRecord.Key> = []
    private(set) var releases: [IdentityEntry.Key: Set<MPID>] = [:]
    private(set) var newlyForgotten: Set<ForgottenUser> = []
    private(set) var changedErasures: Set<CommandKey> = []
    private(set) var ignored: [IdentityType: Int] = [:]

    public init() {}

    func profile(_ app: String, _ mpid: MPID) -> Profile? { profiles[Profile.Key(app: app, mpid: mpid)] }

    func device(_ app: String, _ id: String) -> DeviceRecord {
        let key = DeviceRecord.Key(app: app, id: id)
        return devices[key] ?? DeviceRecord(key: key)
    }

    // MARK: Loading. Rows that are here already stay as they are.

    mutating func load(_ rows: [Profile]) {
        for row in rows where profiles[row.key] == nil {
            profiles[row.key] = row
            storedProfiles.insert(row.key)
        }
    }

    /// - Parameter keys: what was asked for; what has no row is held by nobody.
    mutating func load(_ rows: [IdentityEntry], of keys: Set<IdentityEntry.Key>) {
        for key in keys where identities[key] == nil { identities[key] = IdentityEntry(key: key) }
        for row in rows {
            identities[row.key] = row
            storedIdentities.insert(row.key)
        }
    }

    mutating func load(_ rows: [DeviceRecord]) {
        for row in rows { devices[row.key] = row }
    }

    mutating func load(_ rows: [Erasure]) {
        for row in rows { erasures[row.command] = row }
    }

    mutating func load(forgotten rows: Set<ForgottenUser>) { forgottenUsers.formUnion(rows) }

    mutating func load(_ rows: [AliasRecord]) {
        for row in rows { aliases[row.key] = row }
    }

    // MARK: Changes

    public mutating func apply(_ change: Change) {
        switch change {
        case .profile(let profile):
            profiles[profile.key] = profile
            changedProfiles.insert(profile.key)
        case .identity(let entry):
            identities[entry.key] = entry
            changedIdentities.insert(entry.key)
        case .device(let device):
            devices[device.key] = device
            changedDevices.insert(device.key)
        case .alias(let alias):
            aliases[alias.key] = alias
            changedAliases.insert(alias.key)
        case .aliasDone(let key):
            aliases[key] = nil
            changedAliases.insert(key)
        case .release(let key, let mpid):
            releases[key, default: []].insert(mpid)
        case .touch(let key):
            releases[key, default: []].formUnion([])
        case .forgotten(let user):
            if forgottenUsers.insert(user).inserted { newlyForgotten.insert(user) }
        case .erasure(let erasure):
            erasures[erasure.command] = erasure
            changedErasures.insert(erasure.command)
        case .erasureDone(let command):
            erasures[command] = nil
            changedErasures.insert(command)
        case .ignored(let type):
            ignored[type, default: 0] += 1
        }
    }
}
