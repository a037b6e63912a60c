// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WireJSON

@Suite struct EncoderTests {
    private func encode<T: Encodable>(_ value: T, sorted: Bool = false) throws -> String {
        text(try WireJSONEncoder(sortedKeys: sorted).encode(value))
    }

    private func custom(
        _ sorted: Bool = false, _ body: @escaping (any Encoder) throws -> Void
    ) throws -> String {
        try encode(Custom(body: body), sorted: sorted)
    }

    @Test func scalarsAndShapes() throws {
        #expect(try encode("a/\"b\"") == #""a/\"b\"""#)
        #expect(try encode(7) == "7")
        #expect(try encode(Int64.min) == "-9223372036854775808")
        #expect(try encode(UInt64.max) == "18446744073709551615")
        #expect(try encode(5.0) == "5")
        #expect(try encode([0.1, 1e300, -0.0]) == "[0.1,1e+300,-0]")
        #expect(try encode(Float(0.1)) == "0.1")
        #expect(try encode(nil as Int?) == "null")
        #expect(try encode([true, nil]) == "[true,null]")
        #expect(try encode([[], [1]] as [[Int]]) == "[[],[1]]")
        #expect(try encode(Everything.Empty()) == "{}")
        #expect(try encode(Kind.phone) == "\"phone\"")
        #expect(try encode(Device(kind: .laptop, level: nil, serial: 5)) == #"{"kind":"laptop","serial":5}"#)
        #expect(try encode(Choice.named(name: "x", count: 1)) == #"{"named":{"name":"x","count":1}}"#)
    }

    @Test func sortsByBytes() throws {
        let table = [
            "b": 1, "a": 2, "é": 3, "B": 4, "a\"": 5, "a!": 6, "😀": 7, "\u{FFFF}": 8, "": 9, "\u{212B}": 10,
        ]
        // The Angstrom sign is canonically equivalent to U+00C5, which would sort before é.
        let ascii = #"{"":9,"B":4,"a":2,"a!":6,"a\"":5,"b":1,"#
        let expected = ascii + "\"é\":3,\"\u{212B}\":10,\"\u{FFFF}\":8,\"😀\":7}"
        #expect(try encode(table, sorted: true) == expected)
        let value: JSONValue = ["y": ["b": 1, "a": 2], "x": 1.5]
        #expect(try encode(value, sorted: true) == #"{"x":1.5,"y":{"a":2,"b":1}}"#)
        #expect(try encode(["k": [value]]) == #"{"k":[{"y":{"b":1,"a":2},"x":1.5}]}"#)
        #expect(
            try encode(Device(kind: .laptop, level: .low, serial: 5), sorted: true)
                == #"{"kind":"laptop","level":1,"serial":5}"#)
    }

    @Test func sortingKeepsTheContent() throws {
        let bytes = try WireJSONEncoder(sortedKeys: true).encode(Everything())
        #expect(try WireJSONDecoder().decode(Everything.self, from: bytes) == Everything())
        let value = try JSONValue(parsing: bytes)
        #expect(bytes == value.canonicalBytes())
    }

