// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Crypto
import Foundation
import JSONWebTokens
import Runtime

/// Who sent a request, after the credential checked out.
struct Caller: Sendable {
    var app: AppSettings
    var principal: Principal

    /// What services are told, under the gateway's key, about whom the command is from.
    var authType: String {
        if case .user = principal.kind { "app_user" } else { "api_key" }
    }

    var authID: String {
        switch principal.kind {
        case .apiKey(let id), .user(let id): id
        case .service: ""
        }
    }
}

/// Checks the credentials of requests. Pure; one per request.
///
/// A caller learns that a key is expired or revoked only after showing that it holds the key.
struct Credentials: Sendable {
    var apps: AppDirectory
    /// Checks user tokens. `nil` without keys: then none checks out.
    var secrets: DerivedSecrets?
    var now: Timestamp

    // MARK: Bearer API keys and user tokens

    /// An API key, or the token of a user of the app, who may then see to that user's own installs.
    func device(_ request: APIRequest) throws(APIFailure) -> Caller {
        guard let token = Self.credential("bearer", of: request), Self.isUserToken(token) else {
            return try bearer(request)
        }
        guard let secrets, let user = UserToken.verified(token, apps: apps, secrets: secrets, now: now),
            let app = apps[user.app]
        else { throw Self.unknown }
        return Caller(app: app, principal: Principal(kind: .user(user.userID), scopes: [.sdk]))
    }

    /// `Authorization: Bearer <key id>.<secret>`.
    func bearer(_ request: APIRequest) throws(APIFailure) -> Caller {
        guard let token = Self.credential("bearer", of: request) else {
            throw .unauthenticated("Send an API key: Authorization: Bearer <key id>.<secret>.")
        }
        guard !Self.isUserToken(token) else { throw APIFailure(Rejection(.userTokenNotAllowed)) }
        guard let dot = token.firstIndex(of: ".") else { throw Self.unknown }
        return try check(String(token[..<dot]), secret: String(token[token.index(after: dot)...]))
    }

    // MARK: The identity vendor's three ways (facts/idsync.md 1.2)

    /// - Parameter pathKey: the API key in an alias request's path, which then needs no `x-mp-key`.
    func identity(_ request: APIRequest, pathKey: String? = nil) throws(APIFailure) -> Caller {
        let headerKey = request.header("x-mp-key")
        if let pathKey, let headerKey, pathKey != headerKey { throw Self.unknown }
        if let encoded = Self.credential("basic", of: request) {
            guard let text = Data(base64Encoded: encoded).flatMap({ String(validating: $0, as: UTF8.self) }),
                let colon = text.firstIndex(of: ":")
            else { throw Self.unknown }
            let id = String(text[..<colon])
            guard (pathKey ?? headerKey ?? id) == id else { throw Self.unknown }
            return try check(id, secret: String(text[text.index(after: colon)...]))
        }
        guard let id = pathKey ?? headerKey else {
            throw .unauthenticated("Send x-mp-key with x-mp-signature, or Basic authentication.")
        }
        guard let (app, key) = apps.key(id) else { throw Self.unknown }
        if let signature = request.header("x-mp-signature") {
            guard let date = request.header("Date"), isValid(signature, of: request, date: date, key: key) else {
                throw Self.unknown
            }
        } else if !app.gateway.acceptsKeyOnly {
            throw Self.unknown
        }
        return try usable(key, of: app)
    }

    /// Over the `Date` text as received, the path without a CNAME prefix and the body before compression. Android
    /// signs the query too.
    private func isValid(_ signature: String, of request: APIRequest, date: String, key: APIKey) -> Bool {
        guard let code = Self.bytes(hex: signature) else { return false }
        let path = Route.signedPath(request.path)
        let paths = [path] + (request.query.map { ["\(path)?\($0)"] } ?? [])
        return paths.contains { path in
            let signed = Array("\(request.method)\n\(date)\n\(path)".utf8) + request.body
            return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: key.secret)
        }
    }

    // MARK: Parts

    private static let unknown = APIFailure.unauthenticated("The credential does not check out.")

    private func check(_ keyID: String, secret: String) throws(APIFailure) -> Caller {
        // SymmetricKey compares in constant time.
        guard let (app, key) = apps.key(keyID), key.secret == SymmetricKey(data: Array(secret.utf8)) else {
            throw Self.unknown
        }
        return try usable(key, of: app)
    }

    private func usable(_ key: APIKey, of app: AppSettings) throws(APIFailure) -> Caller {
        if key.isRevoked { throw .unauthenticated("The API key is revoked.") }
        if let expires = key.expires, expires <= now { throw .unauthenticated("The API key has expired.") }
        return Caller(app: app, principal: Principal(kind: .apiKey(key.id), scopes: key.scopes))
    }

    /// What follows the scheme's name in `Authorization`.
    private static func credential(_ scheme: String, of request: APIRequest) -> String? {
        guard let header = request.header("Authorization") else { return nil }
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == scheme else { return nil }
        return parts[1].trimmingCharacters(in: .whitespaces)
    }

    /// A JWT: three parts of which the first is a JSON object in base64. Whether it is valid makes no difference.
    private static func isUserToken(_ token: String) -> Bool {
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
