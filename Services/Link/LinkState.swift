// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
public import Runtime

/// The installs and persons that a batch touches. With a person come its active installs, and all of its installs when
/// a command of the batch erases it.
public struct LinkState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Install)
        case person(Person)
    }

    /// A person's external id within its app.
    struct ExternalKey: Hashable, Sendable {
        var app: String
        var externalID: String
    }

    private(set) var installs: [String: Install] = [:]
    private(set) var persons: [String: Person] = [:]
    private var userIDs: [ExternalKey: String] = [:]
    private var installIDs: [String: Set<String>] = [:]

    /// What `save` has to write.
    private(set) var changedInstalls: Set<String> = []
    private(set) var changedPersons: Set<String> = []
    public init(installs: [Install] = [], persons: [Person] = []) {
        installs.forEach { put($0) }
        persons.forEach { put($0) }
    }

    func install(_ id: String) -> Install? { installs[id] }

    func person(userID: String) -> Person? { persons[userID] }

    func person(app: String, externalID: String) -> Person? {
        userIDs[ExternalKey(app: app, externalID: externalID)].flatMap { persons[$0] }
    }

    /// The person's installs that are here, by id.
    func installs(of userID: String) -> [Install] {
        (installIDs[userID] ?? []).sorted().compactMap { installs[$0] }
    }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Install]) {
        for install in rows where installs[install.id] == nil { put(install) }
    }

    mutating func load(_ rows: [Person]) {
        for person in rows where persons[person.userID] == nil { put(person) }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install):
            put(install)
            changedInstalls.insert(install.id)
        case .person(let person):
            put(person)
            changedPersons.insert(person.userID)
        }
    }

    private mutating func put(_ install: Install) {
        if let previous = installs[install.id]?.userID { installIDs[previous]?.remove(install.id) }
        if let userID = install.userID { installIDs[userID, default: []].insert(install.id) }
        installs[install.id] = install
    }

    private mutating func put(_ person: Person) {
        if let previous = persons[person.userID], let externalID = previous.externalID {
            userIDs[ExternalKey(app: previous.app, externalID: externalID)] = nil
        }
        if let externalID = person.externalID {
            userIDs[ExternalKey(app: person.app, externalID: externalID)] = person.userID
        }
        persons[person.userID] = person
    }
}
