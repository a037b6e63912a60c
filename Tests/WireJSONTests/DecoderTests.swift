// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing
import WireJSON

@Suite struct DecoderTests {
    private func decode<T: Decodable>(_ type: T.Type, _ document: String) throws -> T {
        try WireJSONDecoder().decode(type, from: Array(document.utf8))
    }

    /// What `explain` says about the failure to decode.
    private func complaint<T: Decodable>(_ type: T.Type, _ document: String) -> String? {
        do {
            _ = try decode(type, document)
            return nil
        } catch {
            return WireJSONError.explain(error)
        }
    }

    struct Holder<Value: Codable & Equatable>: Codable, Equatable {
        var data: Nested

        struct Nested: Codable, Equatable {
            var items: [Value]
        }

        init(_ value: Value) {
            data = Nested(items: [value])
        }
    }

    @Test func everythingAgreesWithFoundation() throws {
        let value = Everything()
        let bytes = try WireJSONEncoder().encode(value)
        #expect(try WireJSONDecoder().decode(Everything.self, from: bytes) == value)
        #expect(try JSONDecoder().decode(Everything.self, from: Data(bytes)) == value)
        let theirs = Array(try JSONEncoder().encode(value))
        #expect(try WireJSONDecoder().decode(Everything.self, from: theirs) == value)
    }

