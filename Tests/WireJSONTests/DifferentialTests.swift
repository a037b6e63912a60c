// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import WireJSON

/// The tape against the tree of before: the same values, the same canonical bytes, the same decoded messages, and the
/// same refusals word by word.
@Suite struct DifferentialTests {
    /// Compares everything that can be asked about one document; says what differs.
    private func difference(_ bytes: [UInt8], maxDepth: Int = 32) -> String? {
        ReferenceComparison.difference(json: bytes, maxDepth: maxDepth) { view, value in
            func differ<T: Decodable & Equatable>(_ type: T.Type) -> String? {
                ReferenceComparison.difference(decoding: type, view, value)
            }
            return differ(Everything.self) ?? differ([String: [Int8?]].self) ?? differ([Device].self)
                ?? differ(Mixed.self) ?? differ([String: Double].self) ?? differ([[JSONValue?]].self)
        }
    }

    struct Mixed: Codable, Equatable {
        var a: Int?
        var s: String
        var list: [Device]?
        var raw: JSONValue?
        var number: JSONNumber?
        var object: JSONObject?
        var inner: [String: Inner]?

        struct Inner: Codable, Equatable {
            var u: UInt64
            var f: Float?
            var flag: Bool
        }
    }

    static let shapes = [
        #"{"a":-12,"s":"é\n","list":[{"kind":"phone","serial":5}],"raw":{"z":[1.50]},"number":1e2,"object":{"b":1,"a":-0}}"#,
        #"{"s":"x","inner":{"k":{"u":18446744073709551615,"f":1.5,"flag":true},"l":{"u":0,"flag":false}}}"#,
        #"{"s":"x","inner":{"k":{"u":1,"flag":1}}}"#,
        #"{"a":9223372036854775808,"s":""}"#,
        #"[{"kind":"phone","level":2,"serial":-9223372036854775808},{"kind":"laptop","serial":1}]"#,
        #"{"k":[1,null,-128],"l":[127]}"#,
        #"{"x":1e308,"y":1e309}"#,
        "\u{FEFF}{}", #"["\ud800"]"#, #"["\ud83d\ude00\u0041"]"#, #"{"K":1,"\u212a":2}"#, #"{"\u00e9":1,"e\u0301":2}"#,
        #"{"a":{"a":{"a":[[[{}]]]}}}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":1,"\u0061":2}"#,
        "{" + (0..<40).map { #""name\#($0)":\#($0)"# }.joined(separator: ",") + #","name7":0}"#,
        "{" + (0..<40).map { #""n\#($0)":{"u":\#($0),"flag":true}"# }.joined(separator: ",") + "}",
        String(repeating: "[", count: 33) + String(repeating: "]", count: 33), "", " ", "-", "-0", "01", "1.", "1e",
        "nul",
        #"{"a" : [ ] , "b" : { } }"#, #"{"b":1,"a":[{},[]],"":"\u0000\/"}"#,
    ]

    @Test func shapesAgree() {
        for shape in Self.shapes {
            let bytes = Array(shape.utf8)
            #expect(difference(bytes) == nil, "\(shape.prefix(80))")
            // Cut short everywhere.
            for count in bytes.indices { #expect(difference(Array(bytes[..<count])) == nil, "\(count) of \(shape)") }
        }
    }

    @Test func anEncodedValueOfEverythingAgrees() throws {
        #expect(difference(try WireJSONEncoder().encode(Everything())) == nil)
        #expect(difference(try WireJSONEncoder(sortedKeys: true).encode(Everything())) == nil)
    }

    @Test func randomValuesAgree() {
        var random = RandomJSON(seed: fuzzSeed)
        for round in 0..<2_000 {
            let value = random.value()
            for bytes in [value.serialized(), value.canonicalBytes(), Array(random.disguise(value).utf8)] {
                if let difference = difference(bytes) {
                    Issue.record("seed \(fuzzSeed), round \(round): \(difference) in \(text(bytes))")
                }
            }
        }
    }

    @Test func mutationsAgree() throws {
        var random = SplitMix64(seed: fuzzSeed)
        let everything = try WireJSONEncoder().encode(Everything())
        let documents = (Self.shapes + FuzzTests.seeds).map { Array($0.utf8) } + [everything]
        for round in 0..<30_000 {
            var bytes = documents[round % documents.count]
            for _ in 0...Int(random.next() % 3) { FuzzTests.mutate(&bytes, &random) }
            if let difference = difference(bytes, maxDepth: round % 5 == 0 ? 3 : 32) {
                Issue.record("seed \(fuzzSeed), round \(round): \(difference) in \(text(bytes))")
            }
        }
    }
}
