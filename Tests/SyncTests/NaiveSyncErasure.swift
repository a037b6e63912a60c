// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Erasure in the naive model, and the others that have their part in it.
extension NaiveSyncModel {
    /// An erasure that waits for the others.
    struct Erasing: Hashable {
        var gone: Gone
        /// As of when somebody is gone.
        var end: Int64
        /// Who has not answered, by the ids of the commands that were sent to them.
        var open: Set<CommandID>
        var hasFailed = false
        /// Which persons the link service still has, by the command that asks for them.
        var persons: [CommandID: AnyHashable] = [:]
        /// Who asked for the same in the meantime.
        var also: [CommandKey] = []
    }

    /// The final answer to a command that waited.
    struct Settled: Hashable {
        var command: CommandKey
        var answer: Answer
    }

    /// - Returns: the certificate of somebody who was erased to the end before.
    mutating func erase(
        _ command: EraseProfile, newMPID: MPID, _ context: DecisionContext
    ) throws(Refusal) -> Gone? {
        if isUnderWay(context.command) { return nil }
        let isForAll = command.everyHolder == true
        if isForAll, !isAdmin { throw Refusal(reason: .insufficientScope) }
        let ids = IdentityType.allCases.compactMap { type in
            command.identities[type.rawValue].map { Identity(type, IdentityValue($0)) }
        }
        if ids.contains(where: { isNobodys($0.value.text) }) { throw Refusal(reason: .validationError) }
        // Whoever came since the erasure was asked for is not who it was asked for.
        let found = command.mpid == nil ? meant(ids).filter { !isHeir($0) } : [person(command.mpid)].compactMap { $0 }
        if found.isEmpty { throw Refusal(reason: .notFoundError) }
        if found.count > 1, !isForAll { throw Refusal(reason: .ambiguousIdentity) }
        if let mpid = command.mpid, let old = certificates[mpid], old.isComplete { return old }
        let same = erasing.filter { entry in
            command.mpid.map(entry.value.gone.mpids.contains) == true && !entry.value.open.isEmpty
        }
        if found[0].isErased, let (first, _) = same.min(by: { $0.key < $1.key }) {
            if erasing[first]?.also.count ?? 0 > 15 { throw Refusal(reason: .throttled) }
            erasing[first]?.also.append(context.command)
            return nil
        }
        let which = command.persons ?? (enforces ? .byCustomerId : .marked)
        // Whom a link named later than the erasure was asked for is another person.
        let meant = found.filter { ($0.linked ?? 0) <= given }.compactMap(\.user)
        askOthers(found, which, meant)
        if let mpid = command.mpid, certificates[mpid] != nil {
            // A ghost says nothing of persons: those that are still to go are asked for.
            let open = erasing.filter { $0.value.gone.mpids.contains(mpid) }.sorted { $0.key < $1.key }
            for (key, one) in open {
                deeds.asked += one.persons.sorted { $0.key < $1.key }.map(\.value)
                erasing[key] = nil
            }
        }
        // Who of the others' persons is gone, the others say.
        erase(found, named: ids, users: [], meant: meant, isWhole: true, end: given, newMPID: newMPID, context)
        return nil
    }

    func isUnderWay(_ command: CommandKey) -> Bool {
        erasing.contains { !$0.value.open.isEmpty && ($0.key == command || $0.value.also.contains(command)) }
    }

    /// Whether the link service still has to forget the user, as this customer, or whoever was this customer by then.
    func isExpectedToGo(
        _ user: UserID, _ customer: ExternalID, or former: ExternalID? = nil, linked: Int64
    ) -> Bool {
        erasing.values.flatMap(\.persons.values).compactMap { $0.base as? ForgetPerson }.contains { person in
            let isThem = person.userId == user && [customer, former].contains(person.externalId)
            return isThem || person.externalId == customer && (person.erasedAt?.milliseconds ?? .max) >= linked
        }
    }

    /// Linked since, and not known as the customer before.
    private func isHeir(_ person: Person) -> Bool {
        guard let linked = person.linked, linked > given, person.past?.from ?? .max > given else { return false }
        return isNamed(person, after: given)
    }

    /// Whether the person was somebody else, or nobody, at that time: the customer's name came later.
    private func isNamed(_ person: Person, after end: Int64) -> Bool {
        guard let customer = person.customer else { return false }
        return person.named[Identity(.customerID, IdentityValue(customer.text))].map { $0 > end } == true
    }

