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
/// Besides what JSON demands, everything is escaped that could break a line or deceive a reader of it: all control
/// characters, the Unicode line separators, the bidirectional controls and the byte order mark. A Swift `String` is
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
            case _ where isUnsafe(scalar.value): appendCode(scalar.value, to: &output)
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

    private static func isUnsafe(_ value: UInt32) -> Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E,
            0x2066...0x2069, 0xFEFF:
            true
        default: false
        }
    }

    /// All unsafe scalars are in the basic plane, so four digits are enough.
    private static func appendCode(_ value: UInt32, to output: inout [UInt8]) {
        output += "\\u".utf8
        for shift in [12, 8, 4, 0] as [UInt32] { output.append(hexDigits[Int((value >> shift) & 0xF)]) }
    }
}
