// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing
import WireJSON

@testable import Contracts

/// The reader in one pass against the reader over a tree: the same attributes and data, the same digest, and the same
/// refusals word by word, in both modes.
@Suite struct EnvelopeDifferentialTests {
    private func difference(_ value: [UInt8]?, _ headers: [Header]) -> String? {
        ReferenceComparison.difference(envelope: value, headers)
    }

    private static let names = [
        "specversion", "id", "source", "type", "appid", "subject", "time", "datacontenttype", "partitionkey",
        "correlationid", "causationid", "replyto", "replykey", "expirytime", "traceparent", "tracestate", "authtype",
        "authid", "dryrun", "sequence", "data", "data_base64", "dataschema", "unknown", "ID", "i\\u0064", "",
    ]
    private static let values = [
        #""1.0""#, #""a""#, #""""#, "null", "true", "false", "1", "[]", #"{"a":[1,{"b":2}]}"#,
        #""2030-01-01T00:00:00Z""#,
        #""2030-01-01T00:00:00.1234+01:00""#, #""2030-02-30T00:00:00Z""#, #""application/json""#,
        #""Application/JSON; x=y""#, #""text/plain""#, #""a\u0000b""#, #""\u00e9\ud83d\ude00""#, #""a\u007fb""#,
        #""true""#, #""identity.replies.x""#,
    ]

    private func structured(_ random: inout SplitMix64) -> [UInt8] {
        func pick(_ list: [String]) -> String { list[Int(random.next() % UInt64(list.count))] }
        var members = [
            #""specversion":"1.0""#, #""id":"c1""#, #""source":"s""#, #""type":"t""#, #""appid":"demo""#,
            #""data":{"b":1,"a":"x"}"#,
        ]
        if random.next() % 4 == 0 { members.remove(at: Int(random.next() % UInt64(members.count))) }
        for _ in 0..<random.next() % 5 { members.append("\"\(pick(Self.names))\":\(pick(Self.values))") }
        if random.next() % 20 == 0 { members.append("\"subject\":\"\(String(repeating: "x", count: 3001))\"") }
        if random.next() % 20 == 0 { members.append("\"replykey\":\"\(String(repeating: "x", count: 4001))\"") }
        if random.next() % 20 == 0 { members.append("\"replyto\":\"\(String(repeating: "é", count: 128))\"") }
        members.shuffle(using: &random)
        let space = random.next() % 3 == 0 ? " " : ""
        return Array("{\(members.joined(separator: ",\(space)"))}".utf8)
    }

    private func headers(_ random: inout SplitMix64) -> [Header] {
        var headers = [
            Header("ce_specversion", "1.0"), Header("ce_id", "c1"), Header("ce_source", "s"), Header("ce_type", "t"),
            Header("ce_appid", "demo"),
            Header("content-type", random.next() % 5 == 0 ? "text/plain" : "application/json"),
        ]
        if random.next() % 4 == 0 { headers.remove(at: Int(random.next() % UInt64(headers.count))) }
        let values: [[UInt8]?] = [
            nil, [], [0x61], [0xFF], [0x0A], [0xC3, 0xA9], Array("true".utf8), Array("2030-01-01T00:00:00Z".utf8),
            Array("application/json".utf8), [UInt8](repeating: 0x78, count: 256),
        ]
        for _ in 0..<random.next() % 4 {
            let name = Self.names[Int(random.next() % UInt64(Self.names.count))]
            headers.append(Header("ce_\(name)", values[Int(random.next() % UInt64(values.count))]))
        }
        headers.shuffle(using: &random)
        return headers
    }

    @Test func structuredModeAgrees() {
        var random = SplitMix64(seed: fuzzSeed)
        var accepted = 0
        for round in 0..<20_000 {
            var value = structured(&random)
            if random.next() % 3 == 0 { value[Int(random.next() % UInt64(value.count))] ^= 1 << (random.next() % 8) }
            if random.next() % 8 == 0 { value.removeLast(Int(random.next() % UInt64(value.count))) }
            let difference = difference(value, [])
            if let difference {
                let text = String(decoding: value, as: UTF8.self)
                Issue.record("seed \(fuzzSeed), round \(round): \(difference) in \(text)")
            }
            if (try? EnvelopeReader.open(value: value, headers: [])) != nil { accepted += 1 }
        }
        #expect(accepted > 1_000)
    }

    @Test func binaryModeAgrees() {
        var random = SplitMix64(seed: fuzzSeed)
        var accepted = 0
        for round in 0..<20_000 {
            let headers = headers(&random)
            let value = random.next() % 4 == 0 ? structured(&random) : Array(#"{"b":[1,2],"a":null}"#.utf8)
            if let difference = difference(value, headers) {
                Issue.record("seed \(fuzzSeed), round \(round): \(difference) with \(headers)")
            }
            if (try? EnvelopeReader.open(value: value, headers: headers)) != nil { accepted += 1 }
        }
        #expect(accepted > 1_000)
        #expect(difference(nil, []) == nil && difference([], []) == nil)
        #expect(difference([UInt8](repeating: 0x20, count: EnvelopeReader.maxBytes + 1), []) == nil)
    }
}
