// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime

/// Something that a backend may have signed.
struct MessageGuess {
    var bytes: [UInt8]
    /// `nil` when it is what the app's policy says.
    var mistake: String?

    private init(_ text: String, _ mistake: String?) {
        bytes = Array(text.utf8)
        self.mistake = mistake
    }

    static func expected(
        _ identifiers: Identifiers, _ fields: VerificationSettings.SignedFields, fullPrivacy: Bool
    ) -> MessageGuess {
        let bytes = SignedMessage.bytes(of: identifiers, fields, fullPrivacy: fullPrivacy) ?? []
        return MessageGuess(String(decoding: bytes, as: UTF8.self), nil)
    }

    /// Without those that come to the expected message.
    static func mistakes(_ identifiers: Identifiers, expected: MessageGuess) -> [MessageGuess] {
        let text = String(decoding: expected.bytes, as: UTF8.self)
        let letters = identifiers.email == nil ? "letter case" : "e-mail case"
        var guesses = [
            MessageGuess(text + "\n", "a line feed at the end was signed too (echo without -n?)"),
            MessageGuess(text.lowercased(), "\(letters): the lower-cased text was signed; sign it as it is sent"),
            MessageGuess(text.uppercased(), "the upper-cased text was signed; sign it as it is sent"),
        ]
        guesses += fields(identifiers)
        if let email = identifiers.email, email != email.lowercased() {
            let folded = Identifiers(userID: identifiers.userID, email: email.lowercased())
            guesses += [
                MessageGuess(
                    (identifiers.userID ?? "") + email.lowercased(),
                    "e-mail case: the lower-cased e-mail was signed; sign it as it is sent"),
                MessageGuess(
                    (identifiers.userID ?? "") + "\n" + email.lowercased(),
                    "e-mail case: the lower-cased e-mail was signed; sign it as it is sent"),
            ]
            guesses += fields(folded).map { guess in
                var guess = guess
                guess.mistake? += "; e-mail case: it was signed in lower case"
                return guess
            }
        }
        return guesses.filter { $0.bytes != expected.bytes }
    }

    /// Other capitals than those that are sent, all in the app's own form.
    static func spellings(
        of identifiers: Identifiers, _ fields: VerificationSettings.SignedFields, fullPrivacy: Bool
    ) -> [MessageGuess] {
        let users = identifiers.userID.map(LetterCase.all) ?? [nil]
        let emails = identifiers.email.map(LetterCase.usual) ?? [nil]
        return users.flatMap { user in
            emails.map { email in
                let other = Identifiers(userID: user, email: email)
                let words = [user, email].compactMap(\.self)
                let verb = words.count == 1 ? "was" : "were"
                var guess = expected(other, fields, fullPrivacy: fullPrivacy)
                guess.mistake =
                    "letter case: \(words.joined(separator: " and ")) \(verb) signed; sign it as it is sent"
                return guess
            }
        }
    }

    private static func fields(_ identifiers: Identifiers) -> [MessageGuess] {
        guard let userID = identifiers.userID else {
            return identifiers.email.map { [MessageGuess($0, "wrong fields: the e-mail alone was signed")] } ?? []
        }
        guard let email = identifiers.email else {
            return [MessageGuess(userID, "wrong fields: the user id alone was signed")]
        }
        let guesses = [
            MessageGuess(userID + email, "wrong fields: user id and e-mail were signed without a separator"),
            MessageGuess(userID + "\n" + email, "wrong fields: user id, line feed, e-mail were signed"),
            MessageGuess(email + userID, "wrong field order: the e-mail was put before the user id"),
            MessageGuess(email + "\n" + userID, "wrong field order: the e-mail was put before the user id"),
            MessageGuess(userID, "wrong fields: the user id alone was signed"),
            MessageGuess(email, "wrong fields: the e-mail alone was signed"),
        ]
        let separators = [" ", ":", ",", ";", "|", "-", "_", ".", "/", "\t", "\r\n"]
        return guesses
            + separators.map {
                MessageGuess(userID + $0 + email, "wrong separator between user id and e-mail: \($0.debugDescription)")
            }
    }
}

/// Ways to write a text with other capitals.
private enum LetterCase {
    /// Each letter either way doubles what is tried.
    private static let mostLetters = 10

    /// As people write names, and of a short text every way.
    static func all(_ text: String) -> [String?] {
        let letters = text.count { $0.lowercased() != $0.uppercased() }
        guard letters <= mostLetters else { return usual(text) }
        var all = [""]
        for letter in text {
            let forms = Set([String(letter), letter.lowercased(), letter.uppercased()]).sorted()
            all = forms.flatMap { form in all.map { start in start + form } }
        }
        return all
    }

