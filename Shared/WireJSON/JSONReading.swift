// SPDX-License-Identifier: Apache-2.0

/// A value that reads itself from JSON, without a container for each object: the very value that ``WireJSONDecoder`` makes with its
/// `init(from:)`. What is written otherwise than usual it leaves to that decoder, which also says what is wrong.
public protocol WireReadable: Decodable {
    /// - Returns: `nil` where the JSON is not what was expected; it may be right all the same.
    init?(usual view: JSONView)
}

extension WireReadable {
    public init?(usual view: JSONView) {
        guard let value = try? WireJSONDecoder().decode(Self.self, from: view) else { return nil }
        self = value
    }
}

extension WireJSONDecoder {
    /// As `decode`, and quicker where the JSON is written as usual.
    public func read<T: WireReadable>(_ type: T.Type, from view: JSONView) throws -> T {
        if let value = T(usual: view) { return value }
        return try decode(type, from: view)
    }
}

/// The members of an object, read one after the other. Costs least where they are asked for in their order.
public struct JSONObjectReader {
    private let document: JSONDocument
    private let first: Int
    private let end: Int
    private var place: Int

    /// - Returns: `nil` for what is no object.
    public init?(_ view: JSONView) {
        let entry = view.document.entries[view.index]
        guard entry.kind == .object else { return nil }
        document = view.document
        (first, end) = (view.index + 1, Int(entry.next))
        place = first
    }

    /// The text of a member; `nil` where it is missing, or none.
    public mutating func text(_ name: StaticString) -> String? { find(name)?.stringValue }

    /// The same of a member that may be missing or `null`: the inner `nil` is that.
    public mutating func textIfPresent(_ name: StaticString) -> String?? {
        guard let view = find(name), !view.isNull else { return .some(nil) }
        return view.stringValue.map { .some($0) }
    }

    /// A member; `nil` where it is missing, or not as usual.
    public mutating func value<T: WireReadable>(_ name: StaticString, as _: T.Type = T.self) -> T? {
        find(name).flatMap { T(usual: $0) }
    }

    /// The same of a member that may be missing or `null`: the inner `nil` is that.
    public mutating func valueIfPresent<T: WireReadable>(_ name: StaticString, as _: T.Type = T.self) -> T?? {
        guard let view = find(name), !view.isNull else { return .some(nil) }
        return T(usual: view).map { .some($0) }
    }

    /// A map with texts as keys.
    public mutating func map<T: WireReadable>(_ name: StaticString, of _: T.Type = T.self) -> [String: T]? {
        guard let view = find(name), let members = JSONObjectReader(view) else { return nil }
        var map: [String: T] = [:]
        var place = members.first
        while place < members.end {
            let key = document.withTape { $0.text($0.entries[place]) }
            guard let value = T(usual: JSONView(document: document, index: place + 1)) else { return nil }
            map[key] = value
            place = Int(document.entries[place + 1].next)
        }
        return map
    }

    private mutating func find(_ name: StaticString) -> JSONView? {
        guard first < end else { return nil }
        let begin = place == end ? first : place
        var here = begin
        let found = document.withTape { tape -> Int? in
            // In bounds: these are the literal's bytes.
            let text = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
            repeat {
                if tape.isText(tape.entries[here], text) { return here + 1 }
                here = Int(tape.entries[here + 1].next)
                if here == end { here = first }
            } while here != begin
            return nil
        }
        guard let found else { return nil }
        place = Int(document.entries[found].next)
        return JSONView(document: document, index: found)
    }
}

extension JSONView {
    fileprivate func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        let entry = document.entries[index]
        return entry.kind == .number ? document.withTape { JSONNumber.integer(type, $0.bytes(entry)) } : nil
    }

    /// Of an array; `nil` for any other kind.
    fileprivate var elements: [JSONView]? {
        let entry = document.entries[index]
        guard entry.kind == .array else { return nil }
        var elements: [JSONView] = []
        var place = index + 1
        while place < Int(entry.next) {
            elements.append(JSONView(document: document, index: place))
            place = Int(document.entries[place].next)
        }
        return elements
    }
}

extension String: WireReadable {
    public init?(usual view: JSONView) {
        guard let text = view.stringValue else { return nil }
        self = text
    }
}

extension Bool: WireReadable {
    public init?(usual view: JSONView) {
        guard let value = view.boolValue else { return nil }
        self = value
    }
}

extension Int64: WireReadable {
    public init?(usual view: JSONView) {
        guard let value = view.integer(Int64.self) else { return nil }
        self = value
    }
}

extension Int: WireReadable {
    public init?(usual view: JSONView) {
        guard let value = view.integer(Int.self) else { return nil }
        self = value
    }
}

extension Int32: WireReadable {
    public init?(usual view: JSONView) {
        guard let value = view.integer(Int32.self) else { return nil }
        self = value
    }
}

extension Double: WireReadable {}

extension JSONValue: WireReadable {
    public init?(usual view: JSONView) { self = view.value }
}

extension Array: WireReadable where Element: WireReadable {
    public init?(usual view: JSONView) {
        guard let elements = view.elements else { return nil }
        self = []
        reserveCapacity(elements.count)
        for element in elements {
            guard let value = Element(usual: element) else { return nil }
            append(value)
        }
    }
}

extension Optional: WireReadable where Wrapped: WireReadable {
    public init?(usual view: JSONView) {
        if view.isNull {
            self = .none
        } else {
            guard let value = Wrapped(usual: view) else { return nil }
            self = .some(value)
        }
    }
}
