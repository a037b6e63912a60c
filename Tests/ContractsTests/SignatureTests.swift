// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import TestKit
import Testing

@testable import Contracts

/// The codes in these tests were made with `openssl dgst -sha256 -hmac`.
@Suite struct SignatureTests {
    private static let secret = SymmetricKey(data: Array("demo-secret-demo-backend".utf8))
    private static let code = "lKW9TEyWIU8HFV5pOdis+J0I3RVycmChkjCLFaUzoiw="

    // MARK: The header

    struct Example: Sendable, CustomTestStringConvertible {
        var text: String
        var keyID: String?
        var testDescription: String { text }
        init(_ text: String, _ keyID: String? = nil) {
            self.text = text
            self.keyID = keyID
        }
    }

    static let headers = [
        Example("v1;kid=k;\(code)", "k"), Example("v1;kid=demo-backend;\(code)", "demo-backend"),
        Example("v1;kid=a=b;\(code)", "a=b"),
        Example(
            "v1;kid=\(String(repeating: "k", count: 255));\(code)",
            String(repeating: "k", count: 255)),
        Example(""), Example("v1"), Example("v1;kid=k"), Example("v1;kid=k;"), Example("v1;kid=;\(code)"),
        Example("v2;kid=k;\(code)"), Example("V1;kid=k;\(code)"), Example(" v1;kid=k;\(code)"),
        Example("v1; kid=k;\(code)"), Example("v1;key=k;\(code)"), Example("v1;k;\(code)"),
        Example("v1;kid=k;\(code) "),
        Example("v1;kid=k;\(code);"), Example("v1;kid=k;\(code);x"), Example("v1;kid=k;x;\(code)"),
        Example("v1;kid=k;\(code.dropLast())"), Example("v1;kid=k;QUJD"), Example("v1;kid=k;\(code)QUJD"),
        Example("v1;kid=k;not base64 at all"), Example("v1;kid=k;\(code)\n"),
        Example("v1;kid=\(String(repeating: "k", count: 256));\(code)"), Example("v1;;\(code)"), Example(";;"),
    ]

    @Test(arguments: headers) func readsHeaders(_ header: Example) {
        let signature = Signature(header: Array(header.text.utf8))
        #expect(signature?.keyID == header.keyID)
        if let signature {
            #expect(signature.code.count == 32)
            #expect(signature.header == header.text)
        }
    }

    @Test func bytesThatAreNotUTF8AreNoHeader() {
        #expect(Signature(header: Array("v1;kid=".utf8) + [0xFF] + Array(";\(Self.code)".utf8)) == nil)
    }

    // MARK: What is signed

    @Test func structuredMode() {
        let value = Array(#"{"a":1}"#.utf8)
        let headers = [Header("content-type", "application/cloudevents+json"), Header("traceparent", "x")]
        #expect(
            Signature.signingString(topic: "topic", headers: headers, value: value)
                == Array("topic\n{\"a\":1}".utf8))
        let signature = Signature(
            keyID: "demo-backend", secret: Self.secret, topic: "topic", headers: headers, value: value)
        #expect(signature.header == "v1;kid=demo-backend;\(Self.code)")
    }

