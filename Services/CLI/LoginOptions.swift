// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Runtime
import Verification

/// The app and the identifiers of a login.
struct LoginOptions: ParsableArguments {
    @Option(name: .customLong("app"), help: "The app.")
    var appID: String

    @Option(help: "The user id, as the device sends it.")
    var userId: String?

    @Option(help: "The e-mail, as the device sends it.")
    var userEmail: String?

    @Flag(help: "The login is made with full privacy: only the user id counts.")
    var fullPrivacy = false

    @OptionGroup var deployment: Deployment

    func apps() throws -> [AppSettings] {
        let directory = try deployment.appDirectory()
        return directory.ids.compactMap { directory[$0] }
    }

    func app() throws -> AppSettings {
        let directory = try deployment.appDirectory()
        guard let app = directory[appID] else {
            throw ValidationError(
                "\(deployment.appsPath) has no app \(appID); it has \(directory.ids.joined(separator: ", "))")
        }
        return app
    }

    func hasFullPrivacy(_ settings: VerificationSettings) -> Bool { fullPrivacy || settings.fullPrivacy }

    func claimant(_ settings: VerificationSettings) -> Claimant {
        Claimant(userID: userId, email: userEmail, fullPrivacy: hasFullPrivacy(settings), nobody: settings.nobody)
    }
}
