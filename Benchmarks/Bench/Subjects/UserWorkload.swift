// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Creations of users: a saga over two services and their topics.
enum UserWorkload {
    static let appSecret = "bench-app-secret-with-32-bytes-or-more"

    /// One creation for each external id, with an authentication code that was asked for before.
    static func creations(_ count: Int, _ factory: CommandFactory) throws -> Workload {
        let requests = try (0..<count).map { number in
            try factory.record(RequestAuthCode(externalId: externalID(number)), id: "code-\(number)")
        }
        return Workload("user.create with a code", preparation: requests, count: count) { results in
            try (0..<count).map { number in
                try factory.record(
                    creation(number, code: code(in: results["code-\(number)"])), id: CommandFactory.id(number))
            }
        }
    }

    static func externalID(_ number: Int) -> ExternalID { ExternalID("customer-" + CommandFactory.padded(number)) }
    static func installID(_ number: Int) -> InstallID {
        InstallID("install-0000-4000-8000-" + CommandFactory.padded(number))
    }

    /// - Parameter code: without one the app's secret is shown, and the user stays unlinked.
    static func creation(_ number: Int, code: String?) -> CreateUser {
        CreateUser(
            installId: installID(number),
            device: Device(kind: .phone, platform: "ios", model: "Phone 15", osVersion: "18.1"), sdkVersion: "6.1.0",
            appVersion: "2.0.1", authCode: code, appSecret: code == nil ? appSecret : nil,
            linking: code == nil ? Linking.none : nil)
    }

    static func code(in result: JSONValue?) throws -> String {
        guard case .object(let members)? = result, case .string(let code)? = members["authenticationCode"] else {
            throw BenchError("a request for a code was not answered with one")
        }
        return code
    }
}
