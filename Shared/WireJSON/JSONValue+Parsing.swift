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
        guard bytes.count <= limits.maxBytes else {
            throw JSONParseError(
                reason: .tooLarge, offset: limits.maxBytes,
                expectation: "at most \(limits.maxBytes) bytes, got \(bytes.count)", found: .unspecified)
        }
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            throw JSONParseError(reason: .notJSON, offset: 0, expectation: "a value", found: .end)
        }
        var parser = JSONParser(base: base, count: bytes.count, maxDepth: limits.maxDepth)
        self = try parser.document()
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
