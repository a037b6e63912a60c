// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Contracts

@Suite struct PeerCertificateTests {
    /// As `openssl req -x509 -subj "/O=IdentityBus/CN=b-1.example" -days 3650` makes one.
    private static let bytes = Array(
        Data(
            base64Encoded: """
                MIIBxTCCAWugAwIBAgIUWkrerdc0sGJZVUPSQEzhqgkGZLswCgYIKoZIzj0EAwIwLDEUMBIGA1UECgwLSWRlbnRpdHlCdXMxFDASBgNVBAMM\
                C2ItMS5leGFtcGxlMB4XDTI2MTEyNzE4MTgwMVoXDTM2MTEyNDE4MTgwMVowLDEUMBIGA1UECgwLSWRlbnRpdHlCdXMxFDASBgNVBAMMC2It\
                MS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEu9IeXAhv3CgRAOtkr6AR1K6WXMHSkjKRJ02mJAFcdLeFHG9VSkdJ7v6yBSP2\
                i/gNZ7Xq2mRYJzkW2DmsJY/h86NrMGkwHQYDVR0OBBYEFMA+y/Wf8aPShiA/Ft60P5qrYha2MB8GA1UdIwQYMBaAFMA+y/Wf8aPShiA/Ft60\
                P5qrYha2MA8GA1UdEwEB/wQFMAMBAf8wFgYDVR0RBA8wDYILYi0xLmV4YW1wbGUwCgYIKoZIzj0EAwIDSAAwRQIgZpSsYSKSx9jZ08Hhhs0o\
                zQNrYd5nQugZ1fYIbwBVejECIQCqXMip/v8VSl4YXq6n41WvOFAPaU9OO0yDVmdIRhy9ig==
                """) ?? Data())

    @Test func whoseItIsAndUntilWhen() throws {
        let certificate = try #require(PeerCertificate(der: Self.bytes))
        #expect(certificate.subject == "b-1.example" && certificate.issuer == "b-1.example")
        #expect(certificate.begins.rfc3339 == "2026-11-27T18:18:01.000Z")
        #expect(certificate.ends.rfc3339 == "2036-11-24T18:18:01.000Z")
        for (now, days) in [("2036-11-23T18:18:01Z", 1), ("2036-11-24T00:00:00Z", 0), ("2036-11-24T18:18:02Z", -1)] {
            #expect(certificate.daysLeft(try #require(Timestamp(rfc3339: now))) == Int64(days))
        }
    }

    @Test(arguments: ["\n", "\r\n"]) func asAFileHasIt(newline: String) throws {
        let text = Data(Self.bytes).base64EncodedString(
            options: [.lineLength64Characters, newline == "\n" ? .endLineWithLineFeed : .endLineWithCarriageReturn])
        let pem =
            "subject=CN = b-1.example\(newline)-----BEGIN CERTIFICATE-----\(newline)\(text)\(newline)-----END CERTIFICATE-----"
        #expect(PeerCertificate(pem: pem + "\(newline)-----BEGIN CERTIFICATE-----")?.subject == "b-1.example")
        for other in ["", "-----BEGIN CERTIFICATE-----", pem.replacing("CERTIFICATE", with: "PRIVATE KEY")] {
            #expect(PeerCertificate(pem: other) == nil)
        }
    }

    @Test func whetherItIsGoodNow() throws {
        let certificate = try #require(PeerCertificate(der: Self.bytes))
        for (now, flaw) in [
            ("2026-11-27T18:18:00Z", "begins on 2026-11-27"), ("2026-11-27T18:18:01Z", nil),
            ("2036-11-24T18:18:01Z", nil), ("2036-11-24T18:18:02Z", "ended on 2036-11-24"),
        ] { #expect(certificate.flaw(try #require(Timestamp(rfc3339: now))) == flaw) }
    }

    /// Others make them: a half of one, or one with other bytes in it, is none, and no fault of ours.
    @Test func whatIsNoneIsNone() {
        for count in 0..<Self.bytes.count where count < 250 {
            #expect(PeerCertificate(der: Array(Self.bytes[..<count])) == nil)
        }
        for place in Self.bytes.indices {
            for byte: UInt8 in [0, 0x30, 0x7F, 0x80, 0x84, 0xFF] {
                var bytes = Self.bytes
                bytes[place] = byte
                _ = PeerCertificate(der: bytes)
            }
        }
    }
}
