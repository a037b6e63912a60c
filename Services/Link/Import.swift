// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime

/// Users of another system (docs/link.md "Import").
extension LinkDecider {
    /// L150, L151.
    func importUsers(_ command: ImportUsers) throws(Rejection) -> Decision {
        try requireVouching()
        let users: [ImportedUser] = command.users.compactMap { if case .read(let user) = $0 { user } else { nil } }
        guard app.linking.isEnabled || users.allSatisfy({ $0.externalId == nil }) else {
            throw Rejection(.userLinkingNotConfigured)  // L4
        }
        guard command.events != false || !app.sync.fromLinks else {  // L155
            throw Rejection(
                .invalidRequest, "data.events: in an app with fromLinks the sync service has to hear of links.")
        }
        var draft = ImportDraft(state, context, isUpsert: command.upsert == true, tells: command.events != false)
        let results = command.users.enumerated().map { index, element in draft.take(element, index) }
        return draft.decision(ImportResult(results: results))
    }
}

/// What the elements of a list have come to, over what was loaded.
private struct ImportDraft {
    private let state: LinkState
    private let context: DecisionContext
    private let isUpsert: Bool
    /// Whether events tell of it.
    private let tells: Bool

    private var persons: [UserID: Person] = [:]
    private var names: [ExternalID: UserID] = [:]
    private var installs: [Install.Key: Install] = [:]
    private var installKeys: [UserID: [Install.Key]] = [:]
    /// In the order in which they came.
    private var changes: [LinkState.Change] = []
    private var events: [any EventMessage] = []
    /// Rows that an element relied on which changes nothing.
    private var reliedOn: [LinkState.Change] = []

    /// Why nothing is done of an element.
    private struct Refusal: Error {
        var reason: ImportConflict
        /// The rows that say so.
        var rows: [LinkState.Change] = []
    }

    init(_ state: LinkState, _ context: DecisionContext, isUpsert: Bool, tells: Bool) {
        self.state = state
        self.context = context
        self.isUpsert = isUpsert
        self.tells = tells
    }

    /// L158. A decision that changes anything writes all that it relied on, also for the elements that change nothing: two lists
    /// that name the same people meet in their rows (docs/decisions/0003-isolation.md).
    func decision(_ result: ImportResult) -> LinkDecider.Decision {
        guard !changes.isEmpty else { return LinkDecider.Decision(.succeeded(result)) }
        // What was changed later than it was relied on stays changed.
        let untouched = reliedOn.filter { row in
            switch row {
            case .person(let person): persons[person.key] == nil
            case .install(let install): installs[install.key] == nil
            default: true
            }
        }
        return LinkDecider.Decision(.succeeded(result), changes: changes + untouched, events: events)
    }

    mutating func take(_ element: ListElement<ImportedUser>, _ index: Int) -> ImportResult.Element {
        let user: ImportedUser
        switch element {
        case .unreadable(_, let problem): return .init(index: index, invalid: problem)
        case .read(let read): user = read
        }
        if let problem = user.problem ?? problem(of: user.externalId) { return .init(index: index, invalid: problem) }
        do throws(Refusal) {
            return .init(index: index, outcome: try bring(user))
        } catch {
            reliedOn += error.rows
            return .init(index: index, outcome: .conflict, reason: error.reason)
        }
    }

    /// L3. White space around it, where it would make another person.
    private func problem(of externalID: ExternalID?) -> String? {
        guard let externalID, !context.app.linking.nobody.contains(externalID.text) else { return nil }
        do throws(Rejection) {
            try context.app.linking.check(externalID: externalID)
            return nil
        } catch {
            return error.message
        }
    }

    private mutating func bring(_ user: ImportedUser) throws(Refusal) -> ImportOutcome {
        if let externalID = user.externalId, context.app.linking.nobody.contains(externalID.text) {
            throw Refusal(reason: .valueNamesNobody)
        }
        if let time = user.createdAt, time.milliseconds > context.now.milliseconds + ImportList.clockTolerance {
            throw Refusal(reason: .badTime)
        }
        guard user.brought.count(where: { $0.isActive == true }) < 2 else { throw Refusal(reason: .twoActiveInstalls) }
        guard let known = person(user.userId) else { return try create(user) }
        guard known.app == context.app.id else { throw Refusal(reason: .userIDTaken) }
        guard !known.isErased else { throw Refusal(reason: .userErased, rows: [.person(known)]) }
        // L152. By what the element was, and not by what became of it since.
        guard known.imported?.element != user.fingerprint else {
            reliedOn.append(.person(known))
            return .same
        }
        return try add(user, to: known)
    }

    // MARK: Somebody new

    private mutating func create(_ user: ImportedUser) throws(Refusal) -> ImportOutcome {
        if let externalID = user.externalId { try checkName(externalID, of: user.userId) }
        let known = user.brought.compactMap { install($0.installId) }
        if !isUpsert, !known.isEmpty { throw Refusal(reason: .installTaken, rows: known.map { .install($0) }) }
        let new = user.brought.filter { install($0.installId) == nil }
        guard new.count <= LinkDecider.mostRepaired else { throw Refusal(reason: .limitExceeded) }
        var person = Person(
            userID: user.userId, app: context.app.id, createdAt: user.createdAt?.milliseconds ?? moment)
        if let externalID = user.externalId { person.setExternalID(externalID, at: context.moment) }
        put(person, by: user)
        reliedOn += known.map { .install($0) }
        place(new, of: user, person, isNew: true)
        return .created
    }

