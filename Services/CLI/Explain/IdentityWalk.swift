// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import WireJSON

/// Finds what the services hold about an id, and goes on from what it finds: install, person, external id, customer id,
/// profile, device. It asks about the devices and installs that the person had before too, and about who was erased, and
/// goes on to nobody from there.
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
    private var told: Set<Row> = []
    private var found: [String: Fact] = [:]

    /// A shared value must not drag the whole store along.
    private static let mostIDs = 40
    /// Of a device that many people use, for the one decision that is looked for.
    private static let mostPages = 5

    init(limit: Int) { self.limit = limit }

    /// - Throws: `Problem` when a service refuses.
    mutating func start(from id: String, source: SourceID?, _ inquiry: Inquiry) throws {
        var next = [id]
        (first, asked) = (id, [id])
        while !next.isEmpty { next = unasked(try ask(next, source, inquiry)) }
        try askOfEnds(source, inquiry)
        let all = found.values.sorted(by: Self.isBefore)
        decisions = all.suffix(limit)
        hasMore = hasMore || all.count > limit
        rows.sort { FactLines.text($0) < FactLines.text($1) }
    }

    /// Whom they were taken apart from. And where the person was, and somebody else may be now: how they were moved away is
    /// decided about that device or install. What else is decided there is other people's.
    private mutating func askOfEnds(_ source: SourceID?, _ inquiry: Inquiry) throws {
        let (own, known, hadMore) = (asked, found, hasMore)
        let isOwn: (Fact) -> Bool = { $0.events.contains { Self.names(own, $0) } }
        let latest = known.values.sorted(by: Self.isBefore).reversed()
        let apart = rows.flatMap { $0.value["apartFrom"]?.arrayValue ?? [] }.compactMap(\.stringValue)
        let left = latest.flatMap(\.events).flatMap { Self.ends($0, of: own) }
        _ = try ask(unasked(apart + left), source, inquiry, for: isOwn)
        for (place, fact) in found where known[place] == nil {
            found[place] = isOwn(fact) ? Self.part(of: fact, own) : nil
        }
        hasMore = hadMore
    }

    /// What a decision about others says of these.
    private static func part(of fact: Fact, _ own: Set<String>) -> Fact {
        var part = fact
        (part.result, part.message, part.commands) = (nil, nil, [])
        part.events = fact.events.filter { names(own, $0) }
        return part
    }

    /// Whether an event is about one of these people or profiles, or was until then.
    private static func names(_ own: Set<String>, _ event: Fact.Told) -> Bool {
        ["mpid", "previousMPID", "userId"].contains { event.data[$0]?.stringValue.map(own.contains) == true }
    }

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

    /// - Parameter isSought: what is looked for, in the newest pages; all decisions as far as they are wanted, where it is
    ///   missing.
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
                ids += take(answer, of: asked.service, isFirst: asked.query.id == first)
                guard let page = answer.next else { continue }
                // A page has a hundred.
                let isWanted =
                    isSought.map { pages < Self.mostPages && !answer.facts.contains(where: $0) }
                    ?? (pages * 100 < limit)
                if isWanted {
                    var asked = asked
                    asked.query.page = page
                    more.append(asked)
                } else {
                    hasMore = true
                }
            }
            questions = more
        }
        return ids
    }

    /// The device or the install where an event has one of these people or profiles, or who was erased.
    private static func ends(_ event: Fact.Told, of own: Set<String>) -> [String] {
        let members =
            switch event.type {
            case UserErased.type: ["userId"]
            case ProfileErased.type: ["mpid"]
            default: names(own, event) ? ["deviceId", "installId"] : []
            }
        return members.compactMap { event.data[$0]?.stringValue }
    }

    /// - Returns: the ids that the rows name.
    private mutating func take(_ answer: FactsResult, of service: String, isFirst: Bool) -> [String] {
        for fact in answer.facts { found["\(fact.topic)/\(fact.partition)@\(fact.offset)"] = fact }
        return answer.state.flatMap { value -> [String] in
            let row = Row(service: service, value: value)
            if told.insert(row).inserted { rows.append(row) }
            // Who else holds a value that a device goes by was asked only of the value itself.
            return isFirst || value["kind"] != "identity" || value["type"] == "customerid" ? Self.ids(in: value) : []
        }
    }

    /// Who else is the same person. Devices share identity values, and persons must not meet, so only a customer id leads
    /// on: it is the external id of the link service, if it has one there.
    private static func ids(in row: JSONValue) -> [String] {
        let members = ["installId", "userId", "externalId", "mpid", "deviceId"].compactMap { row[$0]?.stringValue }
        // Not the users that a device had before.
        let holders = (row["mpids"]?.arrayValue ?? []).compactMap(\.stringValue)
        let customers = (row["identities"]?.arrayValue ?? []).filter {
            $0["type"]?.stringValue == IdentityType.customerID.rawValue
        }.compactMap { $0["value"]?.stringValue }
        return members + holders + customers
    }

    private static func isBefore(_ left: Fact, _ right: Fact) -> Bool {
        func order(_ fact: Fact) -> (Int64, String, Int32, Int64) {
            (fact.decidedAt.milliseconds, fact.topic, fact.partition, fact.offset)
        }
        return order(left) < order(right)
    }
}
