// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import WireJSON

/// Finds what the services hold about an id, and goes on from what it finds: install, person, external id, customer id,
/// profile, device. It asks about the devices and installs that the person had before too, and about who was erased, and
/// goes on to nobody from there. Of a device or an install that it comes to it tells what was decided about these people,
/// and about no others who had it.
struct IdentityWalk {
    /// What a service says of one thing.
    struct Row: Hashable {
        var service: String
        var value: JSONValue
    }

    /// How many decisions are wanted, the newest.
    let limit: Int
    private(set) var rows: [Row] = []
    /// The oldest first.
    private(set) var decisions: [Fact] = []
    /// There are older decisions.
    private(set) var hasMore = false
    /// The ids that were found, and not asked about because there were too many.
    private(set) var leftOut: Set<String> = []
    /// The services that did not answer everything.
    private(set) var silent: Set<String> = []

    private struct Asked {
        var service: String
        var query: FactsQuery
        var question: Inquiry.Question { Inquiry.Question(query, of: service) }
    }

    /// What is explained.
    private var first = ""
    private var asked: Set<String> = []
    /// The devices and installs that it came to.
    private var places: Set<String> = []
    private var told: Set<Row> = []
    private var found: [String: Fact] = [:]
    /// What was found about those alone, by whoever had them.
    private var there: [String: Fact] = [:]

    /// A shared value must not drag the whole store along.
    private static let mostIDs = 40
    /// Of a device that many people use, for the one decision that is looked for.
    private static let mostPages = 5

    init(limit: Int) { self.limit = limit }

    /// - Throws: `Problem` when a service refuses.
    mutating func start(from id: String, source: SourceID?, _ inquiry: Inquiry) throws {
        var next = [id]
        (first, asked) = (id, [id])
        while !next.isEmpty {
            let (people, places) = (next.filter { !self.places.contains($0) }, next.filter(self.places.contains))
            next = unasked(try ask(people, source, inquiry) + ask(places, source, inquiry, for: isOwn))
        }
        try askOfEnds(source, inquiry)
        for (place, fact) in there where found[place] == nil { found[place] = part(of: fact) }
        let all = found.values.sorted(by: Self.isBefore)
        decisions = all.suffix(limit)
        hasMore = hasMore || all.count > limit
        rows.sort { FactLines.text($0) < FactLines.text($1) }
    }

