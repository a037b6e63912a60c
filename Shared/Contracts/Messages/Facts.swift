// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A service that says what it knows about an id.
public protocol FactsOwner: Sendable {
    static var service: String { get }
}

/// The services that have ``ReadFacts``.
public enum FactsOf {
    public enum Link: FactsOwner { public static let service = "link" }
    public enum User: FactsOwner { public static let service = "user" }
    public enum Sync: FactsOwner { public static let service = "sync" }
    public enum Verification: FactsOwner { public static let service = "verification" }
}

/// Asks a service what it holds about any id, and what was decided about it. Result: ``FactsResult``.
public struct ReadFacts<Owner: FactsOwner>: PersonQuery {
    public static var type: String { "identity.\(Owner.service).facts.v1" }
    public static var scope: Scope { .support }

    /// What is asked, whoever is.
    public var query: FactsQuery

    public init(_ query: FactsQuery) { self.query = query }

    public init(from decoder: any Decoder) throws { query = try FactsQuery(from: decoder) }
    public init?(usual view: JSONView) {
        guard let query = FactsQuery(usual: view) else { return nil }
        self.init(query)
    }
    public func encode(to encoder: any Encoder) throws { try query.encode(to: encoder) }
    public func write(to json: inout JSONOutput) throws { try query.write(to: &json) }

    public var partitionSubject: String { query.id }
    public var subject: (kind: String, name: String) { ("id", query.id) }

    public func validate() throws(Rejection) { try query.validate() }
}
