// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime
import Verification

/// Checking a login's token as the verification service does it, next to what the crypto library does with the same
/// bytes. One thread, per second.
struct TokenChecks {
    /// One HMAC-SHA256 of what the app's backend signs.
    let raw: Double
    /// The service's function: two live keys, both tried to the end.
    let checks: Double

    static func run() throws -> TokenChecks {
        let people = (0..<1000).map(VerificationWorkload.Person.init)
        let messages = people.map(\.signed)
        let key = VerificationWorkload.keys[0]
        let raw = rate(of: messages.count) {
            for message in messages { _ = HMAC<SHA256>.authenticationCode(for: message, using: key) }
        }
        let settings = VerificationSettings(
            mode: .enforce, signedFields: .vendor,
            keys: VerificationWorkload.keys.enumerated().map {
                VerificationSettings.Key(id: KeyID("k\($0 + 1)"), secret: $1)
            })
        let logins = try people.enumerated().map { number, person in
            let identifiers = Identifiers(userID: person.userID, email: person.email)
            guard
                let token = AuthToken.make(
                    for: identifiers, key: settings.keys[number % 2], .vendor, fullPrivacy: false)
            else { throw BenchError("no token can be made") }
            return (token, identifiers)
        }
        let now = Timestamp.now
        var passed = 0
        var tried = 0
        let checks = rate(of: logins.count) {
            for (token, identifiers) in logins {
                tried += 1
                if case .valid = AuthToken.verify(token, of: identifiers, settings, fullPrivacy: false, now: now) {
                    passed += 1
                }
            }
        }
        guard passed == tried else { throw BenchError("\(tried - passed) of \(tried) tokens did not pass") }
        return TokenChecks(raw: raw, checks: checks)
    }

    func tell(_ report: inout Report) {
        report.add("raw: one HMAC-SHA256 of what is signed", raw, "/s")
        report.add("the service's check, two live keys", checks, "/s")
        report.add("of the raw rate", checks / raw * 100, "%")
    }
}
