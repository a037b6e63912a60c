// SPDX-License-Identifier: Apache-2.0

import Logging

/// The metadata of one log line: merged, redacted and rendered. Pure functions.
enum LogFields {
    /// Merges all sources; later ones win: the handler's own, the provider's, the event's, the event's error.
    static func merged(
        handler: Logger.Metadata, provider: Logger.MetadataProvider?, event: LogEvent
    ) -> Logger.Metadata {
        var fields = handler
        if let provided = provider?.get() { fields.merge(provided) { _, new in new } }
        if let own = event.metadata { fields.merge(own) { _, new in new } }
        if let error = event.error {
            fields["error.message"] = "\(error)"
            fields["error.type"] = "\(String(reflecting: type(of: error)))"
        }
        return fields
    }

    /// The key of what names the kind of a line, see ``JSONLogHandler``.
    static let event = "event"

    /// What names the kind of the line, taken out of its fields.
    static func takeEvent(_ fields: inout Logger.Metadata) -> String? { fields.removeValue(forKey: event)?.description }

    /// Appends the metadata as a JSON object, keys sorted.
    static func appendJSON(_ fields: Logger.Metadata, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "{"))
        var first = true
        for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
            if !first { line.append(UInt8(ascii: ",")) }
            first = false
            HarmlessText.append(key, to: &line)
            line.append(UInt8(ascii: ":"))
            if Redaction.covers(key) {
                HarmlessText.append(Redaction.placeholder, to: &line)
            } else {
                appendJSON(value, to: &line)
            }
        }
        line.append(UInt8(ascii: "}"))
    }

    /// Appends ` key=value` for every field, keys sorted; values that could be misread are quoted.
    static func appendText(_ fields: Logger.Metadata, to line: inout [UInt8]) {
        for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
            line.append(UInt8(ascii: " "))
            HarmlessText.appendEscaped(key, quotes: false, to: &line)
            line.append(UInt8(ascii: "="))
            switch value {
            case _ where Redaction.covers(key): line += Redaction.placeholder.utf8
            case .string(let text): appendWord(text, to: &line)
            case .stringConvertible(let object): appendWord(object.description, to: &line)
            case .dictionary, .array: appendJSON(value, to: &line)
            }
        }
    }

    private static func appendJSON(_ value: Logger.Metadata.Value, to line: inout [UInt8]) {
        switch value {
        case .string(let text): HarmlessText.append(text, to: &line)
        case .stringConvertible(let object):
            if let number = number(object) {
                line += number.utf8
            } else {
                HarmlessText.append(object.description, to: &line)
            }
        case .dictionary(let nested): appendJSON(nested, to: &line)
        case .array(let values):
            line.append(UInt8(ascii: "["))
            for (index, element) in values.enumerated() {
                if index > 0 { line.append(UInt8(ascii: ",")) }
                appendJSON(element, to: &line)
            }
            line.append(UInt8(ascii: "]"))
        }
    }

    /// A number, or whether something is so, as JSON writes it.
    private static func number(_ object: any CustomStringConvertible & Sendable) -> String? {
        switch object {
        case let number as any BinaryInteger: number.description
        case let number as Double where number.isFinite: MetricText.number(number)
        case let isSo as Bool: isSo.description
        default: nil
        }
    }

    private static func appendWord(_ text: String, to line: inout [UInt8]) {
        let plain = !text.isEmpty && !text.utf8.contains { $0 == 0x20 || $0 == 0x22 || $0 == 0x3D }
        if plain {
            HarmlessText.appendEscaped(text, quotes: false, to: &line)
        } else {
            HarmlessText.append(text, to: &line)
        }
    }
}

/// Decides which metadata values may not be written to a log.
///
/// Only keys are looked at: a secret that stands inside a message or under a harmless key is not found. Call sites must
/// not put it there.
enum Redaction {
    static let placeholder = "<redacted>"

    /// Endings of keys in lower case without separators, so that `secret` also covers `client_secret` and `appSecret`.
    private static let endings = ["secret", "password", "signature", "token", "authorization", "authenticationcode"]

    /// Whether the value under this key is replaced by the placeholder, at any depth of nesting.
    static func covers(_ key: String) -> Bool {
        // Compared without case and separators: HTTP, Swift and SQL spell the same word differently.
        let bytes = key.utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: " "): nil
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
            default: byte
            }
        }
        return endings.contains { bytes.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }
}
