// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
public import Storage
public import WireJSON

/// What a service holds about an id.
public struct FactsSubject: Sendable {
    /// The rows, each an object with its `kind`.
    public var state: [JSONValue] = []
    /// The last decision about each of the rows.
    public var heads: [ChainLink] = []
    /// How else decisions may have mentioned the id: an identity value in the spelling that is compared, say.
    public var spellings: Set<String> = []

    public init() {}

    /// A row.
    /// - Parameters:
    ///   - members: those that are `nil` are left out.
    ///   - last: `nil` where the row does not lead to its decisions.
    public mutating func add(
        _ kind: String, _ members: KeyValuePairs<String, JSONValue?>, _ last: LastDecision? = nil
    ) {
        guard state.count < Self.most else { return }
        let told = members.compactMap { name, value in value.map { (name, $0) } }
        state.append(.object(JSONObject([("kind", .string(kind))] + told)))
        if let last, last.link != .none { heads.append(last.link) }
    }

    /// As many rows are told; a value that thousands share must not drag them all along.
    public static let most = 50
}

extension Decision {
    /// The answer to ``Contracts/ReadFacts``.
    public static func facts(_ context: DecisionContext) -> Decision {
        switch context.facts {
        case .success(let facts): Decision(.succeeded(facts))
        case .failure(let rejection): Decision(.rejected(rejection))
        case nil: Decision(.rejected(Rejection(.internalError)))
        }
    }
}

/// Follows the chains of an id from decision to decision, the newest first (docs/loop.md "The chain"). It reads, and
/// writes nothing.
struct FactsReader {
    let service: String
    let app: AppID
    let secrets: DerivedSecrets
    let transaction: any SQLTransaction

    /// As many decisions are told at once.
    static let page = 100
    /// As many bytes of them: with what is around them, an answer stays below 256 KiB.
    private static let mostBytes = 160 << 10
    /// A decision that is longer is told without what its events say.
    private static let mostOfOne = 32 << 10

    /// Where a page ends.
    private struct Place {
        /// What leads on.
        var links: [ChainLink] = []
        /// The last mention that was told.
        var mention: Mentions.Row?
    }

    private struct Candidate {
        var decision: StoredDecision
        var links: [ChainLink]
        var mention: Mentions.Row?
    }

    /// - Parameter subject: looks for the rows; asked for the first page, and for how else the id is spelled.
    func read(_ query: FactsQuery, _ subject: FactsSubject) throws -> Result<FactsResult, Rejection> {
        var place = Place(links: subject.heads)
        if let page = query.page {
            guard let given = opened(page, query.id) else {
                return .failure(Rejection(.invalidRequest, "data.page is not what `next` said for this id."))
            }
            place = given
        } else {
            place.links += try commands(query)
        }
        var walk = Walk(waiting: place.links, mention: place.mention)
        let names = subject.spellings.union([query.id])
        let mentions = try mentions(names, behind: place.mention)
        for mention in mentions {
            walk.waiting.append(mention.link)
            walk.mentioned[mention.link.target] = mention
        }
        let logs = try places()
        let packing = ReceiptPacking()
        var result = FactsResult(id: query.id, state: query.page == nil ? subject.state : [], facts: [])
        var bytes = 0
        while result.facts.count < Self.page, bytes < Self.mostBytes {
            try walk.resolve(in: transaction)
            guard let decision = walk.takeNewest() else { break }
            guard let (fact, size) = try fact(decision, about: names, logs, packing) else { continue }
            result.facts.append(fact)
            bytes += size
        }
        if !walk.isOver { result.next = closed(walk.rest, query.id) }
        return .success(result)
    }

    /// What is known so far on the way back.
    private struct Walk {
        /// To be looked up.
        var waiting: [ChainLink]
        var mention: Mentions.Row?
        var mentioned: [Int64: Mentions.Row] = [:]
        private var candidates: [Int64: Candidate] = [:]
        /// Decisions that were told, and where they lead.
        private var told: [Int64: StoredDecision] = [:]

        init(waiting: [ChainLink], mention: Mentions.Row?) {
            self.waiting = waiting
            self.mention = mention
        }

        var isOver: Bool { waiting.isEmpty && candidates.isEmpty }

        /// What is forgotten leads no further.
        mutating func resolve(in transaction: any SQLTransaction) throws {
            while !waiting.isEmpty {
                let links = waiting
                waiting = []
                let unknown = links.filter { told[$0.target] == nil && candidates[$0.target] == nil }
                let found = unknown.isEmpty ? [:] : try Inbox.decisions(unknown, in: transaction)
                for link in links {
                    if let decision = told[link.target] {
                        if let next = decision.next(after: link) { waiting.append(next) }
                    } else if let decision = candidates[link.target]?.decision ?? found[link.target] {
                        let new = Candidate(decision: decision, links: [], mention: mentioned[link.target])
                        candidates[link.target, default: new].links.append(link)
                    }
                }
            }
        }

        mutating func takeNewest() -> StoredDecision? {
            func order(_ candidate: Candidate) -> (Int64, Int64, Int64) {
                (candidate.decision.decidedAt, candidate.decision.offset, candidate.decision.decision)
            }
            guard let newest = candidates.values.max(by: { order($0) < order($1) }) else { return nil }
            candidates[newest.decision.decision] = nil
            told[newest.decision.decision] = newest.decision
            if let place = newest.mention { mention = place }
            waiting += newest.links.compactMap { newest.decision.next(after: $0) }
            return newest.decision
        }

