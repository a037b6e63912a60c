// SPDX-License-Identifier: Apache-2.0

import Contracts
import Explanation
import WireJSON

/// Who somebody is, from any id, and how it came to be so: what `identitybus explain` walks and says, for programs and for
/// the console.
enum PeopleCalls {
    static let members = ["id", "source", "limit"]
    /// Decisions, where the request says nothing; and at most.
    private static let usual = 100
    private static let most = 500

    /// - Parameter data: of the request.
    /// - Throws: `INVALID_REQUEST`.
    static func walk(_ data: JSONValue) throws(APIFailure) -> IdentityWalk {
        guard let id = data["id"]?.stringValue else { throw .invalid("id is missing or no string.") }
        let source = data["source"]
        guard source == nil || source?.stringValue != nil else { throw .invalid("source is no string.") }
        var limit = usual
        if let wanted = data["limit"] {
            guard let number = wanted.int64Value, (1...Int64(most)).contains(number) else {
                throw .invalid("limit must be an integer from 1 to \(most).")
            }
            limit = Int(number)
        }
        let services = FactsCalls.types.map(FactsCalls.service)
        return IdentityWalk(
            from: id, source: source?.stringValue.map { SourceID($0) }, limit: limit, services: services)
    }

    /// The command that asks one service.
    static func command(_ question: IdentityWalk.Question) throws(APIFailure) -> (type: CommandType, data: JSONValue) {
        guard let type = FactsCalls.types.first(where: { FactsCalls.service($0) == question.service }),
            let data = json(question.query)
        else { throw .defect }
        return (type, data)
    }

    static func result(_ reply: CommandReply) -> FactsResult? {
        reply.result.flatMap { try? WireJSONDecoder().decode(FactsResult.self, from: $0) }
    }

    /// - Parameter id: what was asked for.
    static func answer(_ id: String, _ found: IdentityWalk.Findings) -> JSONValue {
        let people = found.people
        return [
            "id": .string(id),
            "rows": .array(
                found.rows.map {
                    ["service": .string($0.service), "words": .string(RowWords.text($0)), "row": $0.value]
                }),
            "decisions": .array(found.decisions.compactMap { told($0, among: people) }),
            "hasMore": .bool(found.hasMore),
            "leftOut": .array(found.leftOut.sorted().map { .string($0) }),
            "silent": .array(found.silent.sorted().map { .string($0) }),
        ]
    }

    private static func told(_ fact: Fact, among people: KnownPeople) -> JSONValue? {
        guard var object = json(fact)?.objectValue else { return nil }
        let step = StepWords(fact, among: people)
        var words: JSONObject = [
            "title": .string(step.title), "lines": .array(step.lines.map { .string($0) }),
            "isShown": .bool(StepWords.isShown(fact)),
        ]
        words["outcome"] = step.outcome.map { .string($0) }
        words["rule"] = step.rule.map { .string($0) }
        object["words"] = .object(words)
        return .object(object)
    }

    /// An event of a dry run, with its sentence.
    static func told(_ event: JSONValue) -> JSONValue {
        guard var object = event.objectValue, let type = event["type"]?.stringValue else { return event }
        object["words"] = .string(EventWords.sentence(Fact.Told(type: type, data: event["data"] ?? .null)))
        return .object(object)
    }

    private static func json(_ value: some Encodable) -> JSONValue? {
        guard let bytes = try? WireJSONEncoder().encode(value) else { return nil }
        return try? JSONValue(parsing: bytes, limits: JSONLimits(maxBytes: bytes.count))
    }
}