    private func checkWidth<T: FixedWidthInteger & Codable & Equatable>(_ type: T.Type) throws {
        for value in [T.min, T.max, 0, 1] {
            let holder = Holder(value)
            let document = "{\"data\":{\"items\":[\(value)]}}"
            #expect(text(try WireJSONEncoder().encode(holder)) == document)
            #expect(try decode(Holder<T>.self, document) == holder)
            #expect(try decode(T.self, "\(value)") == value)
            #expect(try decode([String: T].self, "{\"k\":\(value)}")["k"] == value)
            #expect(try decode([String: T?].self, "{\"k\":null}")["k"] == .some(nil))
        }
        let range = "expected an integer from \(T.min) to \(T.max), found one outside that range"
        for excess in ["\(T.max)0", T.isSigned ? "\(T.min)0" : "-1"] {
            #expect(complaint(Holder<T>.self, "{\"data\":{\"items\":[\(excess)]}}") == "data.items[0]: \(range)")
            #expect(complaint([String: T].self, "{\"k\":\(excess)}") == "k: \(range)")
            #expect(complaint(T.self, excess) == range)
        }
        for lossy in ["1.5", "5.0", "1e1"] {
            #expect(
                complaint([T].self, "[1,\(lossy)]")
                    == "[1]: expected an integer, found a number with a fraction or an exponent")
        }
        for (other, name) in [("\"1\"", "a string"), ("true", "a boolean"), ("null", "null"), ("[]", "an array")] {
            #expect(complaint([String: T].self, "{\"k\":\(other)}") == "k: expected an integer, found \(name)")
        }
    }

    @Test func integerWidths() throws {
        try checkWidth(Int.self)
        try checkWidth(Int8.self)
        try checkWidth(Int16.self)
        try checkWidth(Int32.self)
        try checkWidth(Int64.self)
        try checkWidth(UInt.self)
        try checkWidth(UInt8.self)
        try checkWidth(UInt16.self)
        try checkWidth(UInt32.self)
        try checkWidth(UInt64.self)
        try checkWidth(Int128.self)
        try checkWidth(UInt128.self)
    }

    @Test func floats() throws {
        #expect(
            try decode([Double].self, "[1,-0.0,1e3,5e-324,1.7976931348623157e308]")
                == [1, 0, 1000, .leastNonzeroMagnitude, .greatestFiniteMagnitude])
        #expect(
            complaint([Double].self, "[1e999]")
                == "[0]: expected a number in the range of Double, found one beyond it")
        #expect(
            complaint([Float].self, "[1e39]")
                == "[0]: expected a number in the range of Float, found one beyond it")
        #expect(complaint([Double].self, "[\"1\"]") == "[0]: expected a number, found a string")
        var random = SplitMix64(seed: 5)
        for _ in 0..<2000 {
            let value = Double(bitPattern: random.next())
            guard value.isFinite else { continue }
            let bytes = try WireJSONEncoder().encode([value])
            #expect(try WireJSONDecoder().decode([Double].self, from: bytes)[0].bitPattern == value.bitPattern)
            #expect(try JSONDecoder().decode([Double].self, from: Data(bytes))[0] == value)
            let single = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
            guard single.isFinite else { continue }
            let short = try WireJSONEncoder().encode([single])
            #expect(try WireJSONDecoder().decode([Float].self, from: short)[0].bitPattern == single.bitPattern)
        }
    }

    struct Envelope: Decodable {
        struct Inner: Decodable {
            var device: Device
            var note: String?
        }
        var data: Inner
    }

    @Test func explainsWithPaths() {
        func complain(_ device: String) -> String? {
            complaint(Envelope.self, "{\"data\":{\"device\":\(device)}}")
        }
        #expect(complain(#"{"kind":"phone","serial":1}"#) == nil)
        #expect(complain(#"{"kind":5,"serial":1}"#) == "data.device.kind: expected a string, found a number")
        #expect(complain(#"{"kind":null,"serial":1}"#) == "data.device.kind: expected a string, found null")
        #expect(complain(#"{"serial":1}"#) == "data.device.kind: required member is missing")
        #expect(
            complain(#"{"kind":"phone","serial":1,"level":"x"}"#)
                == "data.device.level: expected an integer, found a string")
        #expect(
            complain(#"{"kind":"hunter2","serial":1}"#)
                == "data.device.kind: expected a value that Kind allows, found another String")
        #expect(
            complain(#"{"kind":"phone","serial":1,"level":9}"#)
                == "data.device.level: expected a value that Level allows, found another Int")
        #expect(complain("[]") == "data.device: expected an object, found an array")
        #expect(complain("null") == "data.device: expected an object, found null")
        #expect(complaint(Envelope.self, "7") == "expected an object, found a number")
        #expect(complaint([Int].self, "{}") == "expected an array, found an object")
        #expect(
            complaint(Envelope.self, "{") == "not JSON at byte 1: expected a member name in double quotes, "
                + "found the end of the document")
    }

    @Test func explanationsStayOnOneShortLine() throws {
        let name = "a\\nb" + String(repeating: "c", count: 1000)
        let said = try #require(complaint([String: [Int]].self, "{\"\(name)\":[\"x\"]}"))
        #expect(said.hasPrefix("a bccc"))
        #expect(said.hasSuffix("c[0]: expected an integer, found a string"))
        #expect(said.count < 120)
        #expect(!said.contains("\n"))
        #expect(WireJSONError.explain(CancellationError()) == "failed with an error of type CancellationError")
    }

    @Test func errorsHaveCodingPaths() throws {
        do {
            _ = try decode([String: [Device]].self, #"{"x":[{"kind":"phone","serial":"1"}]}"#)
            Issue.record("accepted")
        } catch DecodingError.typeMismatch(let type, let context) {
            #expect(ObjectIdentifier(type) == ObjectIdentifier(Int64.self))
            #expect(context.codingPath.map(\.intValue) == [nil, 0, nil])
            #expect(context.codingPath.last?.stringValue == "serial")
        }
    }

    @Test func valuesPassThrough() throws {
        struct Mixed: Codable, Equatable {
            var raw: JSONValue
            var maybe: JSONValue?
            var number: JSONNumber
            var object: JSONObject
            var list: [JSONValue]
        }
        let document = #"{"raw":{"z":1.50,"a":[null]},"number":1.000,"object":{"b":1,"a":2},"list":[1e2,"x",{}]}"#
        let mixed = try decode(Mixed.self, document)
        #expect(mixed.maybe == nil)
        #expect(mixed.number.lexeme == "1.000")
        #expect(text(try WireJSONEncoder().encode(mixed)) == document)
        #expect(
            complaint(Mixed.self, #"{"raw":1,"number":"1","object":{},"list":[]}"#)
                == "number: expected a number, found a string")
        #expect(
            complaint(Mixed.self, #"{"raw":1,"number":1,"object":[],"list":[]}"#)
                == "object: expected an object, found an array")
        #expect(try decode([JSONValue?].self, "[1,null]") == [1, nil])
    }

    @Test func nestedContainersAndSuper() throws {
        let derived = Derived()
        derived.extra = 4
        let bytes = try WireJSONEncoder().encode(derived)
        #expect(text(bytes) == #"{"super":{"name":"base"},"extra":4}"#)
        let back = try WireJSONDecoder().decode(Derived.self, from: bytes)
        #expect(back.name == "base" && back.extra == 4)

        struct Manual: Decodable {
            var sum = 0

            init(from decoder: any Decoder) throws {
                let root = try decoder.container(keyedBy: Name.self)
                let inner = try root.nestedContainer(keyedBy: Name.self, forKey: "inner")
                sum = try inner.decode(Int.self, forKey: "a")
                var list = try root.nestedUnkeyedContainer(forKey: "list")
                sum += try list.nestedContainer(keyedBy: Name.self).decode(Int.self, forKey: "b")
                var deep = try list.nestedUnkeyedContainer()
                while !deep.isAtEnd {
                    if try deep.decodeNil() { continue }
                    sum += try deep.decode(Int.self)
                }
                sum += try Int(from: list.superDecoder())
                #expect(list.isAtEnd && list.currentIndex == 3)
                #expect(throws: DecodingError.self) { _ = try list.decode(Int.self) }
                #expect(root.allKeys.map(\.stringValue) == ["list", "inner"])
                #expect(try root.decodeNil(forKey: "list") == false)
                #expect(!root.contains("nope"))
            }
        }
        #expect(try decode(Manual.self, #"{"list":[{"b":1},[10,null,100],1000],"inner":{"a":10000}}"#).sum == 11111)
        #expect(
            complaint(Manual.self, #"{"list":[{"b":1},[10,"x"]],"inner":{"a":1}}"#)
                == "list[1][1]: expected an integer, found a string")
    }

    @Test func membersInAnyOrder() throws {
        let names = (0..<300).map { "k\($0)" }
        let document = "{" + names.map { "\"\($0)\":\"\($0)\"" }.joined(separator: ",") + "}"
        let table = try decode([String: String].self, document)
        #expect(table.count == 300 && table.allSatisfy { $0.key == $0.value })
        #expect(
            try decode(Device.self, #"{"serial":1,"unknown":[],"level":1,"kind":"laptop"}"#)
                == Device(kind: .laptop, level: .low, serial: 1))
    }
}
