// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import WireJSON

/// Finds what the services hold about an id, and goes on from what it finds: install, person, external id, customer id,
/// profile, device. It asks about the devices and installs that the person had before too, and about who was erased, and
/// goes on to nobody from there. Of a device, an install or an external id that it comes to it tells what was decided about
/// these people, and about no others who had it.
///
/// Whoever walks asks ``questions`` and hands in the answers, until none are left: the command line over Kafka, the gateway
/// for its console.
package struct IdentityWalk {
    /// What a service says of one thing.
    package struct Row: Hashable, Sendable {
        package var service: String
        package var value: JSONValue

        package init(service: String, value: JSONValue) {
            self.service = service
            self.value = value
        }
    }

    /// What one service is asked.
    package struct Question: Hashable, Sendable {
        package var service: String
        package var query: FactsQuery
    }

    /// What is to be asked now; empty at the end.
    package private(set) var questions: [Question] = []
    package private(set) var findings = Findings()

    package struct Findings: Sendable {
        package fileprivate(set) var rows: [Row] = []
        /// The oldest first.
        package fileprivate(set) var decisions: [Fact] = []
        /// There are older decisions.
        package fileprivate(set) var hasMore = false
        /// The ids that were found, and not asked about because there were too many.
        package fileprivate(set) var leftOut: Set<String> = []
        /// The services that did not answer everything.
        package fileprivate(set) var silent: Set<String> = []

        /// Whom a decision is about, where none of them is in ``rows``: somebody else has named a value that is held here, or
        /// used a device.
        package func others(in fact: Fact) -> [String] {
            // Of a command that is asked about by its own id nobody is explained.
            guard !rows.isEmpty else { return [] }
            let values = fact.events.map(\.data) + [fact.result].compactMap(\.self)
            let named = ["mpid", "userId"].flatMap { member in values.compactMap { $0[member]?.stringValue } }
            return known.isDisjoint(with: named) ? Set(named).sorted() : []
        }

        private var known: Set<String> {
            Set(
                rows.flatMap { row in
                    ["mpid", "userId"].compactMap { row.value[$0]?.stringValue }
                        + (row.value["mpids"]?.arrayValue ?? []).compactMap(\.stringValue)
                })
        }

        /// For sentences about profiles.
        package var people: KnownPeople { KnownPeople(rows) }
    }

    /// Where it is: each part is asked about to its last page.
    private enum Stage {
        /// Those who were found, and then the places that they were found with.
        case people(thenPlaces: [String])
        case places
        /// Where they were before. Who was erased was one of them, and whom they were taken apart from is somebody else.
        case ends(own: Set<String>, withErased: Set<String>)
        case over
    }

    private let subject: Subject
    private var stage = Stage.over
    private var told: Set<Row> = []
    private var pages = 0
    /// What the rows of this round name.
    private var named: [String] = []
    private var asked: Set<String>
    /// The devices and installs that it came to.
    private var places: Set<String> = []
    private var found: [String: Fact] = [:]
    /// What was found about those alone, by whoever had them.
    private var there: [String: Fact] = [:]
    /// The external ids that it came to, each with what was found about it, by whoever had it.
    private var names: [String: [String: Fact]] = [:]

    /// What is explained, and to which length.
    private struct Subject {
        let id: String
        let source: SourceID?
        /// How many decisions are wanted, the newest.
        let limit: Int
        let services: [String]
    }

    /// A shared value must not drag the whole store along.
    private static let mostIDs = 40
    /// Of a device that many people use, for the one decision that is looked for.
    private static let mostPages = 5

    /// - Parameters:
    ///   - source: of a command's id.
    ///   - limit: how many decisions are wanted, the newest.
    ///   - services: who is asked.
    package init(from id: String, source: SourceID?, limit: Int, services: [String]) {
        subject = Subject(id: id, source: source, limit: limit, services: services)
        asked = [id]
        beginRound([id])
        goOn()
    }

    /// Takes in what the services said to ``questions``. Who is not among them did not answer.
    package mutating func take(_ answers: [Question: FactsResult]) {
        pages += 1
        var more: [Question] = []
        for question in questions {
            guard let answer = answers[question] else {
                findings.silent.insert(question.service)
                continue
            }
            take(answer, to: question)
            guard let page = answer.next else { continue }
            // A page has a hundred.
            let isFound = wantsAll || answer.facts.contains { isSought($0) }
            if isFound ? pages * 100 < subject.limit : pages < Self.mostPages {
                var question = question
                question.query.page = page
                more.append(question)
            } else if wantsAll {
                findings.hasMore = true
            }
        }
        questions = more.filter { !findings.silent.contains($0.service) }
        goOn()
    }

    // MARK: From one part to the next

    private mutating func goOn() {
        while questions.isEmpty {
            switch stage {
            case .people(let places):
                stage = .places
                ask(about: places)
            case .places:
                let next = unasked(named)
                if next.isEmpty { askOfEnds() } else { beginRound(next) }
            case .ends(_, let people):
                asked = people
                finish()
                stage = .over
            case .over: return
            }
        }
    }

    private mutating func beginRound(_ ids: [String]) {
        named = []
        stage = .people(thenPlaces: ids.filter(places.contains))
        ask(about: ids.filter { !places.contains($0) })
    }

    private mutating func ask(about ids: [String]) {
        pages = 0
        questions = ids.flatMap { id in
            subject.services.filter { !findings.silent.contains($0) }.map {
                Question(service: $0, query: FactsQuery(id: id, source: subject.source))
            }
        }
    }

    /// Whom they were taken apart from. And where the person was, and somebody else may be now: how they were moved away is
    /// decided about that device or install. What else is decided there is other people's.
    private mutating func askOfEnds() {
        let own = asked
        let events = latest.flatMap(\.events)
        let apart = told.flatMap { $0.value["apartFrom"]?.arrayValue ?? [] }.compactMap(\.stringValue)
        // Of an external id too, who had it and was erased.
        let former = names.values.flatMap(\.values).flatMap(\.events).flatMap(Self.erased)
        let ends = unasked(apart.sorted() + events.flatMap { Self.ends($0, of: own) } + Set(former).sorted())
        places.formUnion(ends)
        stage = .ends(own: own, withErased: own.union(events.flatMap(Self.erased)))
        ask(about: ends)
    }

    /// What is known of these people by now, the newest first.
    private var latest: [Fact] {
        let own = found.merging(there.filter { isOwn($0.value) }) { first, _ in first }
        return own.values.sorted(by: Self.isBefore).reversed()
    }

    private mutating func finish() {
        for (place, fact) in there where found[place] == nil { found[place] = part(of: fact) }
        for facts in names.values {
            for (place, fact) in own(facts) where found[place] == nil { found[place] = fact }
        }
        let all = found.values.sorted(by: Self.isBefore)
        findings.decisions = all.suffix(subject.limit)
        findings.hasMore = findings.hasMore || all.count > subject.limit
        findings.rows = Set(told.map { part(of: $0) }).map { (text: RowWords.text($0), row: $0) }
            .sorted { $0.text < $1.text }.map { $0.row }
    }

    private mutating func unasked(_ ids: [String]) -> [String] {
        var next: [String] = []
        for id in ids where !asked.contains(id) {
            guard asked.count < Self.mostIDs else {
                findings.leftOut.insert(id)
                continue
            }
            asked.insert(id)
            next.append(id)
        }
        return next
    }

    // MARK: What is whose

    /// Whether everything that was decided is looked for.
    private var wantsAll: Bool { if case .people = stage { true } else { false } }

    /// Whether a decision is what is looked for otherwise, in the newest pages.
    private func isSought(_ fact: Fact) -> Bool {
        if case .ends(let own, _) = stage { fact.events.contains { Self.names(own, $0) } } else { isOwn(fact) }
    }

    private func isOwn(_ fact: Fact) -> Bool { fact.events.contains { Self.names(asked, $0) } }

    /// What a decision about a place says of these people, and of the place itself; `nil` where it is about others.
    private func part(of fact: Fact) -> Fact? {
        guard isOwn(fact) else { return nil }
        var part = fact
        (part.result, part.message, part.commands) = (nil, nil, [])
        part.events = fact.events.filter { Self.names(asked, $0) || !Self.namesAnybody($0) }
        return part
    }

    /// What was decided about an external id while it was these people's. What names nobody, such as a request for a code, is
    /// about whoever is named next, or was named last.
    private func own(_ facts: [String: Fact]) -> [String: Fact] {
        let newestFirst = facts.sorted { Self.isBefore($1.value, $0.value) }
        func isTheirs(_ fact: Fact) -> Bool? {
            let people = Self.people(in: fact.events.map(\.data) + [fact.result].compactMap(\.self))
            return people.isEmpty ? nil : !people.isDisjoint(with: asked)
        }
        var isTheirsNow = newestFirst.lazy.compactMap { isTheirs($0.value) }.first ?? true
        var own: [String: Fact] = [:]
        for (place, fact) in newestFirst {
            isTheirsNow = isTheirs(fact) ?? isTheirsNow
            guard isTheirsNow else { continue }
            own[place] = share(of: fact)
        }
        return own
    }

    /// Without what it says of others alone.
    private func share(of fact: Fact) -> Fact {
        func isShown(_ value: JSONValue) -> Bool {
            let people = Self.people(in: [value])
            return people.isEmpty || !people.isDisjoint(with: asked)
        }
        var share = fact
        share.events = fact.events.filter { isShown($0.data) }
        if let result = fact.result, !isShown(result) { share.result = nil }
        return share
    }

    private static func people(in values: [JSONValue]) -> Set<String> {
        Set((whom + pairs).flatMap { member in values.compactMap { $0[member]?.stringValue } })
    }

    /// What a row says of somebody who has a place by now, or had an external id, is theirs: it is told that somebody else has
    /// the place, and of the external id that it is kept.
    private func part(of row: Row) -> Row {
        let kind = row.value["kind"]?.stringValue ?? ""
        guard let members = Self.ofPlaces[kind], let object = row.value.objectValue else { return row }
        let people = ["userId", "mpid"].compactMap { object[$0]?.stringValue }
        guard !people.isEmpty, people.allSatisfy({ !asked.contains($0) && !findings.leftOut.contains($0) }) else {
            return row
        }
        let kept = object.members.filter { members.contains($0.name) }.map { ($0.name, $0.value) }
        return Row(service: row.service, value: .object(JSONObject(kept)))
    }

    /// By the kind of row: what is told of one whose user is somebody else.
    private static let ofPlaces = [
        "install": ["kind", "installId", "device", "platform", "userId"], "session": ["kind", "deviceId", "mpid"],
        "hold": ["kind", "externalId", "until"],
    ]

    private static func namesAnybody(_ event: Fact.Told) -> Bool {
        (whom + pairs + ["takenBy", "externalId"]).contains {
            event.data[$0].map { $0 != .null } ?? false
        }
    }

    /// Whom an event is about, or was until then.
    private static let whom = ["mpid", "previousMPID", "userId", "previousUserId"]
    private static let pairs = ["sourceMPID", "destinationMPID", "fromMPID", "toMPID"]

    /// Whether an event is about one of these people or profiles, or was until then.
    private static func names(_ own: Set<String>, _ event: Fact.Told) -> Bool {
        whom.contains { event.data[$0]?.stringValue.map(own.contains) == true }
    }

    /// The device or the install where an event has one of these people or profiles, or who was erased.
    private static func ends(_ event: Fact.Told, of own: Set<String>) -> [String] {
        let places = names(own, event) ? ["deviceId", "installId"] : []
        return erased(event) + places.compactMap { event.data[$0]?.stringValue }
    }

    private static func erased(_ event: Fact.Told) -> [String] {
        let member = [UserErased.type: "userId", ProfileErased.type: "mpid"][event.type]
        return member.flatMap { event.data[$0]?.stringValue }.map { [$0] } ?? []
    }

    // MARK: What is told

    private mutating func take(_ answer: FactsResult, to question: Question) {
        for fact in answer.facts {
            let place = "\(fact.topic)/\(fact.partition)@\(fact.offset)"
            if places.contains(question.query.id) {
                there[place] = fact
            } else if names[question.query.id] != nil {
                names[question.query.id]?[place] = fact
            } else {
                found[place] = fact
            }
        }
        for value in answer.state {
            let row = Row(service: question.service, value: value)
            told.insert(row)
            places.formUnion(
                ["installId", "deviceId"].compactMap { value[$0]?.stringValue }.filter { !asked.contains($0) })
            for name in Self.names(in: value) where !asked.contains(name) && names[name] == nil { names[name] = [:] }
            if leadsOn(value, from: question.query.id) { named += Self.ids(in: value) }
        }
    }

    /// Who holds a value that devices go by is many people, and who holds another one was asked of it alone.
    private func leadsOn(_ row: JSONValue, from id: String) -> Bool {
        // From where they were before it goes on to nobody.
        if case .ends = stage { return false }
        // Whoever had an external id before is somebody else, but for whoever asks of it.
        if row["kind"] == "hold" { return id == subject.id }
        let type = row["type"]?.stringValue
        return row["kind"] != "identity" || type == IdentityType.customerID.rawValue
            || id == subject.id && !(type.flatMap(IdentityType.init(rawValue:))?.isDevice ?? false)
    }

    /// Who else is the same person. Devices share identity values, and persons must not meet, so only a customer id leads
    /// on: it is the external id of the link service, if it has one there.
    private static func ids(in row: JSONValue) -> [String] {
        let members = ["installId", "userId", "mpid", "deviceId"].compactMap { row[$0]?.stringValue }
        // Not the users that a device had before.
        let holders = (row["mpids"]?.arrayValue ?? []).compactMap(\.stringValue)
        return members + holders + names(in: row)
    }

    /// External ids, which others may have had.
    private static func names(in row: JSONValue) -> [String] {
        let customers = (row["identities"]?.arrayValue ?? []).filter {
            $0["type"]?.stringValue == IdentityType.customerID.rawValue
        }.compactMap { $0["value"]?.stringValue }
        return [row["externalId"]?.stringValue].compactMap(\.self) + customers
    }

    private static func isBefore(_ left: Fact, _ right: Fact) -> Bool {
        func order(_ fact: Fact) -> (Int64, String, Int32, Int64) {
            (fact.decidedAt.milliseconds, fact.topic, fact.partition, fact.offset)
        }
        return order(left) < order(right)
    }
}
