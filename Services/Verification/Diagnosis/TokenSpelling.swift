// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A way to read a token as bytes, and what is wrong with a token that is written so.
struct TokenSpelling {
    var code: [UInt8]
    var mistake: String?

    static func readings(of token: String) -> [TokenSpelling] {
        if let code = AuthToken.code(of: token) { return [TokenSpelling(code: code)] }
        var readings: [TokenSpelling] = []
        let quotes: Set<Character> = ["\"", "'"]
        let bare = token.drop { $0.isWhitespace || quotes.contains($0) }
        let inner = String(bare.reversed().drop { $0.isWhitespace || quotes.contains($0) }.reversed())
        if inner.utf8.count != token.utf8.count {
            readings += Self.readings(of: inner).map { reading in
                let mistake = "the token has white space or quotes around it"
                return TokenSpelling(code: reading.code, mistake: [mistake, reading.mistake].joined)
            }
        }
        if token.contains("%"), let decoded = token.removingPercentEncoding, decoded != token {
            readings += Self.readings(of: decoded).map {
                TokenSpelling(code: $0.code, mistake: ["the token is percent-encoded", $0.mistake].joined)
            }
        }
        let unpadded = token.utf8.prefix { $0 != UInt8(ascii: "=") }
        if let bytes = AuthToken.base64Decoded(unpadded), !bytes.isEmpty {
            readings.append(TokenSpelling(code: bytes))
            if let code = AuthToken.hexDecoded(bytes) {
                readings.append(
                    TokenSpelling(
                        code: code,
                        mistake: "wrong encoding: base64 of the hex text; encode the 32 bytes themselves"))
            }
        }
        if let code = AuthToken.hexDecoded(Array(token.utf8)), !code.isEmpty {
            readings.append(TokenSpelling(code: code))
        }
        return readings
    }
}

extension [String?] {
    fileprivate var joined: String { compactMap(\.self).joined(separator: "; ") }
}
