// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Runtime

/// A secret that a backend may have signed with.
struct KeyGuess {
    var id: String
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
            (AuthToken.hexDecoded(text), "signed with the hex-decoded secret"),
            (AuthToken.base64Decoded(unpadded), "signed with the base64-decoded secret"),
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
