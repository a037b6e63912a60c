// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Observability
import Supervision
import Verification
import WireJSON

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Makes the token with which an app's backend vouches for a user.",
        discussion: "For trying things out. In production the backend makes it: see docs/verification.md.")

    @OptionGroup var login: LoginOptions

    @Option(help: "The verification key to sign with. Default: the app's newest live one, the last in the file.")
    var key: KeyID?

    @Flag(help: "Make an identity token (JWT), valid for 24 hours, instead of a user authentication token.")
    var identity = false

    @Flag(help: "Print one JSON line.")
    var json = false

    func run() throws {
        let app = try login.app()
        let settings = app.verification
        guard case .user(let identifiers) = login.claimant(settings) else { throw LoginOptions.nobody }
        if identity {
            let live = settings.identityTokenSecrets.filter { $0.isLive(at: .now) }
            guard let secret = live.last(where: { key == nil || $0.id == key }) else {
                throw login.noLiveKey("identityTokenSecret", key)
            }
            tell(IdentityToken.make(for: identifiers, secret: secret.secret, issuedAt: .now))
            return
        }
        guard let key = settings.liveKeys(at: .now).last(where: { key == nil || $0.id == key }) else {
            throw login.noLiveKey("verification key", key)
        }
        let token = AuthToken.make(
            for: identifiers, key: key, settings.signedFields, fullPrivacy: login.hasFullPrivacy(settings))
        guard let token else {
            throw Problem(
                .usage, "app \(app.id) signs \(settings.signedFields.rawValue), and an identifier is missing.",
                "Give both --user-id and --user-email.")
        }
        tell(token)
    }

    private func tell(_ token: String) { json ? say(json: ["token": .string(token)]) : say(token) }
}

struct VerifyTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-token",
        abstract: "Says whether a token would pass for these identifiers, and why not.",
        discussion: """
            For operators: it reads the secrets of the apps file. What it says about a token that does not pass is not \
            for outsiders. Exit status 3: it does not pass.
            """)

    @OptionGroup var login: LoginOptions

    @Argument(help: "The user authentication token, or an identity token (JWT).")
    var token: String

    @Flag(help: "Print one JSON line.")
    var json = false

    func run() throws {
        let app = try login.app()
        if token.split(separator: ".", omittingEmptySubsequences: false).count == 3 { return try checkIdentity(app) }
        let settings = app.verification
        guard case .user(let identifiers) = login.claimant(settings) else {
            if let problem = TokenDiagnosis.misshape(of: token) { return try refuse(.invalidAuthToken, [problem]) }
            throw LoginOptions.nobody
        }
        let isPrivate = login.hasFullPrivacy(settings)
        switch AuthToken.verify(token, of: identifiers, settings, fullPrivacy: isPrivate, now: .now) {
        case .valid(let keyID): pass(keyID)
        case .notProvided: try refuse(.authTokenNotProvided, ["no token was given"])
        case .invalid:
            let diagnosis = TokenDiagnosis(app: app, now: .now, otherApps: try login.apps())
            try refuse(
                .invalidAuthToken,
                diagnosis.explain(token: token, userID: login.userId, email: login.userEmail, fullPrivacy: isPrivate))
        }
    }

    private func checkIdentity(_ app: AppSettings) throws {
        guard !app.verification.identityTokenSecrets.isEmpty else {
            return try refuse(.identityFeatureNotEnabled, ["app \(app.id) has no identityTokenSecrets"])
        }
        var keyID: KeyID?
        do throws(Rejection) {
            let identity = try IdentityToken(reading: token)
            keyID = try identity.verify(app.verification, now: .now).shownID
            _ = try identity.claimant(fullPrivacy: login.hasFullPrivacy(app.verification))
        } catch {
            return try refuse(error.reason, [error.message])
        }
        pass(keyID)
    }

    private func pass(_ keyID: KeyID?) {
        if json {
            let line: JSONValue = ["passes": true, "key": keyID.map { .string($0.text) } ?? .null]
            say(String(decoding: line.serialized(), as: UTF8.self).harmless)
        } else {
            say("passes\(keyID.map { " (key \($0))" } ?? "")")
        }
    }

    private func refuse(_ reason: ReasonCode, _ lines: [String]) throws {
        if json {
            let line: JSONValue = [
                "passes": false, "reason": .string(reason.rawValue), "causes": .array(lines.map { .string($0) }),
            ]
            say(String(decoding: line.serialized(), as: UTF8.self).harmless)
        } else {
            say("does not pass: \(reason.rawValue)")
            lines.forEach { say("  \($0)") }
        }
        throw ExitCode(ExitStatus.refused.rawValue)
    }
}

/// The app and the identifiers of a login.
struct LoginOptions: ParsableArguments {
    @Option(name: .customLong("app"), help: "The app.")
    var appID: AppID

    @Option(help: "The user id, as the device sends it.")
    var userId: String?

    @Option(help: "The e-mail, as the device sends it.")
    var userEmail: String?

    @Flag(help: "The login is made with full privacy: only the user id counts.")
    var fullPrivacy = false

    @OptionGroup var appsFile: AppsOption

    func apps() throws -> [AppSettings] {
        let directory = try appsFile.directory()
        return directory.ids.compactMap { directory[$0] }
    }

    func app() throws -> AppSettings { try appsFile.app(appID) }

    func hasFullPrivacy(_ settings: VerificationSettings) -> Bool { fullPrivacy || settings.fullPrivacy }

    static let nobody = Problem(
        .usage, "a valid --user-id or --user-email is missing.", "Anonymous users need no token.")

    func noLiveKey(_ kind: String, _ id: KeyID?) -> Problem {
        guard let id else {
            return Problem(.setting, "app \(appID) has no live \(kind).", "Give it one in \(appsFile.path).")
        }
        return Problem(
            .usage, "app \(appID) has no live \(kind) \(id).", "\(appsFile.path) has those that there are.")
    }

    func claimant(_ settings: VerificationSettings) -> Claimant {
        Claimant(userID: userId, email: userEmail, fullPrivacy: hasFullPrivacy(settings), nobody: settings.nobody)
    }
}
