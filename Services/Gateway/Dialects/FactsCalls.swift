// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What all services know about an id: each is asked the same (``ReadFacts``), and their answers are one.
enum FactsCalls {
    static let types = [
        CommandType(ReadFacts<FactsOf.Link>.self), CommandType(ReadFacts<FactsOf.User>.self),
        CommandType(ReadFacts<FactsOf.Sync>.self), CommandType(ReadFacts<FactsOf.Verification>.self),
    ]

    /// Of a request whose path has the id.
    @Sendable static func named(_ content: RequestContent) -> JSONValue {
        var data: JSONObject = ["id": .string(content.id)]
        data["source"] = content.query[.source].map { .string($0) }
        data["after"] = content.query[.after].map { .string($0) }
        return .object(data)
    }

    /// What each service is asked.
    /// - Parameter data: the request's. With `after` only the services that have more are asked.
    /// - Throws: `INVALID_REQUEST` when `after` is not what `next` said.
    static func questions(_ data: JSONValue) throws(APIFailure) -> [(type: CommandType, data: JSONValue)] {
        guard var question = data.objectValue, let after = question["after"] else { return types.map { ($0, data) } }
        question["after"] = nil
        let pages = try pages(after)
        return types.compactMap { type in
            guard let page = pages[service(type)] else { return nil }
            question["page"] = .string(page)
            return (type, .object(question))
        }
    }

    /// - Parameter answers: by service, those that came.
    static func result(_ data: JSONValue, _ answers: [String: JSONObject], silent: [String]) -> JSONObject {
        var told: [(String, JSONValue)] = []
        var pages: [String] = []
        for service in types.map(service) {
            guard var answer = answers[service] else { continue }
            if let page = answer["next"]?.stringValue { pages.append("\(service):\(page)") }
            answer["id"] = nil
            answer["next"] = nil
            told.append((service, .object(answer)))
        }
        var result: JSONObject = ["id": data["id"] ?? .null, "services": .object(JSONObject(told))]
        if !silent.isEmpty { result["silent"] = .array(silent.map { .string($0) }) }
        if !pages.isEmpty { result["next"] = .string(pages.joined(separator: ",")) }
        return result
    }

    static func service(_ type: CommandType) -> String { CommandType.service(of: type.name) ?? "" }

    /// The page of each service; what a page is, the service knows.
    private static func pages(_ after: JSONValue) throws(APIFailure) -> [String: String] {
        let known = Set(types.map(service))
        var pages: [String: String] = [:]
        for part in (after.stringValue ?? "").split(separator: ",", omittingEmptySubsequences: false) {
            let pair = part.split(separator: ":", maxSplits: 1).map(String.init)
            guard pair.count == 2, known.contains(pair[0]), pages[pair[0]] == nil else {
                throw .invalid("after is not what `next` said.")
            }
            pages[pair[0]] = pair[1]
        }
        return pages
    }
}