    /// S90: whom all identities find that find anybody; and where there is no such person, whoever is found by one.
    func meant(_ ids: [Identity]) -> [Person] {
        let ofDevices = [
            "device_application_stamp", "ios_idfa", "ios_idfv", "android_aaid", "android_uuid", "fire_aid",
            "push_token",
            "roku_aid", "roku_publisher_id", "amp_id", "microsoft_aid", "microsoft_publisher_id",
        ]
        func finds(_ id: Identity, _ person: Person) -> Bool {
            guard settings.priority.contains(id.type), person.ids.contains(where: { same($0, id) }) else {
                return false
            }
            return mayBeFound(person, by: ids) && !(isKnown(person) && ofDevices.contains(id.type.rawValue))
        }
        let working = ids.filter { id in people.contains { finds(id, $0) } }
        let agreed = people.filter { person in working.allSatisfy { finds($0, person) } }
        guard !working.isEmpty else { return [] }
        return agreed.isEmpty ? people.filter { person in working.contains { finds($0, person) } } : agreed
    }

    mutating func forget(_ command: ForgetProfiles, newMPID: MPID, _ context: DecisionContext) {
        if isUnderWay(context.command) { return }
        let customer = command.externalId.map { Identity(.customerID, IdentityValue($0.text)) }
        let end = command.erasedAt?.milliseconds ?? given
        let found = people.filter { person in
            let past = command.former ?? []
            if let user = person.user, user == command.userId {
                // By another name than the user ever had it was marked by mistake.
                let names = [command.externalId] + past.map(\.externalId)
                return names.contains(person.customer) && !isNamed(person, after: max(end, sinceWhen(person)))
            }
            if wasCustomer(person, of: command, end) { return true }
            // A name of before leads to whoever had it then and is nobody's, or of whoever came by it when it was free.
            let calls = past.filter { name in
                let id = Identity(.customerID, IdentityValue(name.externalId.text))
                let since = person.ids.filter { same($0, id) }.compactMap { person.named[$0] }.min()
                return since.map { $0 <= end && $0 <= name.until.milliseconds } == true
            }
            let isSinceThen = person.linked.map { $0 > end } == true
            if calls.contains(where: { person.user == nil || isSinceThen && $0.externalId == person.customer }) {
                return true
            }
            let isCustomer = person.ids.contains { id in customer.map { same(id, $0) } == true }
            // Since before it was free; who is marked as another customer is nobody's heir.
            let isOld = person.ids.contains { id in
                customer.map { same(id, $0) } == true && person.named[id].map { $0 <= end } == true
            }
            return isCustomer && (person.customer ?? command.externalId) == command.externalId && isOld
        }
        let users = command.userId.map { [$0] } ?? []
        askOthers(found, .none, users)
        erase(
            found,
            named: (customer.map { [$0] } ?? [])
                + (command.former ?? []).map { Identity(.customerID, IdentityValue($0.externalId.text)) }, users: users,
            meant: users, isWhole: false, end: end,
            newMPID: newMPID, context)
        gone.formUnion(users)
        forgetMarks(users)
    }

    /// Whether it is the heir's by now, who came by the name when the person was gone, and was renamed.
    private func wasCustomer(_ person: Person, of command: ForgetProfiles, _ end: Int64) -> Bool {
        guard let past = person.past, past.to > end else { return false }
        var ends = (command.former ?? []).filter { $0.externalId.text == past.name }.map(\.until.milliseconds)
        if command.externalId?.text == past.name { ends.append(end) }
        return ends.contains { past.from <= $0 && past.from <= end }
    }

    /// Whose user is gone, and who was not that user, is nobody's user.
    private mutating func forgetMarks(_ users: [UserID]) {
        for person in people where person.user.map(users.contains) == true {
            change(person.mpid) { ($0.user, $0.customer, $0.linked, $0.own) = (nil, nil, nil, nil) }
        }
    }

    /// S96: whoever was aliased, and only into those who go or went, is the same person; but not whom a link calls
    /// somebody else.
    private func companions(of persons: [Person], _ users: [UserID]) -> [Person] {
        var (going, found) = (Set(persons.map(\.mpid)), [Person]())
        while true {
            let more = people.filter { source in
                let into = pairs.filter { $0.of[0] == source.mpid }.map { $0.of[1] }
                guard !source.isErased, !going.contains(source.mpid), into.contains(where: going.contains) else {
                    return false
                }
                let isLeft = into.allSatisfy { going.contains($0) || person($0)?.isErased == true }
                // A user who had lost the name to the others is not called so.
                return isLeft && (source.user.map(users.contains) != false || !isAsMarked(source))
            }
            if more.isEmpty { return found }
            found += more
            going.formUnion(more.map(\.mpid))
        }
    }

