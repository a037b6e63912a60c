// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation

/// Logins that an app's backend vouches for, and checks of such tokens. Mode `enforce`, two live keys, of which each
/// makes half of the tokens.
enum VerificationWorkload {
    private static let secrets = ["bench-verification-secret-1-32-bytes", "bench-verification-secret-2-32-bytes"]
    static let keys = secrets.map { SymmetricKey(data: Array($0.utf8)) }

    static let settings =
        [
            "sync: {strategy: userIdThenEmail}",
            "verification:", "  mode: enforce", "  signedFields: vendor", "  keys:",
        ] + secrets.enumerated().map { "    - {id: k\($0 + 1), secret: \($1)}" }

    static func checks(_ count: Int, _ factory: CommandFactory) throws -> Workload {
        Workload(
            "verification.check",
            try (0..<count).map { number in
                let person = Person(number)
                return try factory.record(
                    VerificationCheck(
                        userId: person.userID, userEmail: person.email, userAuthToken: token(of: person, number)),
                    id: CommandFactory.id(number))
            })
    }

    /// Every person logs in on a device of their own.
    static func logins(_ count: Int, _ factory: CommandFactory) throws -> Workload {
        Workload(
            "verification.login",
            try (0..<count).map { number in
                let person = Person(number)
                return try factory.record(
                    VerificationLogin(
                        deviceId: SyncWorkload.deviceID(number), userId: person.userID, userEmail: person.email,
                        userName: "Customer \(number)", userAuthToken: token(of: person, number)),
                    id: CommandFactory.id(number))
            })
    }

    struct Person {
        let userID: String
        let email: String

        init(_ number: Int) {
            userID = UserWorkload.externalID(number).text
            email = "\(userID)@shop.example"
        }

        /// What the backend signs.
        var signed: [UInt8] { Array((userID + email).utf8) }
    }

    private static func token(of person: Person, _ number: Int) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: person.signed, using: keys[number % keys.count])
        return Data(code).base64EncodedString()
    }
}
