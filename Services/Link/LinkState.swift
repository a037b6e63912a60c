// SPDX-License-Identifier: Apache-2.0

import Contracts
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
        case erasureOver(userID: String)
    }

    private(set) var installs = Table<Install>()
    private(set) var persons = Table<Person>()
    /// By user id.
    private(set) var erasures = Table<Erasure>()

    /// By external id.
    private var userIDs: [Scoped<ExactText>: ExactText] = [:]
    private var installIDs: [ExactText: Set<ExactText>] = [:]
    /// By the forward that is waited for. Entries that are out of date stay; who looks there checks.
    private var awaited: [ExactText: ExactText] = [:]

    public init(installs: [Install] = [], persons: [Person] = [], erasures: [Erasure] = []) {
        load(installs)
        load(persons)
        load(erasures)
    }

    func install(_ id: String) -> Install? { installs[ExactText(id)] }

    func person(userID: String) -> Person? { persons[ExactText(userID)] }

    func person(app: String, externalID: String) -> Person? {
        userIDs[Scoped(app: app, id: externalID)].flatMap { persons[$0] }
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
        case .erasureOver(let userID): erasures.remove(ExactText(userID))
        }
    }

    private mutating func index(_ install: Install, insteadOf previous: Install?) {
        if let userID = previous?.userID { installIDs[ExactText(userID)]?.remove(install.key) }
        if let userID = install.userID { installIDs[ExactText(userID), default: []].insert(install.key) }
    }

    private mutating func index(_ person: Person, insteadOf previous: Person?) {
        if let previous, let externalID = previous.externalID {
            userIDs[Scoped(app: previous.app, id: externalID)] = nil
        }
        if let externalID = person.externalID { userIDs[Scoped(app: person.app, id: externalID)] = person.key }
    }

    private mutating func index(_ erasure: Erasure) {
        for forward in [erasure.user.forward, erasure.sync.forward].compactMap({ $0 }) {
            awaited[ExactText(forward)] = erasure.key
        }
    }
}
