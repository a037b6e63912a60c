// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Runtime
import Verification

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Makes the token with which an app's backend vouches for a user.",
        discussion: "For trying things out. In production the backend makes it: see docs/verification.md.")

    @OptionGroup var login: LoginOptions

    @Option(help: "The verification key to sign with. Default: the app's newest live one, the last in the file.")
    var key: String?

    @Flag(help: "Make an identity token (JWT), valid for 24 hours, instead of a user authentication token.")
    var identity = false

    func run() throws {
        let app = try login.app()
        let settings = app.verification
        guard case .user(let identifiers) = login.claimant(settings) else {
            throw ValidationError("give a valid --user-id or --user-email; anonymous users need no token")
        }
        if identity {
            let live = settings.identityTokenSecrets.filter { $0.isLive(at: .now) }
            guard let secret = live.last(where: { key == nil || $0.id == key }) else {
                throw ValidationError("app \(app.id) has no live identityTokenSecret\(key.map { " " + $0 } ?? "")")
            }
            guard let token = IdentityToken.make(for: identifiers, secret: secret.secret, issuedAt: .now) else {
                throw ExitCode.failure
            }
            print(token)
            return
        }
        guard let key = settings.liveKeys(at: .now).last(where: { key == nil || $0.id == key }) else {
            throw ValidationError("app \(app.id) has no live verification key\(key.map { " " + $0 } ?? "")")
        }
        let token = AuthToken.make(
            for: identifiers, key: key, settings.signedFields, fullPrivacy: login.hasFullPrivacy(settings))
        guard let token else {
            throw ValidationError("app \(app.id) signs \(settings.signedFields.rawValue); an identifier is missing")
        }
        print(token)
    }
}
