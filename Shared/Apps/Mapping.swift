// SPDX-License-Identifier: Apache-2.0

import WireJSON
import Yams

/// A mapping of the apps file. Read as ``Strict``.
protocol Mapping: Decodable {
    associatedtype CodingKeys: CodingKey & CaseIterable
}

/// A mapping that has no member but the known ones: a misspelt setting must not be silently ignored.
@dynamicMemberLookup
struct Strict<Content: Mapping>: Decodable {
    let content: Content

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        let known = Content.CodingKeys.allCases.map(\.stringValue)
        for key in container.allKeys where !known.contains(key.stringValue) {
            let steps = AppsFile.steps(container.codingPath)
            throw AppsFile.Problem(
                shape: "unknown member \(key.stringValue)\(AppsFile.known(known, for: key.stringValue))", of: steps,
                at: steps + [.member(key.stringValue)], isAboutName: true)
        }
        content = try Content(from: decoder)
    }

    subscript<Value>(dynamicMember member: KeyPath<Content, Value>) -> Value { content[keyPath: member] }
}

/// Any YAML, as the JSON value that it means: a plain `10` is a number, a quoted one is text.
struct YAMLValue: Decodable {
    var value: JSONValue

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: AnyKey.self) {
            var object = JSONObject()
            for key in container.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
                object[key.stringValue] = try container.decode(YAMLValue.self, forKey: key).value
            }
            value = .object(object)
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd { elements.append(try container.decode(YAMLValue.self).value) }
            value = .array(elements)
        } else {
            value = try decoder.singleValueContainer().decode(Scalar.self).value
        }
    }

    private struct Scalar: Decodable, ScalarConstructible {
        var value: JSONValue

        init(value: JSONValue) { self.value = value }

        init(from decoder: any Decoder) throws {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "is not a value of YAML"))
        }

        static func construct(from scalar: Node.Scalar) -> Scalar? {
            let text = scalar.string
            guard scalar.style == .plain || scalar.style == .any else { return Scalar(value: .string(text)) }
            if let flag = Bool.construct(from: scalar) { return Scalar(value: .bool(flag)) }
            if ["", "~", "null", "Null", "NULL"].contains(text) { return Scalar(value: .null) }
            if let integer = Int64(text) { return Scalar(value: .number(JSONNumber(integer))) }
            if let first = text.utf8.first, (0x2B...0x39).contains(first),
                let number = Double(text).flatMap(JSONNumber.init)
            {
                return Scalar(value: .number(number))
            }
            return Scalar(value: .string(text))
        }
    }
}