    @Test func binaryModeSortsTheHeaders() {
        let headers = [
            Header("ce_specversion", "1.0"), Header("content-type", "application/json"),
            Header("ce_source", "s"), Header("ce_id", "c1"), Header("signature", "old"),
        ]
        let topic = "identity.link.commands.v1"
        #expect(
            Signature.signingString(topic: topic, headers: headers, value: Array("{}".utf8))
                == Array("\(topic)\nce_id=c1\nce_source=s\nce_specversion=1.0\n{}".utf8))
        let signature = Signature(
            keyID: "demo-backend", secret: Self.secret, topic: topic, headers: headers.reversed(),
            value: Array("{}".utf8))
        #expect(signature.header == "v1;kid=demo-backend;bV1h2uziNGp3OOliiSWQRUPQvoMTItyPoO/tH+2VpRU=")
    }

    @Test func anEmptyValueAndNullHeadersAreSignedToo() {
        let signature = Signature(
            keyID: "k", secret: SymmetricKey(data: Array("k".utf8)), topic: "topic", headers: [], value: [])
        #expect(signature.header == "v1;kid=k;bQxJ8ArU5zt7TABb15vgjWIqOwXvXSfKANRsVcIQwcE=")
        #expect(
            Signature.signingString(topic: "t", headers: [Header("ce_x", nil)], value: [0xFF])
                == Array("t\nce_x=\n".utf8) + [0xFF])
    }

    /// The code is made piece by piece; the signing string says of what.
    @Test func theCodeIsThatOfTheSigningString() {
        let key = SigningKey(Self.secret)
        let lists = [[], [Header("ce_id", "c1")], [Header("ce_x", nil), Header("x", "y"), Header("ce_a", [0xFF])]]
        for headers in lists {
            for value in [[], [0x0A], [UInt8](repeating: 0x61, count: 1000)] as [[UInt8]] {
                let signed = Signature.signingString(topic: "t\u{e9}", headers: headers, value: value)
                let code = HMAC<SHA256>.authenticationCode(for: signed, using: Self.secret)
                let signature = Signature(keyID: "k", key: key, topic: "t\u{e9}", headers: headers, value: value)
                #expect(signature.code == Array(code))
                #expect(signature.isValid(key: key, topic: "t\u{e9}", headers: headers, value: value))
                #expect(!signature.isValid(key: key, topic: "t", headers: headers, value: value))
                #expect(
                    !signature.isValid(
                        key: SigningKey(.init(data: [1])), topic: "t\u{e9}", headers: headers, value: value))
            }
        }
    }

    /// Base64 is read and written as Foundation does it.
    @Test func base64IsFoundations() {
        var random = SplitMix64(seed: fuzzSeed)
        let odd = Array("AZaz09+/=-_ \n;\u{e9}".utf8)
        for _ in 0..<5_000 {
            let code = (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            var text = Array(Data(code).base64EncodedString().utf8)
            #expect(Signature(header: Array("v1;kid=k;".utf8) + text)?.code == code)
            for _ in 0..<random.next() % 3 {
                text[Int(random.next() % 44)] = odd[Int(random.next() % UInt64(odd.count))]
            }
            if random.next() % 2 == 0 { text[42] = UInt8(truncatingIfNeeded: random.next() % 128) }
            let decoded = Data(base64Encoded: Data(text)).map { Array($0) }.flatMap { $0.count == 32 ? $0 : nil }
            #expect(Signature(header: Array("v1;kid=k;".utf8) + text)?.code == decoded, "\(text)")
        }
    }

    // MARK: Checking

    @Test func everyTamperedBitIsRefused() throws {
        let signed = Signature.signingString(
            topic: "topic", headers: [Header("ce_id", "c1")], value: Array(#"{"a":1}"#.utf8))
        let signature = Signature(
            keyID: "k", secret: Self.secret, topic: "topic", headers: [Header("ce_id", "c1")],
            value: Array(#"{"a":1}"#.utf8))
        #expect(signature.isValid(secret: Self.secret, signingString: signed))
        for place in signed.indices {
            for bit in 0..<8 {
                var tampered = signed
                tampered[place] ^= 1 << bit
                #expect(!signature.isValid(secret: Self.secret, signingString: tampered))
            }
        }
        for place in signature.code.indices {
            var tampered = signature
            tampered.code[place] ^= 1
            #expect(!tampered.isValid(secret: Self.secret, signingString: signed))
        }
        #expect(!signature.isValid(secret: Self.secret, signingString: signed + [0]))
        #expect(!signature.isValid(secret: Self.secret, signingString: signed.dropLast()))
        #expect(!signature.isValid(secret: SymmetricKey(data: [1]), signingString: signed))
    }

    @Test func topicAndHeadersAreCovered() {
        let value = Array("{}".utf8)
        let base = Signature.signingString(topic: "t", headers: [Header("ce_id", "1")], value: value)
        #expect(base != Signature.signingString(topic: "u", headers: [Header("ce_id", "1")], value: value))
        #expect(base != Signature.signingString(topic: "t", headers: [Header("ce_id", "2")], value: value))
        #expect(base != Signature.signingString(topic: "t", headers: [], value: value))
        #expect(
            base
                != Signature.signingString(
                    topic: "t", headers: [Header("ce_id", "1"), Header("ce_more", "")], value: value))
    }
}
