// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Runtime
import Verification

struct VerifyTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-token",
        abstract: "Says whether a token would pass for these identifiers, and why not.",
        discussion: """
            For operators: it reads the secrets of the apps file. What it says about a token that does not pass is not \
            for outsiders. Exit status: 0 passes, 3 does not, 64 usage.
            """)

    @OptionGroup var login: LoginOptions

    @Argument(help: "The user authentication token, or an identity token (JWT).")
    var token: String

    private static let refused = ExitCode(3)

    func run() throws {
        let app = try login.app()
        if token.split(separator: ".", omittingEmptySubsequences: false).count == 3 { return try checkIdentity(app) }
        let settings = app.verification
        guard case .user(let identifiers) = login.claimant(settings) else {
            throw ValidationError("give a valid --user-id or --user-email; anonymous users need no token")
        }
        let isPrivate = login.hasFullPrivacy(settings)
        switch AuthToken.verify(token, of: identifiers, settings, fullPrivacy: isPrivate, now: .now) {
        case .valid(let keyID): print("passes (key \(keyID))")
        case .notProvided: try refuse(.authTokenNotProvided, ["no token was given"])
        case .invalid:
            let diagnosis = TokenDiagnosis(app: app, now: .now, otherApps: try login.apps())
            try refuse(
                .invalidAuthToken,
                diagnosis.explain(token: token, userID: login.userId, email: login.userEmail, fullPrivacy: isPrivate))
        }
    }

    private func checkIdentity(_ app: AppSettings) throws {
        let secrets = app.verification.identityTokenSecrets
        guard !secrets.isEmpty else {
            return try refuse(.identityFeatureNotEnabled, ["app \(app.id) has no identityTokenSecrets"])
        }
        var keyID: String?
        do throws(Rejection) {
            let identity = try IdentityToken(reading: token)
            keyID = try identity.verify(secrets: secrets, now: .now).shownID
            _ = try identity.claimant(fullPrivacy: login.hasFullPrivacy(app.verification))
        } catch {
            return try refuse(error.reason, [error.message])
        }
        print("passes\(keyID.map { " (key \($0))" } ?? "")")
    }

    private func refuse(_ reason: ReasonCode, _ lines: [String]) throws {
        print("does not pass: \(reason.rawValue)")
        lines.forEach { print("  \($0)") }
        throw Self.refused
    }
}
