// SPDX-License-Identifier: Apache-2.0

import Crypto
import Testing
import WireJSON

@testable import Contracts

/// Ids that stand in databases and on topics: the vectors (made with Python's hashlib, hmac and uuid) must never change.
@Suite struct DerivedIDTests {
    /// The bytes 0 to 31.
    private let salt = DerivedID.Salt(SymmetricKey(data: (0..<32).map { UInt8($0) }))

    private func user(_ app: AppID, _ source: String, _ id: String) -> String {
        DerivedID.user(salt: salt, of: CommandKey(app: app, source: SourceID(source), id: CommandID(id))).text
    }

    @Test func userIDs() {
        #expect(user("demo", "backend", "c1") == "8a2f2f4be779f186c5ba3f48")
        #expect(user("", "", "") == "e6d8bba7420b50a78be95f9f")
        #expect(user("d\u{e9}", "s\n1:x", "id") == "5e165af8c0d7bd23df9e87a8")
    }

    @Test func profilesAndAliases() {
        let mpid = DerivedID.mpid(salt: salt, of: CommandKey(app: "demo", source: "backend", id: "c1"), counter: 0)
        #expect(mpid.value == -6_291_490_560_419_665_083)
        #expect(
            DerivedID.alias(salt: salt, of: CommandKey(app: "demo", source: "backend", id: "c1"))
                == "f2906668-10ae-86fc-82e4-ecd6ee5fe537")
    }

    /// Who knows the command and not the salt cannot tell what it makes.
    @Test func everySaltGivesOtherIDs() {
        let salts = [salt] + (0..<50).map { _ in DerivedID.Salt(SymmetricKey(size: .bits256)) }
        let users = salts.map { DerivedID.user(salt: $0, of: CommandKey(app: "a", source: "s", id: "c")) }
        let mpids = salts.map { DerivedID.mpid(salt: $0, of: CommandKey(app: "a", source: "s", id: "c"), counter: 0) }
        let aliases = salts.map { DerivedID.alias(salt: $0, of: CommandKey(app: "a", source: "s", id: "c")) }
        #expect(Set(users).count == 51 && Set(mpids).count == 51 && Set(aliases).count == 51)
    }

    @Test func messageIDs() {
        #expect(
            DerivedID.message(of: CommandKey(app: "demo", source: "backend", id: "c1"), index: 0)
                == "cf7a9ede-87f1-55d8-87e6-53547b9cd7e1")
        #expect(
            DerivedID.message(of: CommandKey(app: "demo", source: "backend", id: "c1"), index: 1)
                == "525db6b9-156f-502a-83af-8b6cc0ecdecc")
        #expect(
            DerivedID.message(
                cluster: "cluster", topic: "identity.link.commands.v1", partition: 3, incarnation: 0, offset: 42,
                index: 0)
                == "a005b28f-fe6e-5c68-be0f-ee4f4437a46f")
    }

    @Test func messageIDsAreUUIDsOfVersion5() throws {
        for index in 0..<200 {
            let id = DerivedID.message(of: CommandKey(app: "demo", source: "s", id: "c"), index: index)
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
        #expect(Set(triples.map { user(AppID($0), $1, $2) }).count == triples.count)
        let ids = triples.map {
            DerivedID.message(of: CommandKey(app: AppID($0), source: SourceID($1), id: CommandID($2)), index: 0)
        }
        #expect(Set(ids).count == triples.count)
    }

    /// A command may be named as a record's coordinates are; the ids still differ.
    @Test func recordAndCommandIDsNeverMeet() {
        let record = DerivedID.message(
            cluster: "c", topic: "t", partition: 0, incarnation: 0, offset: 1, index: 0)
        for id in ["0", "0\n1:1", "0\n1:1\n1:0"] {
            #expect(DerivedID.message(of: CommandKey(app: "c", source: "t", id: CommandID(id)), index: 0) != record)
        }
    }

    /// A topic that was made anew has another record at the same offset.
    @Test func recordIDsDifferFromLogToLog() {
        let ids = (0..<3).map {
            DerivedID.message(cluster: "c", topic: "t", partition: 0, incarnation: $0, offset: 1, index: 0)
        }
        #expect(Set(ids).count == 3)
    }

    @Test func userIDsLookLikeTheVendors() {
        for number in 0..<200 {
            let id = user("demo", "s", "\(number)")
            #expect(id.utf8.count == 24)
            #expect(id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        }
    }

    @Test func hexIsReadInPairsOfDigits() throws {
        let bytes: [UInt8] = [0, 0x0f, 0xa0, 0xff]
        #expect(bytes.hex == "000fa0ff" && [UInt8](hex: "000FA0ff") == bytes && [UInt8](hex: "") == [])
        for text in ["0", "000", "0g", "g0", " 00", "0x00", "\u{FF10}\u{FF10}"] { #expect([UInt8](hex: text) == nil) }
        let digest = TextDigest(of: "anna")
        #expect(try WireJSONEncoder().encode(digest) == Array("\"\(digest.bytes.hex)\"".utf8))
        #expect(try WireJSONDecoder().decode(TextDigest.self, from: WireJSONEncoder().encode(digest)) == digest)
        let wrong = Array(#""0g""#.utf8)
        #expect(throws: DecodingError.self) { try WireJSONDecoder().decode(TextDigest.self, from: wrong) }
    }
}
