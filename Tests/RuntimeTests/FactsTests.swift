// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Storage

/// What was decided about an id is found from it, without a look at anything else (docs/loop.md "The chain").
@Suite struct FactsTests {
    /// A store, and a log in which every command is the next record.
    final class Bench {
        private let store: ServiceStore<ChainService>
        private let reader: InboundReader<ChainService>
        private var offset: Int64 = 0

        init(_ engine: SQLEngine) throws {
            store = try ServiceStore<ChainService>(engine)
            let keys = [
                Fixture.key("demo-backend", [.userLink, .support]), Fixture.key("demo-sdk", [.sdk]),
            ]
            func app(_ id: AppID, _ keys: [APIKey]) -> AppSettings {
                AppSettings(id: id, keys: Dictionary(uniqueKeysWithValues: keys.map { ($0.id, $0) }))
            }
            let other = Fixture.key("other-backend", [.userLink, .support])
            reader = InboundReader<ChainService>(
                authenticator: Authenticator(
                    trust: .signed, apps: AppDirectory([app("demo", keys), app("other", [other])]), keys: Fixture.keys,
                    topics: Topics()), topics: Topics())
        }

        func record(
            _ type: String, _ id: String, _ data: JSONValue, app: String = "demo", traceParent: String? = nil
        ) throws -> KafkaRecord {
            offset += 1
            var attributes = Fixture.attributes(type, id: id, app: app)
            attributes.subject = nil
            attributes.traceParent = traceParent
            return try Fixture.record(
                attributes, data, signedBy: "\(app)-backend", offset: offset, topic: "identity.chain.commands.v1")
        }

        @discardableResult
        func decide(_ records: [KafkaRecord], at milliseconds: Int64 = 0) throws -> [Entry] {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + milliseconds)
            let writer = MessageWriter(service: "chain", topics: Topics(), keys: Fixture.keys)
            let decider = BatchDecider(
                service: ChainService(), reader: reader, writer: writer, vault: OutboxVault(Fixture.keys),
                secrets: .none, cluster: "cluster", incarnations: [records[0].topicPartition: 7])
            let batch = records.map { reader.read($0, now: now) }
            return try store.database.transaction { transaction in
                for record in records {
                    // As a claim does it.
                    try Logs.enter([LogID(record.topicPartition, incarnation: 7)], in: transaction)
                }
                return try decider.decide(batch, in: transaction, now: now)
            }
        }

        func change(
            _ keys: [String], _ value: String, id: String, app: String = "demo", traceParent: String? = nil
        ) throws -> KafkaRecord {
            try record(
                ChainService.Change.type, id,
                ["keys": .array(keys.map { .string($0) }), "value": .string(value)], app: app, traceParent: traceParent)
        }

        func ask(_ data: JSONValue, app: String = "demo") throws -> ReceivedReply {
            let entries = try decide(
                [record(ReadFacts<ChainService.Owner>.type, "q\(offset)", data, app: app)], at: 1_000_000)
            return try Fixture.reply(#require(entries[0].messages.last?.value)).data
        }

        func facts(_ id: String, page: String? = nil, app: String = "demo") throws -> FactsResult {
            let data: JSONValue =
                page.map { ["id": .string(id), "page": .string($0)] } ?? ["id": .string(id)]
            return try #require(ask(data, app: app).result(as: FactsResult.self))
        }

        func forget() throws {
            try store.database.transaction { transaction in
                for table in Inbox.tables { try transaction.execute("DELETE FROM \(table)") }
            }
        }
    }

    @Test(arguments: SQLEngine.allCases) func allOfThemComeNewestFirst(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        // In batches of three, every other one about both.
        for batch in 0..<90 {
            let records = try (0..<3).map { place in
                let number = 3 * batch + place
                return try bench.change(number.isMultiple(of: 2) ? ["a", "b"] : ["a"], "v\(number)", id: "c\(number)")
            }
            try bench.decide(records, at: Int64(batch))
        }
        for (key, numbers) in [("a", Array((0..<270).reversed())), ("b", (0..<135).reversed().map { 2 * $0 })] {
            var told: [String] = []
            var page: String?
            var pages = 0
            repeat {
                let facts = try bench.facts(key, page: page)
                #expect(facts.facts.count <= 100)
                #expect(facts.state.isEmpty == (pages > 0))
                told += facts.facts.map(\.commandId.text)
                page = facts.next
                pages += 1
            } while page != nil && pages < 5
            #expect(told == numbers.map { "c\($0)" })
        }
    }

    @Test(arguments: SQLEngine.allCases) func aDecisionIsToldWhole(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        try bench.decide([bench.change(["a"], "v", id: "c1")])
        let facts = try bench.facts("a")
        #expect(facts.state == [["kind": "item", "id": "a", "value": "v"]])
        let fact = try #require(facts.facts.first)
        #expect(fact.service == "chain" && fact.type == ChainService.Change.type && fact.outcome == "noted")
        #expect(fact.topic == "identity.chain.commands.v1" && fact.partition == 0 && fact.offset == 1)
        #expect(fact.source == "test" && fact.decidedAt == Fixture.now)
        #expect(fact.events == [.init(type: ChainService.Told.type, data: ["value": "v"])])
        #expect(facts.facts.count == 1 && facts.next == nil)
    }

