// SPDX-License-Identifier: Apache-2.0

extension JSONValue {
    /// Parses one document, strictly by RFC 8259.
    ///
    /// Refuses ill-formed UTF-8, a byte order mark, lone surrogate escapes, trailing bytes, repeated member
    /// names and everything beyond `limits`. Names are repeated when they have the same bytes or when Swift's
    /// `==` (canonical equivalence) holds, as a `Dictionary` would merge those too. The stack used is bounded
    /// by `limits.maxDepth`, the time is linear in the length of the document.
    public init(parsing bytes: [UInt8], limits: JSONLimits = .init()) throws(JSONParseError) {
        self = try bytes.withUnsafeBufferPointer { (buffer) throws(JSONParseError) -> JSONValue in
            try JSONValue(parsing: UnsafeRawBufferPointer(buffer), limits: limits)
        }
    }

    /// Parses one document from memory that stays valid and unchanged during the call.
    public init(
        parsing bytes: UnsafeRawBufferPointer, limits: JSONLimits = .init()
    ) throws(JSONParseError) {
        let entries = try JSONParser.entries(of: bytes, limits)
        guard let base = bytes.baseAddress else { preconditionFailure("what is empty was refused") }
        self = JSONTape(base: base, entries: entries).value(at: 0)
    }

    /// Parses one document from a span.
    public init(parsing bytes: Span<UInt8>, limits: JSONLimits = .init()) throws(JSONParseError) {
        self = try bytes.withUnsafeBytes { (buffer) throws(JSONParseError) -> JSONValue in
            try JSONValue(parsing: buffer, limits: limits)
        }
    }

    /// Parses one document from any collection of bytes; copies it first unless it is contiguous.
    public init(
        parsing bytes: some Collection<UInt8>, limits: JSONLimits = .init()
    ) throws(JSONParseError) {
        let direct = bytes.withContiguousStorageIfAvailable { buffer in
            Result { () throws(JSONParseError) -> JSONValue in
                try JSONValue(parsing: UnsafeRawBufferPointer(buffer), limits: limits)
            }
        }
        if let direct {
            self = try direct.get()
        } else {
            try self.init(parsing: [UInt8](bytes), limits: limits)
        }
    }
}

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

    package init(reason: Reason, offset: Int, expectation: String, found: Found) {
        (self.reason, self.offset, self.expectation, self.found) = (reason, offset, expectation, found)
    }

    package enum Found: Sendable, Hashable {
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

/// Bounds on what the parser accepts.
public struct JSONLimits: Sendable, Hashable {
    /// The deepest nesting of arrays and objects: `1` has depth 0, `[1]` depth 1 and `[[1]]` depth 2.
    public let maxDepth: Int
    /// The longest document, in bytes.
    public let maxBytes: Int

    /// `maxDepth` is clamped to 1...512, so that neither parsing nor releasing a parsed value can exhaust
    /// the stack whatever a configuration says; `maxBytes` to what an index of 32 bits reaches.
    public init(maxDepth: Int = 32, maxBytes: Int = 262_144) {
        self.maxDepth = Swift.min(Swift.max(maxDepth, 1), 512)
        self.maxBytes = Swift.min(Swift.max(maxBytes, 0), Int(UInt32.max) - 1)
    }
}
