// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text with `\\u…` in place of whatever could break a line, steer a terminal or deceive a reader. JSON stays the
    /// same JSON.
    public var harmless: String {
        var bytes: [UInt8] = []
        HarmlessText.appendEscaped(self, quotes: false, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Writes JSON strings byte by byte, for output that must be one line whatever it contains. Pure functions.
///
/// Besides what JSON demands, everything is escaped that could break a line or deceive a reader of it: all control and
/// format characters (bidirectional ones, and those that nobody sees) and the Unicode line separators. A Swift `String` is
/// always valid Unicode (broken input was replaced by U+FFFD when the string was made), and so is the output.
enum HarmlessText {
    /// Appends a complete JSON string with its quotes.
    static func append(_ text: String, to output: inout [UInt8]) {
        output.append(quote)
        appendEscaped(text, quotes: true, to: &output)
        output.append(quote)
    }

    /// Appends the escaped text without surrounding quotes. Without `quotes`, quotes and backslashes stay as they are,
    /// for lines that people read and nobody parses.
    static func appendEscaped(_ text: String, quotes: Bool, to output: inout [UInt8]) {
        if text.utf8.allSatisfy(isPlain) {
            output += text.utf8
            return
        }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": output += "\\n".utf8
            case "\r": output += "\\r".utf8
            case "\t": output += "\\t".utf8
            case "\"" where quotes, "\\" where quotes: output += [backslash, UInt8(truncatingIfNeeded: scalar.value)]
            case _ where isUnsafe(scalar): appendCode(scalar, to: &output)
            default: output += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")
    private static let hexDigits = Array("0123456789abcdef".utf8)

    /// ASCII that needs no escape in either mode; everything else is looked at scalar by scalar.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x20..<0x7F).contains(byte) && byte != quote && byte != backslash
    }

    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// As JSON has it: one that is not in the basic plane is two.
    private static func appendCode(_ scalar: Unicode.Scalar, to output: inout [UInt8]) {
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
            output += "\\u".utf8
            for shift in [12, 8, 4, 0] { output.append(hexDigits[Int((unit >> shift) & 0xF)]) }
        }
    }
}