    /// Whether it was answered, with a secret or without, or not at all (`v`).
    @Test(arguments: SQLEngine.allCases, ["v", "refuse", "secret"])
    func theTraceOfACommandIsTold(_ engine: SQLEngine, _ value: String) throws {
        let bench = try Bench(engine)
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        let parents = [nil, "00-\(trace)-00f067aa0ba902b7-01", "00-\(trace)-00f067aa0ba902b7-00", "nonsense"]
        let records = try parents.enumerated().map { number, parent in
            try bench.change(["a"], value, id: "c\(number)", traceParent: parent)
        }
        try bench.decide(records)
        let told = try (0..<parents.count).map { number in
            let reply = try bench.ask(["id": .string("c\(number)"), "source": "test"])
            return try #require(reply.result(as: FactsResult.self)?.facts.first).traceId
        }
        #expect(told == [nil, trace, trace, nil])
    }

    @Test(arguments: SQLEngine.allCases) func refusalsAreFoundWhetherTheIDIsKnownOrNot(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        try bench.decide([bench.change(["a"], "v", id: "c1")])
        try bench.decide([bench.change(["a", "never"], "refuse", id: "c2")], at: 1)
        try bench.decide([bench.change(["a"], "w", id: "c3")], at: 2)
        #expect(try bench.facts("a").facts.map(\.commandId) == ["c3", "c2", "c1"])
        #expect(try bench.facts("a").facts[1].reason == "INSTALL_NOT_FOUND")
        #expect(try bench.facts("never").facts.map(\.commandId) == ["c2"])
    }

    @Test(arguments: SQLEngine.allCases) func aHundredThousandRefusalsAreReadPageByPage(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        for number in 0..<250 {
            try bench.decide([bench.change(["a"], number == 7 ? "v" : "refuse", id: "c\(number)")], at: Int64(number))
        }
        var told: [String] = []
        var page: String?
        repeat {
            let facts = try bench.facts("a", page: page)
            told += facts.facts.map(\.commandId.text)
            page = facts.next
        } while page != nil && told.count < 500
        #expect(told == (0..<250).reversed().map { "c\($0)" })
    }

    @Test(arguments: SQLEngine.allCases) func whatWasRemovedKeepsItsHistory(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        for (number, value) in ["v", "w", "remove", "x"].enumerated() {
            try bench.decide([bench.change(["a"], value, id: "c\(number)")], at: Int64(number))
        }
        #expect(try bench.facts("a").facts.map(\.commandId) == ["c3", "c2", "c1", "c0"])
    }

    @Test(arguments: SQLEngine.allCases) func aCommandIsFoundByItsID(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        try bench.decide([bench.change(["a"], "secret", id: "c1")])
        #expect(try bench.facts("c1").facts.isEmpty, "nobody says from which source")
        let reply = try bench.ask(["id": "c1", "source": "test"])
        let fact = try #require(reply.result(as: FactsResult.self)?.facts.first)
        #expect(fact.commandId == "c1" && fact.hasSecret == true && fact.result == nil)
        #expect(!String(decoding: try WireJSONEncoder().encode(fact), as: UTF8.self).contains("hush"))
    }

    @Test(arguments: SQLEngine.allCases) func anotherAppsAreNotTold(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        try bench.decide([bench.change(["a"], "v", id: "c1")])
        try bench.decide([bench.change(["z"], "refuse", id: "c2")])
        #expect(try bench.facts("a", app: "other").facts.isEmpty)
        #expect(try bench.facts("z", app: "other").facts.isEmpty)
    }

    @Test(arguments: ["", "x", "AAAA", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="])
    func aPageThatNobodyGaveIsRefused(_ page: String) throws {
        let bench = try Bench(.sqlite)
        let reply = try bench.ask(["id": "a", "page": .string(page)])
        #expect(reply.reason == "INVALID_REQUEST")
    }

    @Test func aPageIsForItsOwnID() throws {
        let bench = try Bench(.sqlite)
        for number in 0..<150 {
            try bench.decide([bench.change(["a"], "v\(number)", id: "c\(number)")], at: Int64(number))
        }
        let next = try #require(bench.facts("a").next)
        #expect(try bench.ask(["id": "b", "page": .string(next)]).reason == "INVALID_REQUEST")
    }

    @Test(arguments: SQLEngine.allCases) func whatIsForgottenEndsTheChain(_ engine: SQLEngine) throws {
        let bench = try Bench(engine)
        try bench.decide([bench.change(["a"], "v", id: "c1")])
        try bench.forget()
        try bench.decide([bench.change(["a"], "w", id: "c2")], at: 1)
        #expect(try bench.facts("a").facts.map(\.commandId) == ["c2"])
    }

    @Test func anAnswerStaysBelowAMessagesSize() throws {
        let bench = try Bench(.sqlite)
        let long = String(repeating: "x", count: 20_000)
        for number in 0..<30 { try bench.decide([bench.change(["a"], long, id: "c\(number)")], at: Int64(number)) }
        var told: [String] = []
        var page: String?
        repeat {
            let facts = try bench.facts("a", page: page)
            #expect(try WireJSONEncoder().encode(facts).count < 250_000)
            told += facts.facts.map(\.commandId.text)
            page = facts.next
        } while page != nil && told.count < 100
        #expect(told == (0..<30).reversed().map { "c\($0)" })
    }
}