    mutating func erase(
        _ found: [Person], named ids: [Identity], users: [UserID], meant: [UserID], isWhole: Bool, end: Int64,
        newMPID: MPID, _ context: DecisionContext
    ) {
        let goers = (found + companions(of: found, meant)).map(\.mpid)
        let others = people.filter { person in
            person.ids.contains { mine in ids.contains { same($0, mine) } }
                && !goers.contains(person.mpid)
        }
        let (mpids, done) = wipe(found, meant, end, newMPID: newMPID, context)
        let ids = deeds.asked.indices.map { context.forwardID($0) }
        var gone = Gone(
            users: Set(users), mpids: mpids, done: .init(sync: done, verification: .init()), others: others.count)
        if isWhole { gone.done.answerForAll() }
        // What an erasure that failed had done before counts.
        var end = end
        if found.count == 1, found[0].isErased, let old = certificates[found[0].mpid] {
            end = ends[found[0].mpid] ?? end
            gone = old.joined(gone)
            if isWhole { gone.done.answerForAll() }
        }
        erasing[context.command] = Erasing(
            gone: gone, end: end, open: Set(ids),
            persons: Dictionary(uniqueKeysWithValues: zip(ids, deeds.asked).dropFirst()))
        for mpid in gone.mpids { (certificates[mpid], ends[mpid]) = (gone, end) }
    }

    /// - Returns: who is gone, companions included, and what was theirs.
    private mutating func wipe(
        _ found: [Person], _ meant: [UserID], _ end: Int64, newMPID: MPID, _ context: DecisionContext
    ) -> ([MPID], ErasureCertificate.Counts.Sync) {
        let (devicesBefore, aliasesBefore) = (devices, aliases.count)
        let persons = found + companions(of: found, meant)
        let mpids = persons.map(\.mpid)
        let now = context.now.milliseconds
        for person in persons where !person.isErased {
            origins[person.mpid] = nil
            change(person.mpid) {
                $0 = Person(mpid: person.mpid, first: now, last: now, isOrphan: true, isErased: true)
            }
        }
        fences.removeAll { mpids.contains($0.mpid) || mpids.contains($0.other) }
        // Whoever has gone by retention is no more there than the erased.
        let living = Set(people.filter { !$0.isErased }.map(\.mpid))
        for (name, device) in devices {
            guard [device.current, device.anonymous].contains(where: { $0.map(mpids.contains) == true }) else {
                continue
            }
            var left = device
            if let current = device.current, mpids.contains(current) { left.current = nil }
            if let anonymous = device.anonymous, mpids.contains(anonymous) { left.anonymous = nil }
            left.users.removeAll { !living.contains($0.mpid) }
            left.own = []
            if device.current != left.current { left.turn(now) }
            deeds.turns[name] = left.moved
            devices[name] = left
            if left.isNobodys {
                devices[name] = nil
                mostMoved = max(mostMoved, left.moved)
                asked[.device(name)] = nil
            }
        }
        for (id, pair) in aliases.sorted(by: { $0.key < $1.key }) where pair.contains(where: mpids.contains) {
            deeds.dropped.append(
                AliasDropped(aliasId: id, sourceMPID: pair[0], destinationMPID: pair[1], rule: .erased))
            aliases[id] = nil
        }
        let lost = devicesBefore.values.filter { device in
            [device.current, device.anonymous].contains { $0.map(mpids.contains) == true }
        }
        let alive = persons.filter { !$0.isErased }
        let counts = ErasureCertificate.Counts.Sync(
            profiles: alive.count, identities: alive.flatMap(\.ids).count, devices: lost.count,
            aliases: aliasesBefore - aliases.count)
        // S115: as if the links of those who stay were told now.
        for person in persons.sorted(by: { $0.mpid < $1.mpid }) where !person.isErased {
            guard let user = person.user, let customer = person.customer, !meant.contains(user) else { continue }
            guard settings.fromLinks, !self.gone.contains(user), isAsMarked(person), person.linked ?? 0 > end else {
                continue
            }
            mark(user, customer, since: person.linked, own: person.own, newMPID: newMPID, now: now)
        }
        for person in persons.filter({ !$0.isErased }).sorted(by: { $0.mpid < $1.mpid }) {
            if let memory = memory(of: person, devicesBefore, end) { deeds.told.append(memory) }
        }
        return (mpids.sorted(), counts)
    }

