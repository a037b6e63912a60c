// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

/// What the commands of a batch need to have loaded, gathered in one pass.
struct LinkWanted {
    /// An external id in an app.
    typealias Name = Scoped<ExternalID>

    private(set) var installs: [Install.Key] = []
    /// Those that are to be there: where the app does not know them, another one may.
    private(set) var known: [Install.Key] = []
    /// Those that a creation is to link as tablets.
    private(set) var tablets: [Install.Key] = []
    private(set) var names: Set<Name> = []
    /// Those that somebody is to have who may not have them yet.
    private(set) var mayBeHeld: [Name] = []
    private(set) var userIDs: Set<UserID> = []
    /// The users that lists name.
    private(set) var imported: Set<UserID> = []
    /// The places of commands that may bring a person to life, and what it would be called.
    private(set) var creators: [(place: Int, name: Name?)] = []
    /// Who is erased, by either name.
    private(set) var erased: Set<UserID> = []
    private(set) var erasedNames: [Name] = []
    /// The commands to other services that are answered.
    private(set) var forwards: Set<CommandID> = []
    private(set) var erases = false
    private(set) var changesName = false
    /// Whether a command may take an external id from its person.
    private(set) var freesNames = false
    /// Whether all installs of the persons are to be loaded.
    private(set) var touchesAll = false

    mutating func note(_ command: LinkCommand, _ place: Int, _ app: AppID) {
        if let id = command.installID {
            let key = Install.Key(app: app, id: id)
            installs.append(key)
            if !command.makesInstall { known.append(key) }
            if command.linksTablet { tablets.append(key) }
        }
        let name = command.externalID.map { Name(app: app, id: $0) }
        if let name { note(name, command) }
        if let former = command.formerExternalID { note(Name(app: app, id: former), command) }
        if let userID = command.userID {
            userIDs.insert(userID)
            if command.erases { erased.insert(userID) }
        }
        if command.mayCreatePerson { creators.append((place, name)) }
        if case .answered(let answer) = command { forwards.insert(answer.forward) }
        if case .importUsers(let list) = command { note(list, app) }
        erases = erases || command.erases
        changesName = changesName || command.changesExternalID
        freesNames = freesNames || command.erases || command.isAboutWholePerson
        touchesAll = touchesAll || command.erases || command.givesBack || command.isAboutWholePerson
    }

    /// Who is added to is looked at on all installs.
    private mutating func note(_ list: ImportUsers, _ app: AppID) {
        for case .read(let user) in list.users {
            imported.insert(user.userId)
            installs += user.brought.map { Install.Key(app: app, id: $0.installId) }
            guard let name = user.externalId.map({ Name(app: app, id: $0) }) else { continue }
            names.insert(name)
            mayBeHeld.append(name)
        }
        if list.upsert == true { touchesAll = true }
    }

    private mutating func note(_ name: Name, _ command: LinkCommand) {
        names.insert(name)
        if command.mayBeHeld { mayBeHeld.append(name) }
        if command.erases { erasedNames.append(name) }
    }
}
