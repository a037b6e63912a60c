// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What stands in an X.509 certificate about whose it is and until when it is good. For telling people: it checks nothing,
/// that is OpenSSL's.
package struct PeerCertificate: Sendable, Hashable {
    /// The common names; empty where there is none.
    package let subject: String
    package let issuer: String
    package let begins: Timestamp
    package let ends: Timestamp

    /// - Returns: `nil` for what is no certificate.
    package init?(der bytes: [UInt8]) {
        var all = DER(bytes[...])
        guard let certificate = all.next(0x30) else { return nil }
        var outer = DER(certificate)
        guard let signed = outer.next(0x30) else { return nil }
        var fields = DER(signed)
        // The version may be left out.
        if fields.tag == 0xA0 { _ = fields.next() }
        // Serial number and algorithm.
        guard fields.next(0x02) != nil, fields.next(0x30) != nil, let issuer = fields.next(0x30),
            let validity = fields.next(0x30), let subject = fields.next(0x30)
        else { return nil }
        var times = DER(validity)
        guard let begins = Self.time(times.next()), let ends = Self.time(times.next()) else { return nil }
        self.begins = begins
        self.ends = ends
        self.issuer = Self.commonName(issuer)
        self.subject = Self.commonName(subject)
    }

    /// The first one of a PEM file, which is whose it is; what follows has issued it.
    ///
    /// - Returns: `nil` where there is none.
    package init?(pem text: String) {
        guard let begin = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text[begin.upperBound...].firstRange(of: "-----END CERTIFICATE-----"),
            let bytes = Data(
                base64Encoded: String(text[begin.upperBound..<end.lowerBound]), options: .ignoreUnknownCharacters)
        else { return nil }
        self.init(der: Array(bytes))
    }

    /// Why it is not good now: `ended on 2021-01-01`; `nil` when it is.
    package func flaw(_ now: Timestamp) -> String? {
        if ends < now { return "ended on \(ends.rfc3339.prefix(10))" }
        return begins > now ? "begins on \(begins.rfc3339.prefix(10))" : nil
    }

    /// Whole days until it ends; negative when it has ended.
    package func daysLeft(_ now: Timestamp) -> Int64 {
        let left = ends.milliseconds - now.milliseconds
        return left >= 0 ? left / 86_400_000 : -1 - (-left - 1) / 86_400_000
    }

    private static func commonName(_ name: ArraySlice<UInt8>) -> String {
        var sets = DER(name)
        while let (_, set) = sets.next() {
            var members = DER(set)
            guard let pair = members.next(0x30) else { continue }
            var parts = DER(pair)
            guard parts.next(0x06) == [0x55, 0x04, 0x03], let (_, text) = parts.next() else { continue }
            return String(decoding: text, as: UTF8.self)
        }
        return ""
    }

    /// `YYMMDDHHMMSSZ`, or with all digits of the year.
    private static func time(_ value: (tag: UInt8, content: ArraySlice<UInt8>)?) -> Timestamp? {
        guard let (tag, content) = value, tag == 0x17 || tag == 0x18 else { return nil }
        var text = String(decoding: content, as: UTF8.self)
        if tag == 0x17 { text = (text < "50" ? "20" : "19") + text }
        let digits = Array(text)
        guard digits.count == 15, digits[14] == "Z" else { return nil }
        func part(_ range: Range<Int>) -> String { String(digits[range]) }
        return Timestamp(
            rfc3339: "\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(8..<10)):\(part(10..<12)):\(part(12..<14))Z")
    }
}

/// Reads one value of ASN.1's DER after the other.
private struct DER {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// Of the next value.
    var tag: UInt8? { bytes.first }

    mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
        guard let tag = bytes.popFirst(), let first = bytes.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            let count = Int(first & 0x7F)
            guard (1...4).contains(count), bytes.count >= count else { return nil }
            length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            bytes = bytes.dropFirst(count)
        }
        guard length <= bytes.count else { return nil }
        defer { bytes = bytes.dropFirst(length) }
        return (tag, bytes.prefix(length))
    }

    /// The content of the next value, if it is of that kind.
    mutating func next(_ tag: UInt8) -> ArraySlice<UInt8>? {
        guard self.tag == tag else { return nil }
        return next()?.content
    }
}