    /// L66, L68.
    private func checkName(_ externalID: ExternalID, of userID: UserID) throws(Refusal) {
        if let owner = names[externalID].flatMap(person) ?? state.person(app: context.app.id, externalID: externalID) {
            throw Refusal(reason: .externalIDTaken, rows: [.person(owner)])
        }
        if let hold = state.hold(context.app.id, externalID), hold.keeps(context.now) {
            throw Refusal(reason: .externalIDTaken, rows: [.hold(hold)])
        }
    }

    // MARK: Somebody known

    private mutating func add(_ user: ImportedUser, to person: Person) throws(Refusal) -> ImportOutcome {
        let named = user.brought.compactMap { install($0.installId) }
        let rows = [LinkState.Change.person(person)] + named.map { .install($0) }
        let isSame =
            user.externalId == person.externalID && named.count == user.brought.count
            && named.allSatisfy { $0.userID == person.userID }
        guard !isSame else {
            reliedOn += rows
            return .same
        }
        guard isUpsert else { throw Refusal(reason: .differs, rows: rows) }
        guard user.externalId == nil || user.externalId == person.externalID else {
            throw Refusal(reason: .immutable, rows: rows)
        }
        let new = user.brought.filter { install($0.installId) == nil }
        let mine = installs(of: person.userID)
        let most = person.externalID == nil ? 1 : LinkDecider.mostRepaired
        guard mine.count + new.count <= most else { throw Refusal(reason: .limitExceeded, rows: rows) }
        reliedOn += rows
        guard !new.isEmpty else { return .same }
        put(person, by: user)
        place(new, of: user, person, isNew: false)
        return .changed
    }

    // MARK: Installs

    /// L153, L154.
    private mutating func place(_ new: [ImportedUser.Install], of user: ImportedUser, _ person: Person, isNew: Bool) {
        let before = installs(of: person.userID)
        // Whoever was seen here already is where they were seen.
        let chosen = before.isEmpty ? new.first { isActive($0, of: user) } : nil
        let active =
            before.first(where: \.isActive)?.device.kind ?? chosen.flatMap { $0.isUsable ? $0.device.kind : nil }
        let brought = new.map { one in
            var install = Install(id: one.installId, app: context.app.id, device: one.device, version: 1)
            (install.status, install.userID, install.personSince) = (one.status ?? .enabled, person.userID, moment)
            install.activity =
                one == chosen
                ? one.activity : one.device.kind == .tablet && active == .phone ? .standby : .deactivated
            if person.externalID == nil { (install.turn, install.isImported) = (context.moment, true) }
            return install
        }
        for install in brought {
            installs[install.key] = install
            installKeys[person.userID, default: []].append(install.key)
            changes.append(.install(install))
        }
        guard tells else { return }  // L159
        let used = (before + brought).first { $0.isUsed(by: person) }?.id
        events += brought.enumerated().map { place, install -> any EventMessage in
            guard let externalID = person.externalID else {
                return InstallRegistered(
                    installId: install.id, device: install.device, userId: person.userID, cause: .importing)
            }
            return Linked(
                installId: install.id, externalId: externalID, userId: person.userID,
                personCreated: isNew && place == 0,
                activeInstallId: used, deactivatedInstallIds: [], version: install.version,
                linkedAt: person.linkedAt.map(Timestamp.init(milliseconds:)), cause: .importing)
        }
    }

    /// The only install of a user is the active one, unless it is said that it is not.
    private func isActive(_ install: ImportedUser.Install, of user: ImportedUser) -> Bool {
        install.isActive ?? (user.brought.count == 1)
    }

    // MARK: Rows

    private var moment: Int64 { context.moment.milliseconds }

    private func person(_ userID: UserID) -> Person? { persons[userID] ?? state.person(userID: userID) }

    private func install(_ id: InstallID) -> Install? {
        let key = Install.Key(app: context.app.id, id: id)
        return installs[key] ?? state.install(key)
    }

    private func installs(of userID: UserID) -> [Install] {
        state.installs(of: userID) + (installKeys[userID] ?? []).compactMap { installs[$0] }
    }

    private mutating func put(_ person: Person, by user: ImportedUser) {
        var person = person
        // Who grew here and is added to is no imported one: a command that made them comes to them again (L156).
        if self.person(person.userID) == nil || person.imported != nil {
            person.imported = Imported(at: moment, element: user.fingerprint)
        }
        persons[person.userID] = person
        if let externalID = person.externalID { names[externalID] = person.userID }
        changes.append(.person(person))
    }
}

extension ImportedUser.Install {
    fileprivate var isUsable: Bool { (status ?? .enabled) == .enabled }

    /// Of the one that its user is active on, as the platform lets it (L23, L25).
    fileprivate var activity: Install.Activity {
        switch status ?? .enabled {
        case .enabled: .active
        case .disabled: .suspended
        case .deleted: .deactivated
        }
    }
}

/// How somebody came here from another system.
struct Imported: Sendable, Hashable {
    /// The moment of the command, in milliseconds since 1970.
    var at: Int64
    /// ``Contracts/ImportedElement/fingerprint``.
    var element: Int64
}
