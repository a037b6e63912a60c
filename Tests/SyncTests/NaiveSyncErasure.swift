// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Erasure in the naive model, and the others that have their part in it.
extension NaiveSyncModel {
    /// An erasure that waits for the others.
    struct Erasing: Hashable {
        var mpids: [MPID]
        /// Who has not answered, by the ids of the commands that were sent to them.
        var open: Set<CommandID>
        var hasFailed = false
    }

    /// The final answer to a command that waited.
    struct Settled: Hashable {
        var command: CommandKey
        var answer: Answer
    }

    mutating func erase(_ command: EraseProfile, _ context: DecisionContext) throws(Refusal) {
        if erasing[context.command] != nil { return }
        var found = [person(command.mpid)].compactMap { $0 }
        if let identity = command.identity {
            if isNobodys(identity.value.text) { throw Refusal(reason: .validationError) }
            found = holders(identity)
        }
        if found.isEmpty { throw Refusal(reason: .notFoundError) }
        askOthers(found, persons: true)
        erase(found, context)
    }

    mutating func forget(_ command: ForgetProfiles, _ context: DecisionContext) {
        if erasing[context.command] != nil { return }
        let found = people.filter { person in
            let isCustomer = person.ids.contains { id in
                command.externalId.map { same(id, Identity(.customerID, IdentityValue($0.text))) } == true
            }
            return isCustomer || person.user != nil && person.user == command.userId
        }
        askOthers(found, persons: false, command.externalId)
        erase(found, context)
        if let user = command.userId { gone.insert(user) }
    }

    private mutating func erase(_ persons: [Person], _ context: DecisionContext) {
        let mpids = persons.map(\.mpid)
        let now = context.now.milliseconds
        gone.formUnion(persons.compactMap(\.user))
        for person in persons where !person.isErased {
            change(person.mpid) {
                $0 = Person(mpid: person.mpid, first: now, last: now, isOrphan: true, isErased: true)
            }
        }
        let ghosts = Set(people.filter(\.isErased).map(\.mpid))
        for (name, device) in devices {
            guard [device.current, device.anonymous].contains(where: { $0.map(mpids.contains) == true }) else {
                continue
            }
            var left = device
            if let current = device.current, mpids.contains(current) { left.current = nil }
            if let anonymous = device.anonymous, mpids.contains(anonymous) { left.anonymous = nil }
            left.users.removeAll { ghosts.contains($0.mpid) }
            devices[name] = left
            if left == Device() {
                devices[name] = nil
                asked[.device(name)] = nil
            }
        }
        aliases = aliases.filter { !mpids.contains($0.value[0]) && !mpids.contains($0.value[1]) }
        let ids = deeds.asked.indices.map { context.forwardID($0) }
        erasing[context.command] = Erasing(mpids: mpids.sorted(), open: Set(ids))
    }

    /// S53, S55: the link service has persons by their external ids, the verification service sessions.
    private mutating func askOthers(_ people: [Person], persons: Bool, _ externalID: ExternalID? = nil) {
        func values(_ type: IdentityType, _ more: [String] = []) -> [IdentityValue] {
            let own = people.flatMap(\.ids).filter { $0.type == type }.map(\.value.text)
            return Set(own + more).map { IdentityValue($0) }.sorted()
        }
        deeds.asked = [
            AnyHashable(
                ForgetSessions(
                    mpids: people.map(\.mpid).sorted(),
                    userIds: values(.customerID, externalID.map { [$0.text] } ?? []), emails: values(.email)))
        ]
        guard persons else { return }
        for person in people.sorted(by: { $0.mpid < $1.mpid }) {
            let ids = person.ids.filter { $0.type == .customerID }.map { ExternalID($0.value.text) }
            if ids.isEmpty, let user = person.user { deeds.asked.append(AnyHashable(ForgetPerson(userId: user))) }
            for (place, id) in ids.enumerated() {
                deeds.asked.append(
                    AnyHashable(ForgetPerson(userId: place == 0 ? person.user : nil, externalId: id)))
            }
        }
    }

    /// S55: the last answer ends the erasure, and one that could not makes it fail. Who has answered is not asked again.
    mutating func take(_ answer: ForwardAnswer) {
        guard !answer.isPending,
            let (command, waiting) = erasing.first(where: { $0.value.open.contains(answer.forwardID) })
        else { return }
        var erasing = waiting
        erasing.open.remove(answer.forwardID)
        if !answer.hasSucceeded { erasing.hasFailed = true }
        self.erasing[command] = erasing.open.isEmpty ? nil : erasing
        guard erasing.open.isEmpty else { return }
        let end: Answer =
            erasing.hasFailed ? .rejected(.serverError) : .erased(ErasedProfilesResult(mpids: erasing.mpids))
        deeds.settled = [Settled(command: command, answer: end)]
    }
}
