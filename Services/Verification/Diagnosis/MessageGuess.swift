// SPDX-License-Identifier: Apache-2.0

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
        var guesses = [
            MessageGuess(text + "\n", "a line feed at the end was signed too (echo without -n?)"),
            MessageGuess(text.lowercased(), "e-mail case: the lower-cased text was signed; sign it as it is sent"),
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
