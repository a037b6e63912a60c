// SPDX-License-Identifier: Apache-2.0

/// Why a document was refused, and where.
public struct JSONParseError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of refusal; raw values are stable and fit for metrics labels.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// A byte sequence that is not well-formed UTF-8 (overlong, surrogate, out of range, cut short).
        case notUTF8
        /// A violation of RFC 8259's grammar, a lone surrogate escape, or a byte order mark.
        case notJSON
        /// More nested arrays and objects than `JSONLimits.maxDepth`.
        case tooDeep
        /// More bytes than `JSONLimits.maxBytes`.
        case tooLarge
        /// Two members of one object have the same name.
        case duplicateMember
    }

    /// The kind of refusal.
    public let reason: Reason
    /// The byte at which the parser stopped, counted from 0; equal to the length when input ended too early.
    public let offset: Int
    /// What would have been right; names no content of the document.
    let expectation: String
    /// What stood there, at most one byte; nil when the input ended or the byte says nothing.
    let found: Found

    enum Found: Sendable, Hashable {
        case byte(UInt8)
        case end, unspecified
    }

    /// One line for people. Quotes at most one byte of the document.
    public var description: String {
        let head: String
        switch reason {
        case .notUTF8: head = "not UTF-8"
        case .notJSON: head = "not JSON"
        case .tooDeep: head = "nested too deeply"
        case .tooLarge: head = "too large"
        case .duplicateMember: head = "duplicate member name"
        }
        return "\(head) at byte \(offset): expected \(expectation)\(foundText)"
    }

    private var foundText: String {
        switch found {
        case .unspecified: return ""
        case .end: return ", found the end of the document"
        case .byte(let byte) where byte > 0x20 && byte < 0x7F:
            return ", found '\(Unicode.Scalar(byte))'"
        case .byte(let byte):
            let digits = String(byte, radix: 16, uppercase: true)
            return ", found byte 0x\(digits.utf8.count == 1 ? "0" : "")\(digits)"
        }
    }
}