    @Test func rejectsWhatJSONCannotSay() throws {
        struct Reading: Encodable {
            var list: [Double]
        }
        for bad in [Double.nan, .infinity, -.infinity] {
            do {
                _ = try encode(["k": Reading(list: [1, bad])])
                Issue.record("accepted")
            } catch {
                #expect(
                    WireJSONError.explain(error)
                        == "k.list[1]: cannot be written: JSON has no NaN and no infinities")
            }
        }
        #expect(throws: EncodingError.self) { try encode(Float.nan) }
    }

    @Test func embedsRawText() throws {
        let raw = RawJSON(Array(#"{"b" : 1, "a":2}"#.utf8))
        #expect(try encode(raw) == #"{"b" : 1, "a":2}"#)
        #expect(try encode(["x": [raw, raw]], sorted: true) == #"{"x":[{"b" : 1, "a":2},{"b" : 1, "a":2}]}"#)
        #expect(throws: EncodingError.self) { try encode(RawJSON([UInt8]())) }
        #expect(throws: JSONParseError.self) { try RawJSON(validating: Array("{]".utf8)) }
        #expect(try RawJSON(validating: Array("{}".utf8)).bytes.count == 2)
        #expect(text(RawJSON(["a": 1]).bytes) == #"{"a":1}"#)
        #expect(text(Array(try JSONEncoder().encode(raw))).contains("\"a\":2"))
    }

    /// Containers that are open at the same time may be written to in any order.
    @Test(arguments: [false, true])
    func interleavedContainers(_ sorted: Bool) throws {
        let written = try custom(sorted) { encoder in
            var root = encoder.container(keyedBy: Name.self)
            var list = root.nestedUnkeyedContainer(forKey: "m")
            var object = root.nestedContainer(keyedBy: Name.self, forKey: "c")
            try root.encode(1, forKey: "a")
            try list.encode("one")
            try object.encode(true, forKey: "z")
            var inner = list.nestedContainer(keyedBy: Name.self)
            try list.encode(2)
            try inner.encode(["k": 1], forKey: "i")
            var deep = object.nestedUnkeyedContainer(forKey: "b")
            try root.encode(["v": [1.5]], forKey: "x")
            try deep.encodeNil()
            try Int(5).encode(to: root.superEncoder())
            _ = root.nestedUnkeyedContainer(forKey: "e")
            try list.encode(contentsOf: [3, 4])
        }
        let list = #""m":["one",{"i":{"k":1}},2,3,4]"#
        let plain = #"{\#(list),"c":{"z":true,"b":[null]},"a":1,"x":{"v":[1.5]},"super":5,"e":[]}"#
        let inOrder = #"{"a":1,"c":{"b":[null],"z":true},"e":[],\#(list),"super":5,"x":{"v":[1.5]}}"#
        #expect(written == (sorted ? inOrder : plain))
    }

    @Test func containersMayBeAskedForTwice() throws {
        let written = try custom { encoder in
            var one = encoder.container(keyedBy: Name.self)
            try one.encode(1, forKey: "a")
            var two = encoder.container(keyedBy: Name.self)
            try two.encode(2, forKey: "b")
            try one.encode(3, forKey: "c")
        }
        #expect(written == #"{"a":1,"b":2,"c":3}"#)
    }

    /// An ignored failure leaves no trace.
    @Test func takesBackWhatFailed() throws {
        let written = try custom { encoder in
            var root = encoder.container(keyedBy: Name.self)
            try? root.encode(["x": [1, Double.nan]], forKey: "bad")
            try? root.encode(Double.nan, forKey: "worse")
            try root.encode(1, forKey: "good")
            try? root.encode(
                Custom { inner in
                    var container = inner.container(keyedBy: Name.self)
                    _ = container.nestedUnkeyedContainer(forKey: "gone")
                    throw CancellationError()
                }, forKey: "worst")
            try root.encode([[1]], forKey: "list")
            #expect(throws: EncodingError.self) { try root.encode(2, forKey: "good") }
            #expect(throws: EncodingError.self) { try root.encode(["x"], forKey: "list") }
        }
        #expect(written == #"{"good":1,"list":[[1]]}"#)
        let list = try custom { encoder in
            var root = encoder.unkeyedContainer()
            try? root.encode([Double.nan])
            try root.encode([1.0])
            #expect(root.count == 1)
            try? root.encode(Double.nan)
        }
        #expect(list == "[[1]]")
    }

    @Test func misuseFailsInsteadOfSpoilingTheText() throws {
        #expect(throws: EncodingError.self) {
            try custom { encoder in
                _ = encoder.container(keyedBy: Name.self)
                _ = encoder.unkeyedContainer()
            }
        }
        #expect(throws: EncodingError.self) {
            try custom { encoder in
                var single = encoder.singleValueContainer()
                try single.encode(1)
                try single.encode(2)
            }
        }
        #expect(throws: EncodingError.self) {
            try custom { encoder in
                var root = encoder.container(keyedBy: Name.self)
                _ = root.nestedUnkeyedContainer(forKey: "a")
                _ = root.nestedUnkeyedContainer(forKey: "a")
            }
        }
        #expect(throws: EncodingError.self) {
            try custom { encoder in
                var outer = encoder.unkeyedContainer()
                let copy = outer
                try outer.encode(
                    Custom { inner in
                        var stale = copy
                        var own = inner.unkeyedContainer()
                        try own.encode(1)
                        try stale.encode(2)
                    })
            }
        }
    }

    @Test func differsFromFoundationOnlyInSpelling() throws {
        var random = RandomJSON(seed: 14)
        for _ in 0..<500 {
            let table = (0..<8).reduce(into: [String: [String?]]()) { table, index in
                table["\(index)" + random.string()] = [random.string(), nil, random.string()]
            }
            let bytes = try WireJSONEncoder().encode(table)
            #expect(try JSONDecoder().decode([String: [String?]].self, from: Data(bytes)) == table)
            #expect(try WireJSONDecoder().decode([String: [String?]].self, from: bytes) == table)
            let theirs = Array(try JSONEncoder().encode(table))
            #expect(try WireJSONDecoder().decode([String: [String?]].self, from: theirs) == table)
        }
    }
}
