// SPDX-License-Identifier: Apache-2.0

extension Sequence<UInt8> {
    /// Two lower-case hex digits for each byte.
    public var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        for byte in self { text.appendHex(byte) }
        return String(decoding: text, as: UTF8.self)
    }
}

extension [UInt8] {
    private static let hexDigits = Array("0123456789abcdef".utf8)

    mutating func appendHex(_ byte: UInt8) {
        append(Self.hexDigits[Int(byte >> 4)])
        append(Self.hexDigits[Int(byte & 15)])
    }

    /// Reads what ``Swift/Sequence/hex`` writes, and capital letters. `nil` for anything else.
    public init?(hex text: some StringProtocol) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }.map(UInt8.init)
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
