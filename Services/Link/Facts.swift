// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Runtime
public import Storage
import WireJSON

/// What is known of an install, a user or an external id. L81.
extension LinkService {
    public static func question(_ command: LinkCommand) -> FactsQuery? {
        if case .facts(let query) = command { query } else { nil }
    }

    public func facts(
        about id: String, of app: AppSettings, in transaction: any SQLTransaction
    ) throws -> FactsSubject {
        let store = LinkStore(transaction: transaction)
        var subject = FactsSubject()
        let named = Scoped(app: app.id, id: ExternalID(id))
        let people = try store.persons(userIDs: [UserID(id)]) + store.persons([named])
        let erasures = try store.erasures(of: Set(people.filter(\.isErased).map(\.userID)))
        for person in people where person.app == app.id {
            let erasure = erasures.first { $0.userID == person.userID }
            // Of what the sync service began, its own certificate tells the end.
            let isOwn = erasure.map { $0.sync != .untold } ?? false
            subject.add(
                "user",
                [
                    "userId": .string(person.userID.text), "externalId": person.externalID.map { .string($0.text) },
                    "isErased": person.isErased ? true : nil,
                    "erasedAt": (erasure?.certificate.erasedAt).map { .string($0.rfc3339) },
                    "completedAt": isOwn ? (erasure?.certificate.completedAt).map { .string($0.rfc3339) } : nil,
                    "isUnderWay": erasure.map { !$0.isOver } == true ? true : nil,
                    "isRestricted": person.isRestricted ? true : nil,
                ], person.lastDecision)
            for install in try store.allInstalls(of: [person.userID]).sorted(by: { $0.id < $1.id }) {
                add(install, of: person, to: &subject)
            }
        }
        for hold in try store.holds([Hold.key(app.id, named.id)]) where hold.ended == nil {
            subject.add(
                "hold",
                [
                    "externalId": .string(id), "userId": .string(hold.userID.text),
                    "until": .string(Timestamp(milliseconds: hold.until).rfc3339),
                ])
        }
        for install in try store.installs([Install.Key(app: app.id, id: InstallID(id))]) {
            let person = try store.persons(userIDs: Set([install.userID].compactMap(\.self))).first
            add(install, of: person, to: &subject)
            if install.lastDecision.link != .none { subject.heads.append(install.lastDecision.link) }
        }
        return subject
    }

    /// What is decided about an install leads to its user, and not the other way: before, the install had others.
    private func add(_ install: Install, of person: Person?, to subject: inout FactsSubject) {
        subject.add(
            "install",
            [
                "installId": .string(install.id.text), "device": .string(install.device.kind.rawValue),
                "platform": .string(install.device.platform), "status": .string(install.status.rawValue),
                "userId": install.userID.map { .string($0.text) }, "activity": .string(install.activity.rawValue),
                "inactiveBecause": install.inactiveBecause(of: person).map { .string($0.rawValue) },
                "version": .number(JSONNumber(install.version)),
            ])
    }
}