    static func usual(_ text: String) -> [String?] {
        let domain = text.drop { $0 != "@" }
        let words = capitalized(text.prefix { $0 != "@" }, eachWord: true) + domain
        return [text, text.lowercased(), text.uppercased(), words, capitalized(text, eachWord: false)]
    }

    private static func capitalized(_ text: some StringProtocol, eachWord: Bool) -> String {
        var isInside = false
        return text.map { letter in
            defer { isInside = letter.isLetter || isInside && !eachWord }
            return isInside ? letter.lowercased() : letter.uppercased()
        }.joined()
    }
}

/// A secret that a backend may have signed with.
struct KeyGuess {
    var id: KeyID
    var secret: SymmetricKey
    /// `nil` for a live key of the app, used as it is.
    var mistake: String?

    static func all(_ app: AppSettings, _ others: [AppSettings], now: Timestamp) -> [KeyGuess] {
        let own = app.verification.keys
        let live = own.filter { $0.isLive(at: now) }.map { KeyGuess(id: $0.id, secret: $0.secret) }
        let retired = own.filter { !$0.isLive(at: now) }.map {
            KeyGuess(
                id: $0.id, secret: $0.secret,
                mistake: "retired key: \($0.id) ended at \($0.retireAt?.rfc3339 ?? "an unknown time")")
        }
        let foreign = others.filter { $0.id != app.id }.flatMap { other in
            other.verification.keys.map {
                KeyGuess(id: $0.id, secret: $0.secret, mistake: "another app's key: \($0.id) of app \(other.id)")
            }
        }
        let jwt = app.verification.identityTokenSecrets.map {
            KeyGuess(
                id: $0.shownID ?? "identityTokenSecret", secret: $0.secret,
                mistake: "signed with an identityTokenSecret, which is for JWTs only")
        }
        return live + retired + jwt + own.flatMap(misread) + foreign
    }

    /// The key's text taken for something that has to be decoded, or with too much around it.
    private static func misread(_ key: VerificationSettings.Key) -> [KeyGuess] {
        let text = key.secret.withUnsafeBytes { Array($0) }
        let unpadded = text.prefix { $0 != UInt8(ascii: "=") }
        let readings: [([UInt8]?, String)] = [
            ([UInt8](hex: String(decoding: text, as: UTF8.self)), "signed with the hex-decoded secret"),
            (Base64.bytes(unpadded, .either), "signed with the base64-decoded secret"),
            (text + [UInt8(ascii: "\n")], "the secret had a line feed at its end"),
            (Array(Data(text).base64EncodedString().utf8), "signed with the base64-encoded secret"),
            (Array(SHA256.hash(data: text)), "signed with the SHA-256 of the secret"),
        ]
        return readings.compactMap { bytes, what in
            bytes.map {
                KeyGuess(
                    id: key.id, secret: SymmetricKey(data: $0),
                    mistake: "\(what) (key \(key.id)); the secret's text itself is the key")
            }
        }
    }
}

/// A function that a backend may have used. All but the first are mistakes; they are computed only to name them.
struct FunctionGuess: Sendable {
    var mistake: String?
    var compute: @Sendable ([UInt8], SymmetricKey) -> [UInt8]

    static let all = [
        FunctionGuess { Array(HMAC<SHA256>.authenticationCode(for: $0, using: $1)) },
        FunctionGuess(mistake: "wrong function: HMAC-SHA512; use HMAC-SHA256") {
            Array(HMAC<SHA512>.authenticationCode(for: $0, using: $1))
        },
        FunctionGuess(mistake: "wrong function: HMAC-SHA1; use HMAC-SHA256") {
            Array(HMAC<Insecure.SHA1>.authenticationCode(for: $0, using: $1))
        },
        FunctionGuess(mistake: "wrong function: secret and text were exchanged") {
            Array(HMAC<SHA256>.authenticationCode(for: bytes(of: $1), using: SymmetricKey(data: $0)))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 of secret and text; use HMAC-SHA256") {
            Array(SHA256.hash(data: bytes(of: $1) + $0))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 of text and secret; use HMAC-SHA256") {
            Array(SHA256.hash(data: $0 + bytes(of: $1)))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 without the secret; use HMAC-SHA256") { text, _ in
            Array(SHA256.hash(data: text))
        },
    ]

    /// V9.
    private static func bytes(of key: SymmetricKey) -> [UInt8] { key.withUnsafeBytes { Array($0) } }
}
