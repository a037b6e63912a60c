// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import WireJSON

@testable import Apps
@testable import Verification

/// Input: a token; or JSON, which then is what a token says.
enum TokensTarget {
    static func run(_ bytes: [UInt8]) throws {
        let text = bytes.text
        try authToken(text)
        let tokens = (FuzzWorld.apps, FuzzWorld.secrets, FuzzWorld.now)
        let user = UserToken.verified(text, apps: tokens.0, secrets: tokens.1, now: tokens.2)
        let install = InstallToken.verified(text, apps: tokens.0, secrets: tokens.1, now: tokens.2)
        try hold(user == nil || install == nil, "one token is of both kinds")
        if let identity = try? IdentityToken(reading: text) {
            _ = try? identity.claimant(fullPrivacy: false)
            _ = try? identity.claimant(fullPrivacy: true)
        }
        if let claims = try? JSONValue(parsing: bytes, limits: JSONLimits(maxDepth: 8)), claims.objectValue != nil {
            try signed(claims)
        }
    }

    private static func authToken(_ text: String) throws {
        let readings = TokenSpelling.readings(of: text)
        try hold(readings.count <= 64, "\(readings.count) readings of one token")
        guard let code = AuthToken.code(of: text) else { return }
        try hold(code.count == 32, "a code of \(code.count) bytes")
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        let base64 = Data(code).base64EncodedString()
        try hold(
            text.lowercased() == code.hex || standard == base64 || standard + "=" == base64,
            "\(text) is read as \(base64)")
    }

    /// A token that says this, rightly signed.
    private static func signed(_ claims: JSONValue) throws {
        guard let app = FuzzWorld.apps["support"], let secret = app.verification.identityTokenSecrets.first else {
            throw Broken("the app has no secret")
        }
        let identity = try IdentityToken(reading: HS256.sign(claims, key: secret.secret))
        do {
            _ = try identity.verify(app.verification, now: FuzzWorld.now)
            _ = try? identity.claimant(fullPrivacy: false)
        } catch {
            try hold(!error.message.isEmpty, "refused without a word")
        }
        let key = UserToken.key(of: app, secrets: FuzzWorld.secrets)
        let text = HS256.sign(claims, key: key)
        guard
            let user = UserToken.verified(
                text, apps: FuzzWorld.apps, secrets: FuzzWorld.secrets, now: FuzzWorld.now)
        else { return }
        let again = UserToken.verified(
            user.signed(with: key), apps: FuzzWorld.apps, secrets: FuzzWorld.secrets, now: FuzzWorld.now)
        try hold(again == user, "a user token says another thing when it is written again")
        let install = InstallToken.verified(
            text, apps: FuzzWorld.apps, secrets: FuzzWorld.secrets, now: FuzzWorld.now)
        try hold(install == nil, "a user token counts as an install's")
    }
}
