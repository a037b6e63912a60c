// SPDX-License-Identifier: Apache-2.0

/// A JSON number kept exactly as written, so that 64-bit integers and decimals survive a round trip.
///
/// Equality and hashing compare lexemes: `1`, `1.0` and `1e0` are three different numbers.
public struct JSONNumber: Sendable, Hashable {
    /// The text of the number; always matches the `number` production of RFC 8259.
    public let lexeme: String

    /// Trusts `lexeme`; only the parser and the checked initialisers call it.
    package init(uncheckedLexeme lexeme: String) {
        self.lexeme = lexeme
    }

    /// An integer of any width.
    public init<I: BinaryInteger>(_ value: I) {
        lexeme = String(value)
    }

    /// The shortest decimal that reads back as `value` (`5`, not `5.0`); nil for NaN and infinities.
    public init?(_ value: Double) {
        guard let text = JSONText.shortest(value) else { return nil }
        lexeme = text
    }

    /// Nil unless `lexeme` is exactly one RFC 8259 number.
    public init?(lexeme: String) {
        guard case .number(let number)? = try? JSONValue(parsing: lexeme.utf8),
            number.lexeme.utf8.count == lexeme.utf8.count
        else { return nil }
        self = number
    }

    /// The value when the lexeme is an integer (no fraction, no exponent: `5.0` and `1e3` are not) in range.
    public var int64: Int64? {
        integer(Int64.self)
    }

    /// The nearest binary64 value; infinite when the magnitude is out of range.
    public var double: Double {
        // The lexeme is always a number, so the fallback is unreachable; NaN would be noticed downstream.
        Double(lexeme) ?? .nan
    }

    /// Whether the lexeme has neither fraction nor exponent.
    package var isInteger: Bool {
        lexeme.utf8.allSatisfy { $0 <= UInt8(ascii: "9") && $0 != UInt8(ascii: ".") }
    }

    /// The exact value as `T`, nil when the lexeme is not an integer or does not fit.
    package func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        var lexeme = lexeme
        return lexeme.withUTF8 { Self.integer(type, UnsafeRawBufferPointer($0)) }
    }

    @inline(__always)
    static func integer<T: FixedWidthInteger>(_ type: T.Type, _ lexeme: UnsafeRawBufferPointer) -> T? {
        var result: T = 0
        var negative = false
        for byte in lexeme {
            if byte == UInt8(ascii: "-") {
                // A minus sign inside the lexeme only follows an exponent letter, which was refused before.
                negative = true
                continue
            }
            let digit = byte &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let scaled = result.multipliedReportingOverflow(by: 10)
            guard !scaled.overflow, let step = T(exactly: digit) else { return nil }
            // Counting downwards for negative numbers reaches T.min, which has no positive counterpart.
            let next =
                negative
                ? scaled.partialValue.subtractingReportingOverflow(step)
                : scaled.partialValue.addingReportingOverflow(step)
            guard !next.overflow else { return nil }
            result = next.partialValue
        }
        return result
    }
}
