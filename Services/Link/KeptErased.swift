// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import WireJSON

/// By what an erased person is found again in a replay, where another command may have made it, so that its user id is
/// another one (L80).
struct ErasedName: Codable, Hashable {
    var externalId: ExternalID
    /// Until when it was the person's. Who was linked with it later is somebody else.
    var until: Timestamp
}

extension KeepErasedPerson {
    private static let purpose = "keep-erased-person"

    /// - Returns: `nil` when nothing can be closed.
    init?(_ names: [ErasedName], of userID: UserID, erasedAt: Timestamp, _ context: DecisionContext) {
        guard let text = try? WireJSONEncoder().encode(names),
            let whom = context.secrets.closed(text, Self.purpose, [context.app.id.text])
        else { return nil }
        self.init(userId: userID, erasedAt: erasedAt, whom: whom.hex)
    }

    /// - Returns: `nil` when it was closed with another store's salt.
    func names(_ context: DecisionContext) -> [ErasedName]? {
        guard let closed = [UInt8](hex: whom),
            let text = context.secrets.opened(closed, Self.purpose, [context.app.id.text])
        else { return nil }
        return try? WireJSONDecoder().decode([ErasedName].self, from: text)
    }
}

extension LinkDecider {
    /// What the service tells itself of whom it erases (L80).
    /// - Parameter number: how much it tells itself beside that.
    func keeping(_ person: Person, goneAt moment: Timestamp, _ number: Int = 0) throws(Rejection) -> [DueCommand] {
        var names = person.former.map { ErasedName(externalId: $0.externalId, until: min($0.until, moment)) }
        if let externalID = person.externalID {
            // Erased by its id, it goes though it was linked since.
            let linked = Timestamp(milliseconds: person.linkedAt ?? moment.milliseconds)
            names.append(ErasedName(externalId: externalID, until: max(moment, linked)))
        }
        if names.isEmpty { return [] }
        guard let command = KeepErasedPerson(names, of: person.userID, erasedAt: moment, context) else {
            throw Rejection(.internalError)
        }
        // Its id is below zero, apart from what is sent to others.
        return [DueCommand(app: app.id, id: context.forwardID(-1 - number), dueAt: moment, command: command)]
    }

    /// L80. Mostly nobody is left: the erasure itself has found the person. Of its services, none waits for an answer.
    func keepErased(_ command: KeepErasedPerson) throws(Rejection) -> Decision {
        guard let names = command.names(context) else {
            throw Rejection(
                .validationError, "whom was not closed with the salt of this store: replay with the salts of before.")
        }
        var found: [UserID: Person] = [:]
        for name in names {
            guard let person = state.person(app: app.id, externalID: name.externalId),
                person.linkedAt ?? .min <= name.until.milliseconds
            else { continue }
            found[person.userID] = person
        }
        var decision = Decision(.noted)
        for (number, person) in found.values.sorted(by: { $0.userID < $1.userID }).enumerated() {
            decision.eraseUnasked(
                person, erasure(of: person, at: command.erasedAt), state, command.erasedAt,
                context.forwardID(2 * number), context.forwardID(2 * number + 1))
        }
        return decision
    }
}
