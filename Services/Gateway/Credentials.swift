// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime

/// Who sent a request, after the credential checked out.
struct Caller: Sendable {
    var app: AppSettings
    var principal: Principal

    /// What services are told, under the gateway's key, about whom the command is from.
    var authType: String {
        switch principal.kind {
        case .user: "app_user"
        case .install: "app_install"
        case .expiredInstall: "app_install_expired"
        case .apiKey, .service: "api_key"
        }
    }

    /// Whether what people are reached and called by is masked for the caller.
    var isMasked: Bool {
        guard case .apiKey(let id) = principal.kind else { return false }
        return app.keys[id]?.isMasked ?? false
    }

    /// Whether new tokens are what is asked for, whatever else is known already (U75).
    var needsTokens: Bool {
        if case .expiredInstall = principal.kind { true } else { false }
    }

    var authID: String {
        switch principal.kind {
        case .apiKey(let id): id.text
        case .user(let id): id.text
        case .install(let creation), .expiredInstall(let creation): creation
        case .service: ""
        }
    }
}

/// What a request shows, as far as it can be checked before its body is there.
enum Credential: Sendable {
    /// A secret or a token, which checked out.
    case held(Caller)
    /// A key's id, which everybody knows who reads the page.
    case shown(Caller)
    /// A signature over the body too, still to be checked.
    case signature(RequestSignature)

    /// Whom it names, proved or not.
    var caller: Caller? {
        switch self {
        case .held(let caller), .shown(let caller): caller
        case .signature(let signature): signature.signer?.caller
        }
    }
}

/// The identity vendor's signature (F23), with the key that it names.
struct RequestSignature: Sendable {
    /// Whoever may have made it.
    struct Signer: Sendable {
        var caller: Caller
        var key: APIKey
    }

    var code: [UInt8]
    /// The `Date` text as received.
    var date: String
    /// `nil` when there is no such key. That is found out like a wrong signature, with as much work, or the ids of keys
    /// could be told from others.
    var signer: Signer?

    /// Over the date, the path without a CNAME prefix and the body before compression. Android signs the query too.
    func isValid(_ request: APIRequest) -> Bool {
        let path = Route.signedPath(request.path)
        let paths = [path] + (request.query.map { ["\(path)?\($0)"] } ?? [])
        let secret = signer?.key.secret ?? Self.nobodys
        return paths.contains { path in
            let signed = Array("\(request.method)\n\(date)\n\(path)".utf8) + request.body
            return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: secret)
        }
    }

    private static let nobodys = SymmetricKey(size: .bits256)
}

/// Checks the credentials of requests. Pure; one per request.
///
/// A caller learns that a key is expired or revoked only after showing that it holds the key.
struct Credentials: Sendable {
    var apps: AppDirectory
    /// Checks user and install tokens. `nil` without keys: then none checks out.
    var secrets: DerivedSecrets?
    var now: Timestamp

    // MARK: Bearer API keys and tokens

    /// An API key, the token of a user of the app, or that of an install.
    /// - Parameter inGrace: also a token that expired not long ago (U75).
    func device(_ request: APIRequest, inGrace: Bool = false) throws(APIFailure) -> Credential {
        guard let token = Self.credential("bearer", of: request), Self.isToken(token) else {
            return try bearer(request)
        }
        guard let secrets else { throw Self.refused }
        if InstallToken.isMeant(by: token) {
            let install = InstallToken.verified(token, apps: apps, secrets: secrets, now: now, inGrace: inGrace)
            guard let install else { throw Self.refused }
            let isExpired = install.isExpired(now: now)
            return try held(isExpired ? .expiredInstall(install.creation) : .install(install.creation), install.app)
        }
        guard let user = UserToken.verified(token, apps: apps, secrets: secrets, now: now, inGrace: inGrace)
        else { throw Self.refused }
        return try held(user.isExpired(now: now) ? .expiredInstall(user.creation) : .user(user.userID), user.app)
    }

    private func held(_ kind: Principal.Kind, _ id: AppID) throws(APIFailure) -> Credential {
        guard let app = apps[id] else { throw Self.refused }
        return .held(Caller(app: app, principal: Principal(kind: kind, scopes: [.sdk])))
    }

    /// `Authorization: Bearer <key id>.<secret>`.
    func bearer(_ request: APIRequest) throws(APIFailure) -> Credential {
        guard let token = Self.credential("bearer", of: request) else {
            throw .unauthenticated("Send an API key: Authorization: Bearer <key id>.<secret>.")
        }
        guard !Self.isToken(token) else { throw APIFailure(Rejection(.userTokenNotAllowed)) }
        guard let dot = token.firstIndex(of: ".") else { throw Self.unknown }
        return try check(String(token[..<dot]), secret: String(token[token.index(after: dot)...]))
    }

    /// An API key with its secret, in either of two ways.
    func backend(_ request: APIRequest) throws(APIFailure) -> Credential {
        guard let (id, secret) = try Self.pair(request) else { return try bearer(request) }
        return try check(id, secret: secret)
    }

    // MARK: The identity vendor's three ways (F22)

