// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WireJSON

@Suite struct ModelTests {
    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min),
            ("9223372036854775808", nil), ("-9223372036854775809", nil), ("5.0", nil), ("1e3", nil), ("1E0", nil),
            ("99999999999999999999999", nil), ("-7", -7),
        ] as [(String, Int64?)])
    func readsIntegersExactly(_ lexeme: String, _ expected: Int64?) throws {
        let number = try #require(JSONNumber(lexeme: lexeme))
        #expect(number.int64 == expected)
        #expect(try parse(lexeme).int64Value == expected)
    }

    @Test(arguments: ["", " 1", "1 ", "01", "+1", "1.", "NaN", "\"1\"", "[1]", "1,2", "0x1"])
    func refusesLexemes(_ lexeme: String) {
        #expect(JSONNumber(lexeme: lexeme) == nil)
    }

    @Test func makesNumbers() throws {
        #expect(JSONNumber(UInt64.max).lexeme == "18446744073709551615")
        #expect(JSONNumber(5.0)?.lexeme == "5")
        #expect(JSONNumber(-0.0)?.lexeme == "-0")
        #expect(JSONNumber(-0.0)?.double.sign == .minus)
        #expect(JSONNumber(0.1)?.lexeme == "0.1")
        #expect(JSONNumber(.infinity) == nil)
        #expect(JSONNumber(.nan) == nil)
        #expect(try #require(JSONNumber(lexeme: "1e999")).double == .infinity)
    }

    @Test func comparesByBytes() throws {
        #expect(JSONValue.string("é") != JSONValue.string("e\u{301}"))
        var object = JSONObject()
        object["K"] = 1
        #expect(object["\u{212A}"] == nil)
        object["K"] = 2
        #expect(object.count == 1)
        #expect(object["K"] == 2)
        object["K"] = nil
        #expect(object.isEmpty)
    }

    @Test func ignoresMemberOrder() throws {
        let one = try parse(#"{"a":1,"b":[2],"c":{"d":3,"e":4}}"#)
        let other = try parse(#"{"c":{"e":4,"d":3},"b":[2],"a":1}"#)
        #expect(one == other)
        #expect(one.hashValue == other.hashValue)
        #expect(one != (try parse(#"{"a":1,"b":[2],"c":{"d":3,"e":5}}"#)))
        #expect(one != (try parse(#"{"a":1,"b":[2],"x":{"d":3,"e":4}}"#)))
        #expect(try parse("[1,2]") != parse("[2,1]"))
    }

    @Test func escapesOnlyWhatMustBe() throws {
        let all = String(String.UnicodeScalarView((0...0x7F).compactMap { Unicode.Scalar($0 as UInt32) }))
        let written = text(JSONValue.string(all).serialized())
        let controls = (0..<0x20).map { code in
            [8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"][code] ?? String(format: "\\u%04x", code)
        }
        let rest = (0x20...0x7F).map { code in
            code == 0x22 ? "\\\"" : code == 0x5C ? "\\\\" : String(UnicodeScalar(UInt8(code)))
        }
        #expect(written == "\"" + (controls + rest).joined() + "\"")
        #expect(try parse(written) == .string(all))
        for code in 0..<0x20 {
            let raw: [UInt8] = [0x22, UInt8(code), 0x22]
            #expect(refusal(raw)?.offset == 1)
        }
    }

    @Test func canonicalFormIgnoresSpelling() throws {
        var random = RandomJSON(seed: 11)
        for round in 0..<2000 {
            let value = random.value()
            let canonical = value.canonicalBytes()
            let other = try parse(random.disguise(value))
            #expect(other == value, "round \(round)")
            #expect(other.canonicalBytes() == canonical, "round \(round)")
            let again = try JSONValue(parsing: canonical)
            #expect(again.canonicalBytes() == canonical)
        }
    }

    @Test func canonicalFormIsAsDocumented() throws {
        let value = try parse(
            #" { "b" : [ 1.0 , -0 , 1e0 ] , "a" : "\u002f\u00e9" , "B" : { } , "é":1, "\uffff":2,"😀":3} "#)
        #expect(
            text(value.canonicalBytes())
                == "{\"B\":{},\"a\":\"/é\",\"b\":[1.0,0,1e0],\"é\":1,\"\u{FFFF}\":2,\"😀\":3}")
        #expect(try parse("1").canonicalBytes() != parse("2").canonicalBytes())
        #expect(try parse(#"["a","b"]"#).canonicalBytes() != parse(#"["b","a"]"#).canonicalBytes())
    }

    @Test func randomTreesRoundTrip() throws {
        var random = RandomJSON(seed: 12)
        for round in 0..<2000 {
            let value = random.value()
            let bytes = value.serialized()
            #expect(try JSONValue(parsing: bytes) == value, "round \(round)")
            #expect(try JSONValue(parsing: bytes).serialized() == bytes)
            #expect(try WireJSONEncoder().encode(value) == bytes)
            #expect(try WireJSONDecoder().decode(JSONValue.self, from: value) == value)
        }
    }
}