        /// What was mentioned and is not told yet is looked for again.
        var rest: Place {
            let links = candidates.values.flatMap { candidate in
                candidate.links.filter { candidate.mention?.link != $0 }
            }
            return Place(links: waiting + links, mention: mention)
        }
    }

    // MARK: What there is

    private func mentions(_ spellings: Set<String>, behind place: Mentions.Row?) throws -> [Mentions.Row] {
        let rows = try spellings.sorted().flatMap {
            try Mentions.of(secrets.subject($0, of: app), behind: place, limit: Self.page + 1, in: transaction)
        }
        return Array(
            rows.sorted { ($0.decidedAt, $0.link.number) > ($1.decidedAt, $1.link.number) }.prefix(Self.page + 1))
    }

    /// The decision on a command with this id.
    private func commands(_ query: FactsQuery) throws -> [ChainLink] {
        let usual: [SourceID] = [SourceID(Topics.gatewaySource), SourceID(Topics.toolSource)]
        let sources = query.source.map { [$0] } ?? usual
        return try sources.compactMap { source in
            try Inbox.decision(
                CommandKey(app: app, source: source, id: CommandID(query.id)), in: transaction)
        }
    }

    private func places() throws -> [Int64: TopicPartition] {
        let logs = try Logs.all(in: transaction).map { ($0.number, $0.partition) }
        return Dictionary(logs, uniquingKeysWith: { first, _ in first })
    }

    // MARK: Telling

    /// - Parameter names: of a decision about many people, what says these is told.
    /// - Returns: `nil` for what belongs to another app, or cannot be read.
    private func fact(
        _ decision: StoredDecision, about names: Set<String>, _ logs: [Int64: TopicPartition], _ packing: ReceiptPacking
    ) throws -> (Fact, size: Int)? {
        guard
            var receipt = try? Receipt(
                column: decision.receipt, decidedAt: decision.decidedAt, packing: packing), receipt.app == app.text
        else { return nil }
        let isOfMany = ImportList.types.contains(receipt.type)
        if isOfMany { receipt.told.removeAll { !Self.says(names, $0.data) } }
        let isCut = receipt.told.reduce(0) { $0 + $1.data.count } > Self.mostOfOne
        func told(_ role: OutboxRecord.Role) -> [Fact.Told] {
            receipt.told.filter { $0.role == role }.map { told in
                Fact.Told(type: told.type, data: isCut ? .null : (try? JSONValue(parsing: told.data)) ?? .null)
            }
        }
        let place = logs[decision.log]
        var fact = Fact(
            service: service, decidedAt: Timestamp(milliseconds: decision.decidedAt), topic: place?.topic ?? "",
            partition: place?.partition ?? -1, offset: decision.offset, type: receipt.type,
            source: SourceID(receipt.source), commandId: CommandID(receipt.id),
            traceId: receipt.traceID, outcome: decision.verdict.rawValue, reason: receipt.reason,
            events: told(.event), commands: told(.command))
        if receipt.reply?.role == .confidentialReply {
            fact.hasSecret = true
        } else if let value = receipt.reply?.value, value.count <= Self.mostOfOne,
            let envelope = try? JSONValue(parsing: value), let reply = envelope["data"].flatMap({ ReceivedReply($0) })
        {
            (fact.message, fact.result) = (reply.message, isOfMany ? nil : reply.result)
            fact.authId = envelope["authid"]?.stringValue
        }
        return (fact, try WireJSONEncoder().encode(fact).count)
    }

    /// Whether one of these is a text of it.
    private static func says(_ names: Set<String>, _ data: [UInt8]) -> Bool {
        func says(_ value: JSONValue) -> Bool {
            switch value {
            case .string(let text): names.contains(text)
            case .array(let values): values.contains(where: says)
            case .object(let object): object.members.contains { says($0.value) }
            case .number, .bool, .null: false
            }
        }
        return (try? JSONValue(parsing: data)).map(says) ?? false
    }

    // MARK: Pages

    /// Nobody can make one of their own: it would lead to any decision.
    private func closed(_ place: Place, _ id: String) -> String? {
        let numbers = [place.mention?.decidedAt ?? -1, place.mention?.link.number ?? 0] + place.links.map(\.number)
        let bytes = numbers.flatMap { number in withUnsafeBytes(of: number.littleEndian) { Array($0) } }
        return secrets.closed(bytes, "facts", [app.text, id]).map { Data($0).base64EncodedString() }
    }

    private func opened(_ page: String, _ id: String) -> Place? {
        guard let data = Data(base64Encoded: page), let bytes = secrets.opened(Array(data), "facts", [app.text, id]),
            bytes.count >= 16, bytes.count.isMultiple(of: 8)
        else { return nil }
        let numbers = stride(from: 0, to: bytes.count, by: 8).map { start in
            bytes[start..<start + 8].reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
        }
        var place = Place(links: numbers.dropFirst(2).map(ChainLink.init(number:)))
        if numbers[0] >= 0 {
            place.mention = Mentions.Row(
                subject: 0, decidedAt: numbers[0], link: ChainLink(number: numbers[1]))
        }
        return place
    }
}
