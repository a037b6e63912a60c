// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Testing

@testable import Apps

/// Each token has one spelling: who keeps tokens by their text, to count or to block them, is not evaded.
@Suite struct TokenSpellingTests {
    private let app = AppSettings(
        id: "demo", sdk: SDKSettings(tokenSecret: TokenSecret(String(repeating: "t", count: 32))))
    private let secrets = DerivedSecrets(DeploymentKeys(internalKeys: [SymmetricKey(size: .bits256)]))
    private let now = Timestamp(milliseconds: 1_800_000_000_000)

    enum Kind: CaseIterable { case user, install }

    /// Of several times, so that their digits differ, and of installs of one to three bytes, so that claims of every
    /// length are among them.
    private func tokens(_ kind: Kind) -> [String] {
        let key = UserToken.key(of: app, secrets: secrets)
        return (0..<24).map { number in
            let issued = Timestamp(milliseconds: now.milliseconds - 1000 * Int64(number))
            let install = InstallID(String(repeating: "i", count: 1 + number % 3))
            return switch kind {
            case .user:
                UserToken(
                    app: app.id, userID: "u1", installID: install, creation: "c1", issued: issued, lifetime: 60_000
                ).signed(with: key)
            case .install:
                InstallToken(app: app.id, installID: install, creation: "c1", issued: issued, lifetime: 60_000)
                    .signed(with: key)
            }
        }
    }

    private func isBelieved(_ text: String, _ kind: Kind) -> Bool {
        let apps = AppDirectory([app])
        return switch kind {
        case .user: UserToken.verified(text, apps: apps, secrets: secrets, now: now) != nil
        case .install: InstallToken.verified(text, apps: apps, secrets: secrets, now: now) != nil
        }
    }

    /// The signature's last digit has two bits that are of no byte.
    @Test(arguments: Kind.allCases) func noOtherDigitEndsAToken(_ kind: Kind) {
        for token in tokens(kind) {
            let endings = (UInt8(33)..<127).map { Character(UnicodeScalar($0)) }.filter {
                isBelieved(token.dropLast() + String($0), kind)
            }
            #expect(endings == token.suffix(1).map { $0 }, "\(token)")
        }
    }

    @Test(arguments: Kind.allCases) func nothingIsAddedToAToken(_ kind: Kind) {
        for token in tokens(kind) {
            for more in ["=", "==", "A", "AA", "AAA", "AAAA", ".", ".A", " ", "\n", "\0"] {
                #expect(!isBelieved(token + more, kind), "\(token)\(more)")
            }
            let parts = token.split(separator: ".")
            for place in parts.indices {
                for more in ["=", "==", "A", "\n"] {
                    var changed = parts
                    changed[place] += more
                    #expect(!isBelieved(changed.joined(separator: "."), kind), "\(changed)")
                }
            }
        }
    }

    /// Of the signature only: a change of what is signed is refused in any case.
    @Test(arguments: Kind.allCases) func noSignatureIsOfTheOtherAlphabet(_ kind: Kind) {
        var count = 0
        for token in tokens(kind) {
            var parts = token.split(separator: ".").map(String.init)
            let signature = parts.removeLast()
            for (digit, other) in [("-", "+"), ("_", "/")] where signature.contains(digit) {
                count += 1
                let changed = (parts + [signature.replacing(digit, with: other)]).joined(separator: ".")
                #expect(!isBelieved(changed, kind), "\(changed)")
            }
        }
        #expect(count > 10)
    }
}
