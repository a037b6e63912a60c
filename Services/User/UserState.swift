// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
import Storage

/// The installs, codes and users that a batch touches.
public struct UserState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Installation)
        /// The install is in the state `none` again; nothing of it is kept.
        case remove(InstallKey)
        case code(AuthCode)
        case removeCode(CodeDigest)
        /// The user is on an install, or is erased. Written by every decision that relies on the user not being
        /// erased, so that an erasure at the same moment meets it (docs/decisions/0003-isolation.md).
        case user(id: UserID, isErased: Bool)
    }

    private(set) var installs = Table<Installation>()
    private(set) var codes = Table<AuthCode>()
    /// The users that are erased.
    private(set) var erased: Set<UserID> = []

    /// Where to look for an install by the command it waits for, and for the codes of an external id: a batch has up to
    /// a thousand of each, and looking at all of them for every command would take longer than all the rest. Entries
    /// that are out of date stay; who looks there checks.
    private var awaited: [Scoped<CommandID>: InstallKey] = [:]
    private var codesOf: [Scoped<ExternalID>: Set<CodeDigest>] = [:]

    /// Whether the user's row stays, of those whose row is to be written.
    private(set) var changedUsers: [UserID: Bool] = [:]

    public init(installs: [Installation] = [], codes: [AuthCode] = [], erased: [UserID] = []) {
        load(installs)
        load(codes)
        load(erased: erased)
    }

    func install(_ app: AppID, _ id: InstallID) -> Installation? { installs[InstallKey(app: app, id: id)] }

    /// The install that waits for the answer to the command with this id.
    func install(_ app: AppID, awaiting forward: CommandID) -> Installation? {
        guard let key = awaited[Scoped(app: app, id: forward)], let install = installs[key],
            install.forward == forward
        else { return nil }
        return install
    }

    /// The installs that the user is on, by id.
    func installs(_ app: AppID, of userID: UserID) -> [Installation] {
        installs.values.filter { install in
            install.facts.userID == userID && install.app == app
        }.sorted { $0.key < $1.key }
    }

    func code(_ digest: CodeDigest) -> AuthCode? { codes[digest] }

    /// The codes of the external id, in the order of their digests.
    func codes(_ app: AppID, _ externalID: ExternalID) -> [CodeDigest] {
        (codesOf[Scoped(app: app, id: externalID)] ?? []).sorted()
    }

    /// How many codes of the external id can still be redeemed.
    func outstandingCodes(_ app: AppID, _ externalID: ExternalID, now: Timestamp) -> Int {
        (codesOf[Scoped(app: app, id: externalID)] ?? []).count { digest in
            codes[digest]?.refusal(app: app, now: now) == nil
        }
    }

    func isErased(_ userID: UserID) -> Bool { erased.contains(userID) }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Installation]) {
        for install in rows where installs.load(install) { index(install) }
    }

    mutating func load(_ rows: [AuthCode]) {
        for code in rows where codes.load(code) { index(code) }
    }

    mutating func load(erased users: [UserID]) {
        erased.formUnion(users)
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install):
            release(install.key, unless: install.facts.userID)
            installs.put(install)
            index(install)
        case .remove(let key):
            release(key)
            installs.remove(key)
        case .code(let code):
            codes.put(code)
            index(code)
        case .removeCode(let digest):
            if let code = codes.remove(digest) { codesOf[Scoped(app: code.app, id: code.externalID)]?.remove(digest) }
        case .user(let id, let isErased):
            if isErased { erased.insert(id) }
            changedUsers[id] = true
        }
    }

    private mutating func index(_ install: Installation) {
        if let forward = install.forward { awaited[Scoped(app: install.app, id: forward)] = install.key }
    }

    private mutating func index(_ code: AuthCode) {
        codesOf[Scoped(app: code.app, id: code.externalID), default: []].insert(code.digest)
    }

    /// The user leaves the install. Unless it is erased, nothing of it has to be kept.
    private mutating func release(_ key: InstallKey, unless stays: UserID? = nil) {
        guard let userID = installs[key]?.facts.userID, userID != stays
        else { return }
        changedUsers[userID] = erased.contains(userID)
    }
}
