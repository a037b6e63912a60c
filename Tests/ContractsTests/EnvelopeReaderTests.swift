// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

/// What is read as an envelope, and by which name the rest is refused.
@Suite struct EnvelopeReaderTests {
    /// A good structured envelope, with one member replaced or left out (`nil`).
    private static func structured(_ changes: [String: String?] = [:], data: String = #"{"a":1}"#) -> [UInt8] {
        var members = [
            "specversion": #""1.0""#, "id": #""c1""#, "source": #""s""#, "type": #""identity.link.request.v1""#,
            "appid": #""demo""#, "data": data,
        ]
        for (name, value) in changes { members[name] = value }
        let text = members.sorted { $0.key < $1.key }.map { #""\#($0.key)":\#($0.value)"# }.joined(separator: ",")
        return Array("{\(text)}".utf8)
    }

    private static let binaryHeaders = [
        Header("ce_specversion", "1.0"), Header("ce_id", "c1"), Header("ce_source", "s"),
        Header("ce_type", "identity.link.request.v1"), Header("ce_appid", "demo"),
    ]

    private func reason(_ value: [UInt8]?, _ headers: [Header] = []) -> EnvelopeError.Reason? {
        do {
            _ = try EnvelopeReader.read(value: value, headers: headers)
            return nil
        } catch {
            #expect(!error.detail.isEmpty)
            #expect(!error.description.contains("\n"))
            return error.reason
        }
    }

    // MARK: What is read

    @Test func readsStructuredMode() throws {
        let event = try EnvelopeReader.read(
            value: Self.structured([
                "subject": #""i1""#, "time": #""2026-01-01T00:00:00Z""#, "datacontenttype": #""application/json""#,
                "partitionkey": #""demo/i1""#, "correlationid": #""c0""#, "causationid": #""c9""#,
                "replyto": #""identity.replies.x""#, "replykey": #""mine""#,
                "expirytime": #""2030-01-01T00:00:00+01:00""#,
                "traceparent": #""00-a-b-01""#, "tracestate": #""x=y""#, "authtype": #""api_key""#, "authid": #""k""#,
                "dataschema": #""ignored""#, "unknown": #"{"deep":[1]}"#,
            ]), headers: [Header("ce_id", "ignored in this mode")])
        var expected = EventAttributes(id: "c1", source: "s", type: "identity.link.request.v1", appID: "demo")
        expected.subject = "i1"
        expected.time = "2026-01-01T00:00:00Z"
        expected.dataContentType = "application/json"
        expected.partitionKey = "demo/i1"
        expected.correlationID = "c0"
        expected.causationID = "c9"
        expected.replyTo = "identity.replies.x"
        expected.replyKey = "mine"
        expected.expiryTime = "2030-01-01T00:00:00+01:00"
        expected.traceParent = "00-a-b-01"
        expected.traceState = "x=y"
        expected.authType = "api_key"
        expected.authID = "k"
        #expect(event == CloudEvent(attributes: expected, data: ["a": 1]))
    }

    @Test func readsBinaryMode() throws {
        let event = try EnvelopeReader.read(
            value: Array(#"{"a":1}"#.utf8),
            headers: Self.binaryHeaders + [
                Header("ce_subject", "i1"), Header("ce_replykey", "mine"), Header("ce_unknown", [0xFF]),
                Header("other", nil),
                Header("content-type", "application/json; charset=utf-8"),
            ])
        var expected = EventAttributes(id: "c1", source: "s", type: "identity.link.request.v1", appID: "demo")
        expected.subject = "i1"
        expected.replyKey = "mine"
        expected.dataContentType = "application/json; charset=utf-8"
        #expect(event == CloudEvent(attributes: expected, data: ["a": 1]))
    }

    @Test func inBinaryModeTheValueIsTheData() throws {
        let event = try EnvelopeReader.read(value: Self.structured(["id": #""other""#]), headers: Self.binaryHeaders)
        #expect(event.attributes.id == "c1")
        #expect(event.data["id"] == "other")
    }

    @Test func absentAndNullDataAreNull() throws {
        #expect(try EnvelopeReader.read(value: Self.structured(["data": nil]), headers: []).data == .null)
        #expect(try EnvelopeReader.read(value: Self.structured(data: "null"), headers: []).data == .null)
        #expect(
            try EnvelopeReader.read(value: Self.structured(["subject": "null"]), headers: []).attributes.subject == nil)
    }

    // MARK: What is refused

    struct Refusal: Sendable, CustomTestStringConvertible {
        var value: [UInt8]?
        var reason: EnvelopeError.Reason?
        var testDescription: String { String(decoding: (value ?? []).prefix(60), as: UTF8.self) }
        init(_ value: [UInt8]?, _ reason: EnvelopeError.Reason?) {
            self.value = value
            self.reason = reason
        }
        init(_ text: String, _ reason: EnvelopeError.Reason?) { self.init(Array(text.utf8), reason) }
    }

    static let refusals: [Refusal] = [
        Refusal(structured(), nil),
        Refusal(nil, .emptyValue), Refusal("", .notJSON), Refusal("{", .notJSON), Refusal("hello", .notJSON),
        Refusal("{}", .missingAttribute), Refusal("[]", .invalidEnvelope), Refusal("1", .invalidEnvelope),
        Refusal("null", .invalidEnvelope), Refusal([0xFF, 0xFE], .notUTF8),
        Refusal(Array(#"{"id":""#.utf8) + [0xC3, 0x28] + Array(#""}"#.utf8), .notUTF8),
        Refusal(#"{"id":"a","id":"b"}"#, .duplicateMember), Refusal(#"{"data":{"x":1,"x":2}}"#, .duplicateMember),
        Refusal(structured(["data_base64": #""QQ==""#]), .invalidEnvelope),
        Refusal(structured(["specversion": #""1.1""#]), .invalidEnvelope),
        Refusal(structured(["specversion": #""0.3""#]), .invalidEnvelope),
        Refusal(structured(["specversion": "1.0"]), .invalidEnvelope),
        Refusal(structured(["replykey": "7"]), .invalidEnvelope), Refusal(structured(["replykey": "null"]), nil),
        Refusal(structured(["subject": "1"]), .invalidEnvelope), Refusal(structured(["time": "[]"]), .invalidEnvelope),
        Refusal(structured(["time": #""yesterday""#]), .invalidEnvelope),
        Refusal(structured(["expirytime": #""2030-02-30T00:00:00Z""#]), .invalidEnvelope),
        Refusal(structured(["expirytime": #""""#]), .invalidEnvelope),
        Refusal(structured(["expirytime": "1"]), .invalidEnvelope),
        Refusal(structured(["id": #""a\u0000b""#]), .invalidEnvelope),
        Refusal(structured(["source": #""a\nb""#]), .invalidEnvelope),
        Refusal(structured(["type": #""a\u007fb""#]), .invalidEnvelope),
    ]

    @Test(arguments: refusals) func refusesByName(_ refusal: Refusal) {
        #expect(reason(refusal.value) == refusal.reason)
    }

    @Test(arguments: ["specversion", "id", "source", "type", "appid"]) func requires(_ name: String) {
        #expect(reason(Self.structured([name: nil])) == .missingAttribute)
        #expect(reason(Self.structured([name: #""""#])) == .missingAttribute)
        #expect(reason(Self.structured([name: "null"])) == .missingAttribute)
        #expect(reason(Self.structured([name: "7"])) == .invalidEnvelope)
        // Without ce_specversion it is not binary mode at all; the value then is no envelope either.
        let others = Self.binaryHeaders.filter { $0.name != "ce_\(name)" }
        #expect(reason(Array("{}".utf8), others) == .missingAttribute)
        #expect(reason(Array("{}".utf8), others + [Header("ce_\(name)", nil)]) == .missingAttribute)
        #expect(reason(Array("{}".utf8), others + [Header("ce_\(name)", [0xFF])]) == .notUTF8)
    }

    @Test func binaryModeRefusesByName() {
        #expect(reason(nil, Self.binaryHeaders) == .emptyValue)
        #expect(reason([], Self.binaryHeaders) == .notJSON)
        #expect(
            reason(Array("{}".utf8), Self.binaryHeaders + [Header("content-type", "text/plain")])
                == .invalidEnvelope)
        #expect(
            reason(Array("{}".utf8), Self.binaryHeaders + [Header("ce_expirytime", "soon")]) == .invalidEnvelope)
    }

    /// The signing string is lines of sorted headers: it must have one reading only.
    @Test func attributeHeadersStandOnceAndOnOneLine() {
        for header in [
            Header("ce_id", "c1"), Header("ce_subject", "a\nce_authid=b"), Header("ce_x\nce_y", "1"),
            Header("ce_unknown", [0]),
        ] {
            #expect(reason(Array("{}".utf8), Self.binaryHeaders + [header]) == .invalidEnvelope)
            if header.name != "ce_id" { #expect(reason(Self.structured(), [header]) == .invalidEnvelope) }
        }
    }

    @Test(arguments: [
        ("application/json", true), ("application/json; charset=utf-8", true), ("application/json;charset=utf-8", true),
        ("APPLICATION/JSON", true), (" application/json ", true), ("application/vnd.x+json", true),
        ("text/plain", false), ("application/xml", false), ("json", false), ("", false), ("application/jsonx", false),
        ("text/plain; x=application/json", false),
    ]) func contentTypes(_ contentType: String, _ isRead: Bool) {
        #expect(
            reason(Self.structured(["datacontenttype": #""\#(contentType)""#])) == (isRead ? nil : .invalidEnvelope))
    }

    // MARK: Limits

    /// Every attribute but those that may hold an external id, and the longer W3C tracestate.
    @Test(arguments: [
        "id", "source", "type", "appid", "correlationid", "causationid", "replyto", "authtype",
        "authid", "traceparent",
    ]) func attributesHaveAtMost255Bytes(_ name: String) {
        let accented = String(repeating: "\u{e9}", count: 127)
        #expect(reason(Self.structured([name: #""\#(accented)x""#])) == nil)
        #expect(reason(Self.structured([name: #""\#(accented)xy""#])) == .invalidEnvelope)
        let others = Self.binaryHeaders.filter { $0.name != "ce_\(name)" }
        let long = String(repeating: "x", count: 256)
        #expect(reason(Array("{}".utf8), others + [Header("ce_\(name)", long)]) == .invalidEnvelope)
    }

    /// Whatever is copied into replies and events must not let them grow over every limit.
    @Test(arguments: ["partitionkey", "replykey"]) func keysHaveAtMost4000Bytes(_ name: String) {
        let accented = String(repeating: "\u{e9}", count: 2000)
        #expect(reason(Self.structured([name: #""\#(accented)""#])) == nil)
        #expect(reason(Self.structured([name: #""\#(accented)x""#])) == .invalidEnvelope)
    }

    @Test(arguments: ["subject", "partitionkey", "replykey", "tracestate"]) func noAttributeIsEndless(_ name: String) {
        let long = String(repeating: "x", count: 100_000)
        #expect(reason(Array("{}".utf8), Self.binaryHeaders + [Header("ce_\(name)", long)]) == .invalidEnvelope)
    }

    @Test(arguments: ["subject", "partitionkey", "replykey", "traceparent", "tracestate", "authtype", "authid"])
    func noAttributeHasControlCharacters(_ name: String) {
        #expect(reason(Self.structured([name: #""a\nb""#])) == .invalidEnvelope)
    }

    @Test func valuesHaveAtMost256KiB() {
        func padded(_ count: Int) -> [UInt8] {
            let empty = Self.structured(data: #""""#).count
            return Self.structured(data: #""\#(String(repeating: "x", count: count - empty))""#)
        }
        #expect(padded(256 * 1024).count == 262_144)
        #expect(reason(padded(256 * 1024)) == nil)
        #expect(reason(padded(256 * 1024 + 1)) == .tooLarge)
        #expect(reason([UInt8](repeating: 0x20, count: 256 * 1024 + 1)) == .tooLarge)
    }

    @Test func valuesHaveAtMostDepth32() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        // The envelope itself is one level in structured mode.
        #expect(reason(Self.structured(data: nested(31))) == nil)
        #expect(reason(Self.structured(data: nested(32))) == .tooDeep)
        #expect(reason(Array(nested(32).utf8), Self.binaryHeaders) == nil)
        #expect(reason(Array(nested(33).utf8), Self.binaryHeaders) == .tooDeep)
        #expect(reason(Array(nested(100_000).utf8), Self.binaryHeaders) == .tooDeep)
    }

    @Test func detailsNeverQuoteTheMessage() throws {
        for value in [
            #"{"id":"hunter2""#, #"{"hunter2":1,"hunter2":2}"#,
            #"{"specversion":"hunter2","id":"a","source":"a","type":"t","appid":"a"}"#,
        ] {
            let error = try #require(throws: EnvelopeError.self) {
                try EnvelopeReader.read(value: Array(value.utf8), headers: [])
            }
            #expect(!error.description.contains("hunter2"))
        }
    }

    @Test func reasonsArePinned() {
        #expect(
            EnvelopeError.Reason.allCases.map(\.rawValue) == [
                "EMPTY_VALUE", "TOO_LARGE", "NOT_UTF8", "NOT_JSON", "TOO_DEEP", "DUPLICATE_MEMBER",
                "INVALID_ENVELOPE", "MISSING_ATTRIBUTE", "UNKNOWN_TYPE",
            ])
    }
}