    /// - Parameters:
    ///   - operation: what the call is, for keys that are shown alone.
    ///   - pathKey: the API key in an alias request's path, which then needs no `x-mp-key`.
    func identity(
        _ request: APIRequest, _ operation: GatewaySettings.Operation, pathKey: String? = nil
    ) throws(APIFailure) -> Credential {
        let headerKey = request.header("x-mp-key")
        if let pathKey, let headerKey, pathKey != headerKey { throw Self.unknown }
        if let (id, secret) = try Self.pair(request) {
            guard (pathKey ?? headerKey ?? id) == id else { throw Self.unknown }
            return try check(id, secret: secret)
        }
        guard let id = pathKey ?? headerKey else {
            throw .unauthenticated("Send x-mp-key with x-mp-signature, or Basic authentication.")
        }
        let signer = apps.key(KeyID(id)).map { app, key in
            RequestSignature.Signer(caller: Self.caller(app, key), key: key)
        }
        if let signature = request.header("x-mp-signature") {
            guard let code = Self.bytes(hex: signature), let date = request.header("Date") else { throw Self.unknown }
            return .signature(RequestSignature(code: code, date: date, signer: signer))
        }
        // Named alone it is no guess, whatever else the request shows: counted, it would tell which ids there are.
        guard let (caller, key) = signer.map({ ($0.caller, $0.key) }) else { throw Self.refused }
        guard caller.app.gateway.keyOnly.contains(operation) else {
            throw .unauthenticated("The app does not accept a key without its secret for \(operation.rawValue).")
        }
        // Its id stands in logs and pages: shown alone it would name anybody.
        guard !key.scopes.contains(.identityVouch) else {
            throw .unauthenticated(
                "A key with the scope \(Scope.identityVouch.rawValue) is not accepted without its secret.")
        }
        try checkUsable(key)
        return .shown(caller)
    }

    /// The rest of the check, when the body is there.
    func confirm(_ credential: Credential, _ request: APIRequest) throws(APIFailure) -> Caller {
        switch credential {
        case .held(let caller), .shown(let caller): return caller
        case .signature(let signature):
            guard signature.isValid(request), let signer = signature.signer else { throw Self.unknown }
            try checkUsable(signer.key)
            return signer.caller
        }
    }

    // MARK: What a request says about itself

    /// The id of the key that a request names, whether or not it holds it.
    static func namedKey(_ request: APIRequest, _ route: Route) -> String? {
        if let token = credential("bearer", of: request) {
            return isToken(token) ? nil : token.firstIndex(of: ".").map { String(token[..<$0]) }
        }
        if let (id, _) = try? pair(request) { return id }
        return route.apiKey ?? request.header("x-mp-key")
    }

    /// Whether a request shows something that could be guessed.
    static func showsSecret(_ request: APIRequest) -> Bool {
        request.header("Authorization") != nil || request.header("x-mp-signature") != nil
    }

    // MARK: Parts

    static let refused = APIFailure.unauthenticated("The credential does not check out.")

    /// The same words, but it counts: a key's secret can be guessed, a token cannot.
    static let unknown = {
        var failure = refused
        failure.isGuess = true
        return failure
    }()

    private func check(_ keyID: String, secret: String) throws(APIFailure) -> Credential {
        // SymmetricKey compares in constant time.
        guard let (app, key) = apps.key(KeyID(keyID)), key.secret == SymmetricKey(data: Array(secret.utf8)) else {
            throw Self.unknown
        }
        try checkUsable(key)
        return .held(Self.caller(app, key))
    }

    private static func caller(_ app: AppSettings, _ key: APIKey) -> Caller {
        Caller(app: app, principal: Principal(kind: .apiKey(key.id), scopes: key.scopes))
    }

    private func checkUsable(_ key: APIKey) throws(APIFailure) {
        if key.isRevoked { throw .unauthenticated("The API key is revoked.") }
        if let expires = key.expires, expires <= now { throw .unauthenticated("The API key has expired.") }
    }

    /// What Basic authentication shows.
    private static func pair(_ request: APIRequest) throws(APIFailure) -> (id: String, secret: String)? {
        guard let encoded = credential("basic", of: request) else { return nil }
        guard let text = Data(base64Encoded: encoded).flatMap({ String(validating: $0, as: UTF8.self) }),
            let colon = text.firstIndex(of: ":")
        else { throw unknown }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }

    /// What follows the scheme's name in `Authorization`.
    private static func credential(_ scheme: String, of request: APIRequest) -> String? {
        guard let header = request.header("Authorization") else { return nil }
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == scheme else { return nil }
        return parts[1].trimmingCharacters(in: .whitespaces)
    }

    /// A JWT: three parts of which the first is a JSON object in base64. Whether it is valid makes no difference.
    private static func isToken(_ token: String) -> Bool {
        token.hasPrefix("eyJ") && token.split(separator: ".", omittingEmptySubsequences: false).count == 3
    }

    /// 64 hex digits.
    private static func bytes(hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count == 2 * SHA256.byteCount else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = hexValue(digits[index]), let low = hexValue(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        case 0x41...0x46: digit - 0x41 + 10
        default: nil
        }
    }
}
