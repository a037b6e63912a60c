// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Testing

@testable import Contracts

/// Ids that stand in databases and on topics: the vectors (made with Python's hashlib and uuid) must never change.
@Suite struct DerivedIDTests {
    @Test func userIDs() {
        #expect(DerivedID.user(app: "demo", source: "backend", commandID: "c1") == "f0bb69eeec65679d0ed1576a")
        #expect(DerivedID.user(app: "", source: "", commandID: "") == "e36e8ce6a6205eab43d708b6")
        #expect(DerivedID.user(app: "d\u{e9}", source: "s\n1:x", commandID: "id") == "c4b493034d434c004d002c53")
    }

    @Test func messageIDs() {
        #expect(
            DerivedID.message(app: "demo", source: "backend", commandID: "c1", index: 0)
                == "cf7a9ede-87f1-55d8-87e6-53547b9cd7e1")
        #expect(
            DerivedID.message(app: "demo", source: "backend", commandID: "c1", index: 1)
                == "525db6b9-156f-502a-83af-8b6cc0ecdecc")
        #expect(
            DerivedID.message(
                cluster: "cluster", topic: "identity.link.commands.v1", partition: 3, offset: 42, index: 0)
                == "a005b28f-fe6e-5c68-be0f-ee4f4437a46f")
    }

    @Test func messageIDsAreUUIDsOfVersion5() throws {
        for index in 0..<200 {
            let id = DerivedID.message(app: "demo", source: "s", commandID: "c", index: index)
            let parts = id.split(separator: "-")
            #expect(parts.map(\.count) == [8, 4, 4, 4, 12])
            #expect(parts[2].first == "5")
            #expect(["8", "9", "a", "b"].contains(parts[3].first))
            #expect(id.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        }
    }

    @Test func partsDoNotRunTogether() {
        let triples = [
            ("a", "bc", "d"), ("ab", "c", "d"), ("a", "b", "cd"), ("abc", "", "d"), ("", "abc", "d"), ("a", "bcd", ""),
            ("a\n2:bc", "", "d"), ("a", "2:bc\n1:d", ""), ("1:a", "bc", "d"),
        ]
        #expect(Set(triples.map { DerivedID.user(app: $0, source: $1, commandID: $2) }).count == triples.count)
        let ids = triples.map { DerivedID.message(app: $0, source: $1, commandID: $2, index: 0) }
        #expect(Set(ids).count == triples.count)
    }

    /// A command may be named as a record's coordinates are; the ids still differ.
    @Test func recordAndCommandIDsNeverMeet() {
        let record = DerivedID.message(cluster: "c", topic: "t", partition: 0, offset: 1, index: 0)
        for id in ["0", "0\n1:1", "0\n1:1\n1:0"] {
            #expect(DerivedID.message(app: "c", source: "t", commandID: id, index: 0) != record)
        }
    }

    @Test func userIDsLookLikeTheVendors() {
        for number in 0..<200 {
            let id = DerivedID.user(app: "demo", source: "s", commandID: "\(number)")
            #expect(id.utf8.count == 24)
            #expect(id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        }
    }
}
