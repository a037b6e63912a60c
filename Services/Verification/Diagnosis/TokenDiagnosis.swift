// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
import Foundation
import Runtime

/// Says why a `userAuthToken` does not pass. For operators only, who know the secrets anyway: to outsiders it would
/// say how close a guess is (V57).
///
/// Tries the usual mistakes of a backend, one by one and together: what is signed, with which secret, by which
/// function, and how it is written down.
public struct TokenDiagnosis {
    public let app: AppSettings
    public let now: Timestamp
    /// To tell a token of another app.
    public let otherApps: [AppSettings]

    public init(app: AppSettings, now: Timestamp, otherApps: [AppSettings] = []) {
        self.app = app
        self.now = now
        self.otherApps = otherApps
    }

    /// - Returns: one line for each mistake that was found; a last one when none explains it. Never empty.
    public func explain(
        token: String, userID: String?, email: String?, fullPrivacy: Bool = false
    ) -> [String] {
        let fullPrivacy = fullPrivacy || app.verification.fullPrivacy
        if token.isBlank { return ["no token was given"] }
        if app.verification.keys.isEmpty { return ["the app has no verification keys"] }
        guard case .user(let identifiers) = Claimant(userID: userID, email: email, fullPrivacy: fullPrivacy) else {
            return ["the identifiers are not valid, so the login is anonymous and needs no token"]
        }
        let fields = app.verification.signedFields
        if SignedMessage.bytes(of: identifiers, fields, fullPrivacy: fullPrivacy) == nil {
            let needed = ["userId": fields != .email, "email": fields == .email || fields == .delimited]
            let names = needed.filter(\.value).keys.sorted().joined(separator: " and ")
            return ["the app signs \(fields.rawValue): \(names.isEmpty ? "an identifier" : names) must be given"]
        }
        let spellings = TokenSpelling.readings(of: token)
        if let problem = Self.misshape(of: spellings) { return [problem] }
        let expected = MessageGuess.expected(identifiers, fields, fullPrivacy: fullPrivacy)
        let messages = [expected] + MessageGuess.mistakes(identifiers, expected: expected)
        for message in messages {
            for key in KeyGuess.all(app, otherApps, now: now) {
                if let found = match(message, key, spellings) { return found }
            }
        }
        // Too many to be tried with a second mistake.
        let keys = KeyGuess.all(app, otherApps, now: now).filter { $0.mistake == nil }
        for message in MessageGuess.spellings(of: identifiers, fields, fullPrivacy: fullPrivacy) {
            for key in keys {
                if let found = match(message, key, spellings, FunctionGuess.all.prefix(1)) { return found }
            }
        }
        return unexplained(spellings)
    }

    /// Why the text is no token, whoever logs in with it; `nil` when it may be one.
    public static func misshape(of token: String) -> String? { misshape(of: TokenSpelling.readings(of: token)) }

    /// No hash function gives fewer than 16 bytes.
    private static func misshape(of spellings: [TokenSpelling]) -> String? {
        guard let longest = spellings.map(\.code.count).max() else {
            return "the token is neither base64 nor hex; HMAC-SHA256 gives 44 or 64 characters of these"
        }
        return longest < 16 ? "the token has \(longest) bytes; HMAC-SHA256 has 32" : nil
    }

    private func match(
        _ message: MessageGuess, _ key: KeyGuess, _ spellings: [TokenSpelling],
        _ functions: ArraySlice<FunctionGuess> = FunctionGuess.all[...]
    ) -> [String]? {
        for function in functions {
            let code = function.compute(message.bytes, key.secret)
            guard let spelling = spellings.first(where: { $0.code == code }) else { continue }
            let mistakes = [message.mistake, key.mistake, function.mistake, spelling.mistake].compactMap(\.self)
            return mistakes.isEmpty ? ["the token passes (key \(key.id))"] : mistakes
        }
        return nil
    }

    private func unexplained(_ spellings: [TokenSpelling]) -> [String] {
        var lines = spellings.first?.mistake.map { [$0] } ?? []
        if let length = spellings.first?.code.count, length != SHA256.byteCount {
            lines.append("the token has \(length) bytes; HMAC-SHA256 has 32")
        } else {
            lines.append("none of the usual mistakes explains it: another secret, or other identifiers, were signed")
        }
        return lines
    }
}

/// A way to read a token as bytes, and what is wrong with a token that is written so.
struct TokenSpelling {
    var code: [UInt8]
    var mistake: String?

    /// - Parameter layers: how often quotes or percent signs are taken off, which may stand in each other.
    static func readings(of token: String, layers: Int = 3) -> [TokenSpelling] {
        if let code = AuthToken.code(of: token) { return [TokenSpelling(code: code)] }
        var readings: [TokenSpelling] = []
        let quotes: Set<Character> = ["\"", "'"]
        let bare = token.drop { $0.isWhitespace || quotes.contains($0) }
        let inner = String(bare.reversed().drop { $0.isWhitespace || quotes.contains($0) }.reversed())
        if layers > 0, inner.utf8.count != token.utf8.count {
            readings += Self.readings(of: inner, layers: layers - 1).map { reading in
                let mistake = "the token has white space or quotes around it"
                return TokenSpelling(code: reading.code, mistake: [mistake, reading.mistake].joined)
            }
        }
        if layers > 0, token.contains("%"), let decoded = token.removingPercentEncoding, decoded != token {
            readings += Self.readings(of: decoded, layers: layers - 1).map {
                TokenSpelling(code: $0.code, mistake: ["the token is percent-encoded", $0.mistake].joined)
            }
        }
        let unpadded = token.utf8.prefix { $0 != UInt8(ascii: "=") }
        if let bytes = Base64.bytes(unpadded, .either), !bytes.isEmpty {
            readings.append(TokenSpelling(code: bytes))
            if let code = [UInt8](hex: String(decoding: bytes, as: UTF8.self)) {
                readings.append(
                    TokenSpelling(
                        code: code,
                        mistake: "wrong encoding: base64 of the hex text; encode the 32 bytes themselves"))
            }
        }
        if let code = [UInt8](hex: token), !code.isEmpty {
            readings.append(TokenSpelling(code: code))
        }
        return readings
    }
}

extension [String?] {
    fileprivate var joined: String { compactMap(\.self).joined(separator: "; ") }
}
