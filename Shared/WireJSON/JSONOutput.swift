// SPDX-License-Identifier: Apache-2.0

/// A value that writes itself as JSON: the very bytes that ``WireJSONEncoder`` makes of its `encode(to:)`, and without a
/// container for each object. What gives no `write(to:)` of its own is written by that encoder.
public protocol WireWritable: Encodable {
    /// Writes the whole value, in the place where the output stands.
    func write(to json: inout JSONOutput) throws
}

extension WireWritable {
    public func write(to json: inout JSONOutput) throws { try json.encode(self) }
}

/// JSON text that grows. The caller sees to it that members stand between ``begin()`` and ``end()``, each name once.
public struct JSONOutput: Sendable {
    /// What has been written.
    public private(set) var bytes: [UInt8]

    /// - Parameter bytes: what stands in front of the value.
    public init(after bytes: consuming [UInt8] = []) { self.bytes = bytes }

    /// Begins an object.
    public mutating func begin() { bytes.append(UInt8(ascii: "{")) }

    /// Ends the object that was begun last.
    public mutating func end() { bytes.append(UInt8(ascii: "}")) }

    // MARK: Members

    public mutating func member(_ name: StaticString, _ text: String) {
        lead(name)
        JSONWriter.append(text, to: &bytes)
    }

    public mutating func memberIfPresent(_ name: StaticString, _ text: String?) {
        if let text { member(name, text) }
    }

    public mutating func member(_ name: StaticString, _ value: Bool) {
        lead(name)
        JSONWriter.append(value, to: &bytes)
    }

    public mutating func memberIfPresent(_ name: StaticString, _ value: Bool?) {
        if let value { member(name, value) }
    }

    public mutating func member(_ name: StaticString, _ value: Int64) {
        lead(name)
        JSONWriter.append(value, to: &bytes)
    }

    public mutating func memberIfPresent(_ name: StaticString, _ value: Int64?) {
        if let value { member(name, value) }
    }

    public mutating func member(_ name: StaticString, _ value: some WireWritable) throws {
        lead(name)
        try value.write(to: &self)
    }

    public mutating func memberIfPresent(_ name: StaticString, _ value: (some WireWritable)?) throws {
        if let value { try member(name, value) }
    }

    /// A map, by the bytes of its keys.
    public mutating func map(_ name: StaticString, _ map: [String: some WireWritable]) throws {
        lead(name)
        begin()
        for (key, value) in map.sorted(by: { JSONText.precedes($0.key, $1.key) }) {
            separate()
            JSONWriter.append(key, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            try value.write(to: &self)
        }
        end()
    }

    /// In front of a member: its name, which needs no escaping.
    private mutating func lead(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        append(name)
        append("\":")
    }

    /// A comma, unless an object or an array has only begun: no value ends with these bytes.
    private mutating func separate() {
        guard let last = bytes.last, last != UInt8(ascii: "{"), last != UInt8(ascii: "[") else { return }
        bytes.append(UInt8(ascii: ","))
    }

    // MARK: Values

    public mutating func write(_ text: String) { JSONWriter.append(text, to: &bytes) }

    /// By way of `encode(to:)`.
    public mutating func encode(_ value: some Encodable) throws { try WireJSONEncoder().append(value, to: &bytes) }

    fileprivate mutating func write(_ value: JSONValue) { JSONWriter.append(value, style: .asIs, to: &bytes) }
    fileprivate mutating func write(_ value: Bool) { JSONWriter.append(value, to: &bytes) }
    fileprivate mutating func write(_ value: Int64) { JSONWriter.append(value, to: &bytes) }
    fileprivate mutating func append(_ text: [UInt8]) { bytes.append(contentsOf: text) }
    fileprivate mutating func append(_ text: StaticString) {
        // In bounds: these are the literal's bytes.
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    fileprivate mutating func list(_ elements: [some WireWritable]) throws {
        bytes.append(UInt8(ascii: "["))
        for element in elements {
            separate()
            try element.write(to: &self)
        }
        bytes.append(UInt8(ascii: "]"))
    }
}

extension String: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(self) }
}

extension Bool: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(self) }
}

extension Int: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(Int64(self)) }
}

extension Int32: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(Int64(self)) }
}

extension Int64: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(self) }
}

extension Double: WireWritable {}

extension JSONValue: WireWritable {
    public func write(to json: inout JSONOutput) { json.write(self) }
}

/// Throws ``EncodingError`` where it has no bytes.
extension RawJSON: WireWritable {
    public func write(to json: inout JSONOutput) throws {
        if bytes.isEmpty { try json.encode(self) } else { json.append(bytes) }
    }
}

extension Array: WireWritable where Element: WireWritable {
    public func write(to json: inout JSONOutput) throws { try json.list(self) }
}

/// `null` where there is nothing. A member that may be missing is written with `memberIfPresent` instead.
extension Optional: WireWritable where Wrapped: WireWritable {
    public func write(to json: inout JSONOutput) throws {
        if let self { try self.write(to: &json) } else { json.append("null") }
    }
}
