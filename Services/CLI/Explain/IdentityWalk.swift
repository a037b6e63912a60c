// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import WireJSON

/// Finds what the services hold about an id, and goes on from what it finds: install, person, external id, customer id,
/// profile, device. It asks about the devices and installs that the person had before too, and about who was erased, and goes on
/// to nobody from there.
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
    /// The services that did not answer everything.
    private(set) var silent: Set<String> = []

    private struct Asked {
        var service: String
        var query: FactsQuery
        var question: Inquiry.Question { Inquiry.Question(query, of: service) }
    }

    private var asked: Set<String> = []
    private var told: Set<Row> = []
    private var found: [String: Fact] = [:]

    /// A shared value must not drag the whole store along.
    private static let mostIDs = 40

    init(limit: Int) { self.limit = limit }

    /// - Throws: `Problem` when a service refuses.
    mutating func start(from id: String, source: SourceID?, _ inquiry: Inquiry) throws {
        var next = [id]
        asked = [id]
        while !next.isEmpty { next = unasked(try ask(next, source, inquiry)) }
        // Where the person was, and somebody else may be now: how they were moved away from there is decided about it.
        _ = try ask(unasked(found.values.flatMap(\.events).flatMap(Self.ends)), source, inquiry)
        let all = found.values.sorted(by: Self.isBefore)
        decisions = all.suffix(limit)
        hasMore = hasMore || all.count > limit
        rows.sort { FactLines.text($0) < FactLines.text($1) }
    }

    private mutating func unasked(_ ids: [String]) -> [String] {
        var next: [String] = []
        for id in ids where asked.count < Self.mostIDs && asked.insert(id).inserted { next.append(id) }
        return next
    }

    /// - Returns: the ids that the rows name which the services have of these.
    private mutating func ask(_ about: [String], _ source: SourceID?, _ inquiry: Inquiry) throws -> [String] {
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
                ids += take(answer, of: asked.service)
                guard let page = answer.next else { continue }
                // A page has a hundred.
                if pages * 100 < limit {
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

    /// The device or the install that an event is about, and who was erased.
    private static func ends(_ event: Fact.Told) -> [String] {
        let isErasure = event.type == UserErased.type
        return (isErasure ? ["userId"] : ["deviceId", "installId"]).compactMap { event.data[$0]?.stringValue }
    }

    /// - Returns: the ids that the rows name.
    private mutating func take(_ answer: FactsResult, of service: String) -> [String] {
        for fact in answer.facts { found["\(fact.topic)/\(fact.partition)@\(fact.offset)"] = fact }
        return answer.state.flatMap { value -> [String] in
            let row = Row(service: service, value: value)
            if told.insert(row).inserted { rows.append(row) }
            return Self.ids(in: value)
        }
    }

    /// Who else is the same person. Devices share identity values, and persons must not meet, so only a customer id leads
    /// on: it is the external id of the link service, if it has one there.
    private static func ids(in row: JSONValue) -> [String] {
        let members = ["installId", "userId", "externalId", "mpid", "deviceId"].compactMap { row[$0]?.stringValue }
        let lists = ["mpids", "users"].flatMap { row[$0]?.arrayValue ?? [] }.compactMap(\.stringValue)
        let customers = (row["identities"]?.arrayValue ?? []).filter {
            $0["type"]?.stringValue == IdentityType.customerID.rawValue
        }.compactMap { $0["value"]?.stringValue }
        return members + lists + customers
    }

    private static func isBefore(_ left: Fact, _ right: Fact) -> Bool {
        func order(_ fact: Fact) -> (Int64, String, Int32, Int64) {
            (fact.decidedAt.milliseconds, fact.topic, fact.partition, fact.offset)
        }
        return order(left) < order(right)
    }
}