    /// Whom they were taken apart from. And where the person was, and somebody else may be now: how they were moved away is
    /// decided about that device or install. What else is decided there is other people's.
    private mutating func askOfEnds(_ source: SourceID?, _ inquiry: Inquiry) throws {
        let own = asked
        let known = found.merging(there.filter { isOwn($0.value) }) { first, _ in first }
        let latest = known.values.sorted(by: Self.isBefore).reversed()
        let apart = rows.flatMap { $0.value["apartFrom"]?.arrayValue ?? [] }.compactMap(\.stringValue)
        let left = latest.flatMap(\.events).flatMap { Self.ends($0, of: own) }
        let ends = unasked(apart + left)
        places.formUnion(ends)
        _ = try ask(ends, source, inquiry, for: { $0.events.contains { Self.names(own, $0) } })
        // Who was erased was this person, and whom they were taken apart from is another one.
        asked = own.union(latest.flatMap(\.events).flatMap(Self.erased))
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

    private static func namesAnybody(_ event: Fact.Told) -> Bool {
        ["mpid", "previousMPID", "sourceMPID", "destinationMPID", "takenBy", "userId", "externalId"].contains {
            event.data[$0].map { $0 != .null } ?? false
        }
    }

    /// Whether an event is about one of these people or profiles, or was until then.
    private static func names(_ own: Set<String>, _ event: Fact.Told) -> Bool {
        ["mpid", "previousMPID", "userId"].contains { event.data[$0]?.stringValue.map(own.contains) == true }
    }

    /// Whom a decision is about, where none of them is in ``rows``: somebody else has named a value that is held here, or
    /// used a device.
    func others(in fact: Fact) -> [String] {
        let values = fact.events.map(\.data) + [fact.result].compactMap(\.self)
        let named = Self.people.flatMap { member in values.compactMap { $0[member]?.stringValue } }
        let known = Set(
            rows.flatMap { row in Self.people.compactMap { row.value[$0]?.stringValue } + Self.holders(row.value) })
        return known.isDisjoint(with: named) ? Set(named).sorted() : []
    }

    private static let people = ["mpid", "userId"]

    private mutating func unasked(_ ids: [String]) -> [String] {
        var next: [String] = []
        for id in ids where !asked.contains(id) {
            guard asked.count < Self.mostIDs else {
                leftOut.insert(id)
                continue
            }
            asked.insert(id)
            next.append(id)
        }
        return next
    }

    /// - Parameter isSought: what is looked for, in the newest pages, if not everything is.
    /// - Returns: the ids that the rows name which the services have of these.
    private mutating func ask(
        _ about: [String], _ source: SourceID?, _ inquiry: Inquiry, for isSought: ((Fact) -> Bool)? = nil
    ) throws -> [String] {
        var questions = about.flatMap { id in
            serviceNames.filter { !silent.contains($0) }.map {
                Asked(service: $0, query: FactsQuery(id: id, source: source))
            }
        }
        var ids: [String] = []
        var pages = 0
        while !questions.isEmpty {
            let answers = try inquiry.ask(questions.map(\.question))
            pages += 1
            var more: [Asked] = []
            for asked in questions {
                guard let reply = answers[asked.question] else {
                    silent.insert(asked.service)
                    continue
                }
                guard reply.status == .succeeded, reply.result != nil else {
                    throw Inquiry.refusal(reply, of: asked.question)
                }
                guard let answer = reply.result(as: FactsResult.self) else { continue }
                ids += take(answer, of: asked.service, about: asked.query.id)
                guard let page = answer.next else { continue }
                // A page has a hundred.
                let isFound = isSought.map { answer.facts.contains(where: $0) } ?? true
                if isFound ? pages * 100 < limit : pages < Self.mostPages {
                    var asked = asked
                    asked.query.page = page
                    more.append(asked)
                } else if isSought == nil {
                    hasMore = true
                }
            }
            questions = more
        }
        return ids
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

    /// - Returns: the ids that the rows name.
    private mutating func take(_ answer: FactsResult, of service: String, about id: String) -> [String] {
        for fact in answer.facts {
            let place = "\(fact.topic)/\(fact.partition)@\(fact.offset)"
            if places.contains(id) { there[place] = fact } else { found[place] = fact }
        }
        return answer.state.flatMap { value -> [String] in
            let row = Row(service: service, value: value)
            if told.insert(row).inserted { rows.append(row) }
            places.formUnion(
                ["installId", "deviceId"].compactMap { value[$0]?.stringValue }.filter { !asked.contains($0) })
            let type = value["type"]?.stringValue
            // Who holds a value that devices go by is many people, and who holds another one was asked of it alone.
            let leadsOn =
                value["kind"] != "identity" || type == IdentityType.customerID.rawValue
                || id == first && !(type.flatMap(IdentityType.init(rawValue:))?.isDevice ?? false)
            return leadsOn ? Self.ids(in: value) : []
        }
    }

    /// Who else is the same person. Devices share identity values, and persons must not meet, so only a customer id leads
    /// on: it is the external id of the link service, if it has one there.
    private static func ids(in row: JSONValue) -> [String] {
        let members = ["installId", "userId", "externalId", "mpid", "deviceId"].compactMap { row[$0]?.stringValue }
        let customers = (row["identities"]?.arrayValue ?? []).filter {
            $0["type"]?.stringValue == IdentityType.customerID.rawValue
        }.compactMap { $0["value"]?.stringValue }
        // Not the users that a device had before.
        return members + holders(row) + customers
    }

    /// Who has an identity value.
    private static func holders(_ row: JSONValue) -> [String] {
        (row["mpids"]?.arrayValue ?? []).compactMap(\.stringValue)
    }

    private static func isBefore(_ left: Fact, _ right: Fact) -> Bool {
        func order(_ fact: Fact) -> (Int64, String, Int32, Int64) {
            (fact.decidedAt.milliseconds, fact.topic, fact.partition, fact.offset)
        }
        return order(left) < order(right)
    }
}
