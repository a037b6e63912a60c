// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

@Suite struct DecisionChainTests {
    private static func key(_ id: CommandID) -> StoredKey { StoredKey(CommandKey(app: "a", source: "s", id: id)) }

    @Test func aLinkLeadsToTheDecisionBefore() {
        var first = DecisionChain(Self.key("1"))
        let one = first.link(after: .none)
        #expect(first.before.isEmpty && !first.isEmpty)
        var second = DecisionChain(Self.key("2"))
        let other = second.link(after: ChainLink(number: -5))
        let two = second.link(after: one)
        #expect(DecisionChain.links(second.before) == [ChainLink(number: -5), one])
        #expect(other.target == two.target && other.place == 0 && two.place == 1)
        #expect(two.target != one.target)
    }

    @Test func whatIsChainedTwiceHasOnePlace() {
        var chain = DecisionChain(Self.key("1"))
        let link = chain.link(after: ChainLink(number: 77 << 12))
        #expect(chain.link(after: link) == link)
        #expect(chain.before.count == 8)
    }

    @Test func whoHasNoPlaceLeftKeepsItsLink() {
        var chain = DecisionChain(Self.key("1"))
        for number in 1..<ChainLink.places { _ = chain.link(after: ChainLink(number: number << 12)) }
        let last = ChainLink(number: 1 << 40)
        #expect(chain.link(after: last) == last)
    }

    @Test(arguments: SQLEngine.allCases) func decisionsAreFoundByTheirLinks(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let rows = (0..<50).map { InboxTests.row(offset: $0) }
        try database.transaction { try InboxTests.append(rows, in: $0) }
        let links = rows.map { ChainLink(number: $0.storedKey.decision | ChainLink.noPlace) }
        let found = try database.transaction { try Inbox.decisions(links + [.none, ChainLink(number: -4096)], in: $0) }
        #expect(found.count == 50)
        for (row, link) in zip(rows, links) {
            #expect(found[link.target]?.offset == row.position.offset)
            #expect(found[link.target]?.next(after: link) == nil)
        }
    }

    @Test(arguments: SQLEngine.allCases) func mentionsComeNewestFirst(_ engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let database = try store.openMigrated()
        let rows = (0..<20).map { number in
            Mentions.Row(subject: -7, decidedAt: Int64(number / 2), link: ChainLink(number: Int64(number)))
        }
        try database.transaction { transaction in
            try Mentions.append(Array(rows[..<7]), generation: 1, in: transaction)
            try Mentions.append(Array(rows[7...]), generation: 2, in: transaction)
            try Mentions.append([Mentions.Row(subject: 8, decidedAt: 3, link: .none)], generation: 1, in: transaction)
            #expect(try Mentions.of(-7, behind: nil, limit: 100, in: transaction) == rows.reversed())
            #expect(try Mentions.of(-7, behind: rows[8], limit: 3, in: transaction) == [rows[7], rows[6], rows[5]])
        }
    }
}
