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

    /// Appends the metadata as a JSON object, keys sorted.
    static func appendJSON(_ fields: Logger.Metadata, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "{"))
        var first = true
        for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
            if !first { line.append(UInt8(ascii: ",")) }
            first = false
            JSONText.append(key, to: &line)
            line.append(UInt8(ascii: ":"))
            if Redaction.covers(key) {
                JSONText.append(Redaction.placeholder, to: &line)
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
            JSONText.appendEscaped(key, quotes: false, to: &line)
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
        case .string(let text): JSONText.append(text, to: &line)
        case .stringConvertible(let object): JSONText.append(object.description, to: &line)
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

    private static func appendWord(_ text: String, to line: inout [UInt8]) {
        let plain = !text.isEmpty && !text.utf8.contains { $0 == 0x20 || $0 == 0x22 || $0 == 0x3D }
        if plain {
            JSONText.appendEscaped(text, quotes: false, to: &line)
        } else {
            JSONText.append(text, to: &line)
        }
    }
}
