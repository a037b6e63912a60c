// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing
import WireJSON

@Suite struct FuzzTests {
    static let seeds = [
        #"{"specversion":"1.0","id":"0198c0de-7a51","type":"a.b.c","data":{"n":-12.5e+3,"ok":true,"x":null}}"#,
        #"[1,-2,3.25,1e10,"é€😀","\u00e9\ud83d\ude00\n\\\"",{"a":{"b":[[],{}]}},false]"#,
        "  {\"k\" : [ 0 , -0 , 0.0 ] ,\n\t\"K\":\"\u{7F}/\", \"\":\"\"}\r\n",
        #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"aa":8,"bb":9,"cc":10,"dd":11}"#,
        #"{"a":-12,"s":"é\n","list":[{"kind":"phone","serial":5}],"raw":{"z":[1.50]},"number":1e2,"object":{"b":1,"a":-0}}"#,
        #"{"k":[1,null,-128],"x":1e308,"a":{"a":{"a":[[[{}]]]}},"":"\u0000\/"}"#,
        "{" + (0..<40).map { #""name\#($0)":\#($0)"# }.joined(separator: ",") + #","name7x":0}"#,
    ]

    /// 200 000 mutated documents: no crash, and whatever is accepted survives a round trip and means to
    /// Foundation what it means here.
    @Test func mutations() throws {
        var random = SplitMix64(seed: fuzzSeed)
        let documents = Self.seeds.map { Array($0.utf8) }
        var acceptedCount = 0
        var reasons: [JSONParseError.Reason: Int] = [:]
        for round in 0..<200_000 {
            var bytes = documents[round % documents.count]
            for _ in 0...Int(random.next() % 3) { Self.mutate(&bytes, &random) }
            do throws(JSONParseError) {
                let value = try JSONValue(parsing: bytes)
                acceptedCount += 1
                let again = try JSONValue(parsing: value.serialized())
                if again != value { Issue.record("round \(round): changed by a round trip") }
                compareWithFoundation(value, bytes, round)
            } catch {
                reasons[error.reason, default: 0] += 1
                if error.offset > bytes.count { Issue.record("round \(round): offset \(error.offset)") }
            }
        }
        #expect(acceptedCount > 10_000)
        #expect(reasons[.notJSON, default: 0] > 10_000)
        #expect(reasons[.notUTF8, default: 0] > 1_000)
        #expect(reasons[.duplicateMember, default: 0] > 100)
    }

    static func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
        let tokens = ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "0", "-", "e", ".", "1", " ", "null"]
        let position = Int(random.next() % UInt64(max(bytes.count, 1)))
        guard position < bytes.count else { return bytes.append(0x30) }
        switch random.next() % 8 {
        case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes[position] ^= 1 << UInt8(random.next() % 8)
        case 2: bytes.remove(at: position)
        case 3: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: position)
        case 4: bytes.insert(contentsOf: tokens[Int(random.next() % UInt64(tokens.count))].utf8, at: position)
        case 5: bytes.removeSubrange(position...)
        case 6:
            let end = min(bytes.count, position + Int(random.next() % 12))
            bytes.insert(contentsOf: bytes[position..<end], at: Int(random.next() % UInt64(bytes.count)))
        default: bytes[position] = UInt8(ascii: "a") + UInt8(random.next() % 26)
        }
    }

    /// Foundation must accept what is accepted here (numbers beyond Double apart) and read the same from it.
    private func compareWithFoundation(_ value: JSONValue, _ bytes: [UInt8], _ round: Int) {
        guard !holdsHugeNumber(value) else { return }
        do {
            let theirs = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
            if !equivalent(theirs, value) {
                Issue.record("round \(round): Foundation reads another value from \(text(bytes))")
            }
        } catch {
            Issue.record("round \(round): Foundation refuses \(text(bytes)): \(error)")
        }
    }

    private func holdsHugeNumber(_ value: JSONValue) -> Bool {
        switch value {
        case .number(let number): !number.double.isFinite || number.lexeme.utf8.count > 17
        case .array(let elements): elements.contains { holdsHugeNumber($0) }
        case .object(let object): object.members.contains { holdsHugeNumber($0.value) }
        default: false
        }
    }

    @Test func randomBytes() {
        var random = SplitMix64(seed: 77)
        let alphabet = Array("{}[]\",:\\u0123456789aeE+-.tfn dc8".utf8) + [0x00, 0x80, 0xC3, 0xA9, 0xFF]
        for _ in 0..<50_000 {
            let bytes = (0..<Int(random.next() % 24)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            if let value = try? JSONValue(parsing: bytes) {
                #expect(
                    (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
                        || holdsHugeNumber(value), "accepted \(text(bytes))")
            }
        }
    }

    @Test func foundationReadsWhatIsWritten() throws {
        var random = RandomJSON(seed: 13)
        for round in 0..<1000 {
            let value = random.value()
            guard !containsCanonicalTwins(value) else { continue }
            let theirs = try JSONDecoder().decode(JSONValue.self, from: Data(value.serialized()))
            #expect(equivalent(theirs, value), "round \(round): \(text(value.serialized()))")
            let back = try JSONEncoder().encode(value)
            #expect(equivalent(try JSONValue(parsing: Array(back)), value), "round \(round)")
        }
    }

    /// Names that Foundation's dictionaries would merge.
    private func containsCanonicalTwins(_ value: JSONValue) -> Bool {
        switch value {
        case .array(let elements): elements.contains { containsCanonicalTwins($0) }
        case .object(let object):
            Set(object.members.map(\.name)).count < object.count
                || object.members.contains { containsCanonicalTwins($0.value) }
        default: false
        }
    }
}
