// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Testing

@testable import Observability

@Suite struct LogHandlerTests {
    private struct Broken: Error, CustomStringConvertible {
        var description: String { "it \"broke\"\n" }
    }

    private func logger(
        _ pipe: LogPipe, _ format: LogFormat, label: String = "identity.sync", provider: Logger.MetadataProvider? = nil
    ) -> Logger {
        let writer = LineWriter(fileDescriptor: pipe.writer)
        return Logger(label: label) { label in
            format.handler(label: label, level: .debug, metadataProvider: provider, writer: writer)
        }
    }

    @Test func aLineIsOneObjectWithFixedKeys() throws {
        let pipe = LogPipe()
        logger(pipe, .json).notice("hello")
        let line = try #require(pipe.lines().first)
        let shape = /\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"(.*)/
        let rest = try #require(line.wholeMatch(of: shape)?.output.1)
        #expect(rest == #","level":"notice","logger":"identity.sync","message":"hello"}"#)
    }

    @Test func everyScalarSurvivesAndNoLineBreaks() throws {
        let pipe = LogPipe()
        let special: [Unicode.Scalar] = ["\u{FEFF}", "\u{FFFD}", "\u{1F600}", "\u{10FFFF}"]
        let scalars = (0..<0x3000).compactMap(Unicode.Scalar.init) + special
        for start in stride(from: 0, to: scalars.count, by: 512) {
            let text = String(String.UnicodeScalarView(scalars[start..<min(start + 512, scalars.count)]))
            logger(pipe, .json).info("\(text)", metadata: ["\(text)": "\(text)"])
            let raw = pipe.drain()
            #expect(raw.filter { $0 == 0x0A }.count == 1 && raw.last == 0x0A)
            #expect(raw.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            let object = try JSONSerialization.jsonObject(with: Data(raw)) as? [String: Any]
            // Compared scalar by scalar: String equality would hide a changed normalisation.
            #expect((object?["message"] as? String).map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
            let fields = object?["fields"] as? [String: String]
            #expect(fields?.values.first.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
        }
    }

    @Test func brokenInputBecomesReplacementCharacters() throws {
        let pipe = LogPipe()
        logger(pipe, .json).info("\(String(decoding: [0x61, 0xFF, 0xC3, 0x28, 0xED, 0xA0, 0x80], as: UTF8.self))")
        let message = try #require(try pipe.objects().first?["message"] as? String)
        #expect(message.hasPrefix("a\u{FFFD}"))
    }

    @Test func fieldsMergeNestAndKeepOrder() throws {
        let pipe = LogPipe()
        let provider = Logger.MetadataProvider { ["who": "provider", "trace": "t1"] }
        var log = logger(pipe, .json, provider: provider)
        log[metadataKey: "who"] = "handler"
        log[metadataKey: "service"] = "sync"
        log.info("m", metadata: ["trace": "t2", "n": .stringConvertible(7), "list": ["a", ["k": "v"]], "empty": [:]])
        let line = try #require(pipe.lines().first)
        let start = #""fields":{"empty":{},"list":["a",{"k":"v"}],"n":7,"#
        #expect(line.hasSuffix(start + #""service":"sync","trace":"t2","who":"provider"}}"#))
        log.error("failed", error: Broken())
        let fields = try #require(try pipe.objects().first?["fields"] as? [String: Any])
        #expect(fields["error.message"] as? String == "it \"broke\"\n")
        #expect((fields["error.type"] as? String)?.hasSuffix("Broken") == true)
    }

    @Test(arguments: LogFormat.allCases)
    func secretsAreRedactedAtEveryDepth(format: LogFormat) {
        let pipe = LogPipe()
        var log = logger(pipe, format)
        log[metadataKey: "password"] = "hunter2"
        let nested: Logger.Metadata = [
            "Authorization": "hunter2", "deep": ["token": ["a": "hunter2"]], "user": "visible",
        ]
        log.info(
            "m",
            metadata: [
                "secret": "hunter2", "x-signature": "hunter2", "authenticationCode": ["hunter2"],
                "client_secret": .stringConvertible("hunter2"), "request": .dictionary(nested),
                "list": .array([.dictionary(["AUTHENTICATION_CODE": "hunter2"])]),
            ])
        let text = pipe.lines().joined()
        #expect(!text.contains("hunter2"))
        #expect(text.contains("visible"))
        #expect(text.components(separatedBy: "<redacted>").count - 1 == 8)
    }

    @Test(arguments: ["tokens", "secretary", "id", "", "signatureAlgorithm", "person"])
    func harmlessKeysAreNotRedacted(key: String) {
        #expect(!Redaction.covers(key))
    }

    @Test func textLinesAreShortAndHarmless() throws {
        let pipe = LogPipe()
        logger(pipe, .text, label: "sync").warning(
            "two\nlines \u{1B}[31m \"q\"", metadata: ["b": "x y", "a": "1", "c": .array(["z"]), "d": ""])
        let line = try #require(pipe.lines().first)
        let shape = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (.*)/
        let rest = try #require(line.wholeMatch(of: shape)?.output.1)
        #expect(rest == #"WARNING sync: two\nlines \u001b[31m "q" a=1 b="x y" c=["z"] d="""#)
    }

    @Test func whatNobodySeesIsSeen() {
        #expect("ad\u{200B}a \u{AD}\u{2060}\u{FEFF}".harmless == #"ad\u200ba \u00ad\u2060\ufeff"#)
        #expect("ada\u{E0061} é界🙂".harmless == #"ada\udb40\udc61 é界🙂"#)
    }

    /// It names the kind of a line, whatever its words are.
    @Test func theEventStandsBesideTheMessage() throws {
        for (format, place) in [
            (LogFormat.json, #","event":"database.down","message":"m","fields":{"a":1.5,"b":true}}"#),
            (.text, " link database.down: m a=1.5 b=true"),
        ] {
            let pipe = LogPipe()
            logger(pipe, format, label: "link").info(
                "m",
                metadata: [
                    "event": "database.down", "a": .stringConvertible(1.5), "b": .stringConvertible(true),
                ])
            let line = try #require(pipe.lines().first)
            #expect(line.hasSuffix(place), "\(line)")
        }
    }

    @Test func levelsAreRespectedAndValues() {
        let pipe = LogPipe()
        var log = logger(pipe, .json)
        let copy = log
        log.logLevel = .error
        log.info("no")
        copy.info("yes")
        copy.trace("no")
        #expect(pipe.lines().count == 1)
    }
}
