// SPDX-License-Identifier: Apache-2.0

import Contracts

/// Takes secrets from the apps file: inline, or from the file that holds it. Remembers where each is used, for what can
/// only be seen when all are read (``SecretUse``).
final class SecretReader {
    private let readFile: (String) throws -> String
    private(set) var uses: [SecretUse] = []

    init(readFile: @escaping (String) throws -> String) { self.readFile = readFile }

    /// - Parameter place: names the app and the member in a problem's text.
    func read(
        inline: String?, file: String?, _ place: String, of app: String, for purpose: SecretUse.Purpose
    ) throws(AppsFile.Problem) -> String {
        let secret: String
        switch (inline, file) {
        case (let inline?, nil): secret = inline
        case (nil, let path?):
            do {
                secret = try readFile(path).withoutFinalNewlines
            } catch {
                throw AppsFile.Problem("\(place): secretFile \(path) cannot be read")
            }
        default: throw AppsFile.Problem("\(place): give either secret or secretFile")
        }
        guard secret.utf8.count >= 8 else { throw AppsFile.Problem("\(place): the secret has less than 8 bytes") }
        uses.append(SecretUse(app: app, place: place, purpose: purpose, secret: Array(secret.utf8)))
        return secret
    }
}
