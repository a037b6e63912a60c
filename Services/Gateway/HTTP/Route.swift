// SPDX-License-Identifier: Apache-2.0

import Contracts

/// What is asked for: one case for each endpoint.
enum Route: Sendable, Equatable {
    // The linking vendor's server-to-server calls
    case link(installID: String)
    case authCode
    case eraseUser(userID: String)
    // Our own calls for devices
    case createUser
    case readInstall(installID: String)
    case linkInstall(installID: String)
    case confirmLink(installID: String)
    case resetInstall(installID: String)
    // The identity vendor's calls
    case sync(SyncCall)
    case modify(mpid: String)
    case alias(apiKey: String)
    /// Event batches of its web SDK: accepted and thrown away.
    case events(apiKey: String)
    // Our own calls for verification
    case verification(VerificationCall)
    case verificationSession(deviceID: String)
    case openAPI

    enum SyncCall: String, Sendable { case identify, login, logout, search }

    enum VerificationCall: String, Sendable {
        case login
        case loginIdentity = "login-identity"
        case logout, check
    }

    var method: String {
        switch self {
        case .readInstall, .verificationSession, .openAPI: "GET"
        case .eraseUser: "DELETE"
        default: "POST"
        }
    }

    /// What the caller's API key must allow. The service that decides the command checks it too.
    var scope: Scope {
        switch self {
        case .link, .authCode: .userLink
        case .eraseUser: .userDelete
        case .sync, .modify, .alias: .identitySync
        case .verification(.check), .verificationSession: .verificationCheck
        default: .sdk
        }
    }

    /// How errors are written.
    var surface: Surface {
        switch self {
        case .link, .authCode, .eraseUser: .linking
        case .sync, .modify: .sync
        case .alias: .alias
        default: .own
        }
    }

    /// The endpoint with its parameters' names instead of their values: for logs and metrics, which hold no ids.
    var template: String {
        switch self {
        case .link: "/v2/users/{install_id}/link"
        case .authCode: "/users/auth-code"
        case .eraseUser: "/users/{user_id}"
        case .createUser: "/sdk/v1/users"
        case .readInstall: "/sdk/v1/installs/{install_id}"
        case .linkInstall: "/sdk/v1/installs/{install_id}/link"
        case .confirmLink: "/sdk/v1/installs/{install_id}/confirm-link"
        case .resetInstall: "/sdk/v1/installs/{install_id}/reset"
        case .sync(let call): "/v1/\(call.rawValue)"
        case .modify: "/v1/{mpid}/modify"
        case .alias: "/v1/identity/{api_key}/alias"
        case .events: "events"
        case .verification(let call): "/v1/verification/\(call.rawValue)"
        case .verificationSession: "/v1/verification/sessions/{device_id}"
        case .openAPI: "/openapi.json"
        }
    }

    /// Whether what was begun is done, however long it takes: then nobody has to repeat it.
    var goesOn: Bool {
        if case .eraseUser = self { true } else { false }
    }

    /// Whether an API key opens it. The key of an SDK is in every copy of the app: an install is opened by its own tokens.
    var opensByKey: Bool {
        switch self {
        case .readInstall, .linkInstall, .confirmLink, .resetInstall: false
        default: true
        }
    }

    /// Whether anybody who has the app, or reads its page, can send it: then each address gets its share.
    var isForDevices: Bool {
        switch self {
        case .createUser, .readInstall, .linkInstall, .confirmLink, .resetInstall, .events: true
        case .verification(let call): call != .check
        default: false
        }
    }

    /// Whether clients with a domain of their own may put one of the vendor's prefixes in front.
    var takesPrefix: Bool {
        switch self {
        case .sync, .modify, .alias, .events: true
        default: false
        }
    }

    /// Whether browsers on other origins may call it. Backends' calls carry secrets that have no place in a browser.
    var isForBrowsers: Bool {
        switch self {
        case .link, .authCode, .eraseUser, .verification(.check), .verificationSession: false
        default: true
        }
    }
}

enum Surface: Sendable {
    case linking, sync, alias, own
}