    /// S55, S93: the link service has persons by their user ids and external ids, the verification service sessions.
    mutating func askOthers(
        _ named: [Person], _ which: EraseProfile.Persons, _ users: [UserID]
    ) {
        let now = Timestamp(milliseconds: given)
        // A ghost's certificate is also of those who went with it.
        let ghosts = named.filter(\.isErased).flatMap { certificates[$0.mpid]?.mpids ?? [] }
        let people = (named + companions(of: named, users)).map(\.mpid) + ghosts
        deeds.asked = [AnyHashable(ForgetSessions(mpids: Set(people).sorted()))]
        guard which != .none else { return }
        for person in named.sorted(by: { $0.mpid < $1.mpid }) {
            let names = which == .marked ? [] : person.ids.filter { $0.type == .customerID }
            let ids = names.map { ExternalID($0.value.text) }
            let going = person.user.flatMap { users.contains($0) ? $0 : nil }
            if let user = going {
                deeds.asked.append(
                    AnyHashable(ForgetPerson(userId: user, externalId: person.customer, erasedAt: now)))
            }
            for id in ids where going == nil || id != person.customer {
                deeds.asked.append(AnyHashable(ForgetPerson(externalId: id, erasedAt: now)))
            }
        }
    }

    /// S55: the last answer ends the erasure, and one that could not makes it fail. Who has answered is not asked again.
    mutating func take(_ answer: ForwardAnswer, newMPID: MPID, _ context: DecisionContext) {
        guard !answer.isPending,
            let (command, waiting) = erasing.first(where: { $0.value.open.contains(answer.forwardID) })
        else { return }
        var erasing = waiting
        erasing.open.remove(answer.forwardID)
        if let part = answer.part {
            erasing.gone = erasing.gone.joined(Gone(part))
            erasing.persons[answer.forwardID] = nil
            // S116: who is named, and was linked in the meantime, goes too.
            let users = part.subject.userIds
            let end = erasing.end
            let left = people.filter { person in
                person.user.map(users.contains) == true && !isNamed(person, after: max(end, sinceWhen(person)))
            }
            if !left.isEmpty {
                let (mpids, done) = wipe(left, users, end, newMPID: newMPID, context)
                erasing.gone = erasing.gone.joined(Gone(mpids: mpids, done: .init(sync: done), others: 0))
                erasing.open.insert(context.forwardID(0))
                deeds.asked = [AnyHashable(ForgetSessions(mpids: mpids))]
            }
            gone.formUnion(users)
            forgetMarks(users)
            if !erasing.gone.mpids.isEmpty { deeds.toldUsers = users }
        } else {
            erasing.hasFailed = true
        }
        let isOver = erasing.open.isEmpty
        erasing.gone.isComplete = isOver && !erasing.hasFailed
        for mpid in erasing.gone.mpids { (certificates[mpid], ends[mpid]) = (erasing.gone, erasing.end) }
        let asked = [command] + erasing.also
        if isOver { erasing.also = [] }
        self.erasing[command] = isOver && erasing.persons.isEmpty ? nil : erasing
        guard isOver else { return }
        deeds.settled = asked.map {
            Settled(command: $0, answer: erasing.hasFailed ? .rejected(.serverError) : .certificate(erasing.gone))
        }
    }
}

extension Gone {
    /// Both together; an end is not taken over.
    fileprivate func joined(_ other: Gone) -> Gone {
        var sum = self
        sum.users.formUnion(other.users)
        sum.mpids = Set(mpids + other.mpids).sorted()
        sum.others += other.others
        if let link = other.done.link {
            sum.done.link = .init(
                persons: link.persons + (done.link?.persons ?? 0), installs: link.installs + (done.link?.installs ?? 0))
        }
        if let user = other.done.user {
            sum.done.user = .init(
                installs: user.installs + (done.user?.installs ?? 0), codes: user.codes + (done.user?.codes ?? 0))
        }
        if let sync = other.done.sync {
            let own = done.sync ?? .init()
            sum.done.sync = .init(
                profiles: sync.profiles + own.profiles, identities: sync.identities + own.identities,
                devices: sync.devices + own.devices, aliases: sync.aliases + own.aliases)
        }
        if let verification = other.done.verification {
            sum.done.verification = .init(sessions: verification.sessions + (done.verification?.sessions ?? 0))
        }
        sum.isComplete = false
        return sum
    }
}
