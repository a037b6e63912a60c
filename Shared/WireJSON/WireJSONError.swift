// SPDX-License-Identifier: Apache-2.0

/// Words errors of this library for people.
public enum WireJSONError {
    /// One line that says which member is at fault, what kind of value was found and what would be right, for
    /// example `data.device.kind: expected a string, found a number`.
    ///
    /// The line is at most 400 characters, holds no control characters and quotes no values. It may hold the
    /// names of members, and the text that an `init(from:)` outside this library gave its own error.
    public static func explain(_ error: any Error) -> String {
        switch error {
        case let error as JSONParseError: line(error.description)
        case let error as DecodingError: explain(error)
        case let error as EncodingError: explain(error)
        default: "failed with an error of type \(type(of: error))"
        }
    }

    private static func explain(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            line(path(context.codingPath + [key]) + "required member is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            line(path(context.codingPath) + withoutContent(context.debugDescription))
        @unknown default:
            "the document does not have the expected form"
        }
    }

    private static func explain(_ error: EncodingError) -> String {
        switch error {
        case .invalidValue(_, let context):
            line(path(context.codingPath) + "cannot be written: " + context.debugDescription)
        @unknown default:
            "the value cannot be written"
        }
    }

    /// The path with its colon, such as `data.items[3].kind: `, or nothing for the document itself.
    private static func path(_ keys: [any CodingKey]) -> String {
        var result = ""
        for key in keys {
            if key is JSONIndexKey {
                result += key.stringValue
            } else {
                result += (result.isEmpty ? "" : ".") + String(key.stringValue.prefix(64))
            }
        }
        return result.isEmpty ? "" : String(result.prefix(200)) + ": "
    }

    /// The standard library quotes the value when a raw representable type refuses it; this keeps the type.
    private static func withoutContent(_ text: String) -> String {
        let lead = "Cannot initialize "
        guard text.hasPrefix(lead) else { return text }
        let words = text.dropFirst(lead.count).split(separator: " ", maxSplits: 4)
        guard words.count > 3, words[1] == "from", words[2] == "invalid" else {
            return "expected another value"
        }
        return "expected a value that \(words[0]) allows, found another \(words[3])"
    }

    /// At most 400 characters, without control and direction characters, so that a log line stays one line.
    private static func line(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Character in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: return " "
            default: return Character(scalar)
            }
        }
        return String(scalars.prefix(400))
    }
}

/// Any member name as a coding key.
public struct AnyKey: CodingKey {
    /// The name.
    public let stringValue: String
    /// There is none.
    public var intValue: Int? { nil }

    /// A key with this name.
    public init(_ name: String) { stringValue = name }

    /// A key with this name.
    public init(stringValue: String) { self.stringValue = stringValue }

    /// Always nil: members have names.
    public init?(intValue: Int) { nil }
}

/// A position in an array, as a coding key.
package struct JSONIndexKey: CodingKey {
    let index: Int

    package init(_ index: Int) {
        self.index = index
    }

    package init?(intValue: Int) {
        index = intValue
    }

    package init?(stringValue: String) {
        return nil
    }

    package var intValue: Int? { index }
    package var stringValue: String { "[\(index)]" }
}

/// The member that `superDecoder()` and `superEncoder()` use, as everywhere in Codable.
package struct JSONSuperKey: CodingKey {
    package init() {}

    package init?(intValue: Int) {
        return nil
    }

    package init?(stringValue: String) {
        guard stringValue == "super" else { return nil }
    }

    package var intValue: Int? { nil }
    package var stringValue: String { "super" }
}
