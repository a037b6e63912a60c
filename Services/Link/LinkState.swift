// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Runtime

/// The installs, persons and erasures that a batch touches. With a person come its active installs, and all of its
/// installs when a command of the batch erases it.
public struct LinkState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case install(Install)
        case person(Person)
        case erasure(Erasure)
        /// All have forgotten the person.
        case erasureOver(userID: String)
    }

    /// A person's external id within its app.
    struct ExternalKey: Hashable, Sendable {
        var app: ExactText
        var externalID: ExactText

        init(app: String, externalID: String) {
            self.app = ExactText(app)
            self.externalID = ExactText(externalID)
        }
    }

    private(set) var installs: [ExactText: Install] = [:]
    private(set) var persons: [ExactText: Person] = [:]
    private var userIDs: [ExternalKey: ExactText] = [:]
    private var installIDs: [ExactText: Set<ExactText>] = [:]
    /// By user id.
    private(set) var erasures: [ExactText: Erasure] = [:]
    /// By the forward that is waited for. Entries that are out of date stay; who looks there checks.
    private var awaited: [ExactText: ExactText] = [:]

    /// What `save` has to write.
    private(set) var changedInstalls: Set<ExactText> = []
    private(set) var changedPersons: Set<ExactText> = []
    private(set) var changedErasures: Set<ExactText> = []

    public init(installs: [Install] = [], persons: [Person] = [], erasures: [Erasure] = []) {
        installs.forEach { put($0) }
        persons.forEach { put($0) }
        erasures.forEach { put($0) }
    }

    func install(_ id: String) -> Install? { installs[ExactText(id)] }

    func person(userID: String) -> Person? { persons[ExactText(userID)] }

    func person(app: String, externalID: String) -> Person? {
        userIDs[ExternalKey(app: app, externalID: externalID)].flatMap { persons[$0] }
    }

    /// The person's installs that are here, by id.
    func installs(of userID: String) -> [Install] {
        (installIDs[ExactText(userID)] ?? []).sorted().compactMap { installs[$0] }
    }

    func erasure(of userID: String) -> Erasure? { erasures[ExactText(userID)] }

    /// The erasure that waits for the answer to the command with this id.
    func erasure(_ app: String, awaiting forward: String) -> Erasure? {
        let forward = ExactText(forward)
        guard let erasure = awaited[forward].flatMap({ erasures[$0] }), ExactText(erasure.app) == ExactText(app),
            [erasure.user, erasure.sync].contains(where: { $0.forward.map { ExactText($0) } == forward })
        else { return nil }
        return erasure
    }

    /// Adds rows as they stand in the database. Rows that are here already stay as they are.
    mutating func load(_ rows: [Install]) {
        for install in rows where self.install(install.id) == nil { put(install) }
    }

    mutating func load(_ rows: [Person]) {
        for person in rows where self.person(userID: person.userID) == nil { put(person) }
    }

    mutating func load(_ rows: [Erasure]) {
        for erasure in rows where self.erasure(of: erasure.userID) == nil { put(erasure) }
    }

    public mutating func apply(_ change: Change) {
        switch change {
        case .install(let install):
            put(install)
            changedInstalls.insert(ExactText(install.id))
        case .person(let person):
            put(person)
            changedPersons.insert(ExactText(person.userID))
        case .erasure(let erasure):
            put(erasure)
            changedErasures.insert(ExactText(erasure.userID))
        case .erasureOver(let userID):
            erasures[ExactText(userID)] = nil
            changedErasures.insert(ExactText(userID))
        }
    }

    private mutating func put(_ install: Install) {
        let id = ExactText(install.id)
        if let previous = installs[id]?.userID { installIDs[ExactText(previous)]?.remove(id) }
        if let userID = install.userID { installIDs[ExactText(userID), default: []].insert(id) }
        installs[id] = install
    }

    private mutating func put(_ erasure: Erasure) {
        let userID = ExactText(erasure.userID)
        erasures[userID] = erasure
        for forward in [erasure.user.forward, erasure.sync.forward].compactMap({ $0 }) {
            awaited[ExactText(forward)] = userID
        }
    }

    private mutating func put(_ person: Person) {
        let userID = ExactText(person.userID)
        if let previous = persons[userID], let externalID = previous.externalID {
            userIDs[ExternalKey(app: previous.app, externalID: externalID)] = nil
        }
        if let externalID = person.externalID {
            userIDs[ExternalKey(app: person.app, externalID: externalID)] = userID
        }
        persons[userID] = person
    }
}
