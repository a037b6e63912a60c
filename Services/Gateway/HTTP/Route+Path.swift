// SPDX-License-Identifier: Apache-2.0

import Foundation

extension Route {
    /// What clients with a domain of their own put in front (facts/idsync.md 1.1); not part of what they sign.
    private static let prefixes: Set<Substring> = ["identity", "webevents", "nativeevents"]

    /// The path without such a prefix.
    static func signedPath(_ path: String) -> String {
        guard path.hasPrefix("/") else { return path }
        let first = path.dropFirst().prefix { $0 != "/" }
        return prefixes.contains(first) ? String(path.dropFirst(first.count + 1)) : path
    }

    /// - Parameter path: percent-encoded. Only ids may be: what an endpoint is called has one spelling, so that rules of a
    ///   proxy about paths mean what we do.
    /// - Returns: the endpoints with this path, one for each method; empty when there are none.
    static func at(_ path: String) -> [Route] {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.first == "", parts.dropFirst().allSatisfy({ !$0.isEmpty }) else { return [] }
        let rest = Array(parts.dropFirst())
        guard let first = rest.first, prefixes.contains(first[...]) else { return unprefixed(rest) }
        return unprefixed(Array(rest.dropFirst())).filter(\.takesPrefix)
    }

    private static func unprefixed(_ parts: [String]) -> [Route] {
        switch parts.first {
        case "v1": [identityRoute(Array(parts.dropFirst()))].compactMap { $0 }
        case "v2": [secondVersion(Array(parts.dropFirst()))].compactMap { $0 }
        case "v3": [webEvents(Array(parts.dropFirst()))].compactMap { $0 }
        case "users": users(Array(parts.dropFirst()))
        case "sdk": device(Array(parts.dropFirst()))
        case "openapi.json": parts.count == 1 ? [.openAPI] : []
        default: []
        }
    }

    /// No user id has to be percent-encoded, so none is: `auth-code` has one spelling here too.
    private static func users(_ parts: [String]) -> [Route] {
        if parts == ["auth-code"] { return [.authCode] }
        return parts.count == 1 && !parts[0].contains("%") ? [.eraseUser(userID: parts[0])] : []
    }

    private static func identityRoute(_ parts: [String]) -> Route? {
        switch parts.count {
        case 1: SyncCall(rawValue: parts[0]).map(Route.sync)
        case 2 where parts[0] == "verification": VerificationCall(rawValue: parts[1]).map(Route.verification)
        case 2 where parts[1] == "modify": id(parts[0]).map { .modify(mpid: $0) }
        case 3 where parts[0] == "verification" && parts[1] == "sessions":
            id(parts[2]).map { .verificationSession(deviceID: $0) }
        case 3 where parts[0] == "identity" && (parts[2] == "alias" || parts[2] == "Alias"):
            id(parts[1]).map { .alias(apiKey: $0) }
        default: webEvents(parts)
        }
    }

    private static func secondVersion(_ parts: [String]) -> Route? {
        if parts.count == 3, parts[0] == "users", parts[2] == "link" {
            return id(parts[1]).map { .link(installID: $0) }
        }
        return webEvents(parts)
    }

    /// `JS/{api key}/events`, below any version.
    private static func webEvents(_ parts: [String]) -> Route? {
        guard parts.count == 3, parts[0] == "JS", ["events", "forwarding"].contains(parts[2].lowercased()) else {
            return nil
        }
        return id(parts[1]).map { .events(apiKey: $0) }
    }

    private static func device(_ parts: [String]) -> [Route] {
        guard parts.first == "v1" else { return [] }
        if parts == ["v1", "users"] { return [.createUser] }
        guard parts.count >= 3, parts[1] == "installs", let installID = id(parts[2]) else { return [] }
        switch (parts.count, parts.count == 4 ? parts[3] : "") {
        case (3, _): return [.readInstall(installID: installID)]
        case (4, "link"): return [.linkInstall(installID: installID)]
        case (4, "confirm-link"): return [.confirmLink(installID: installID)]
        case (4, "reset"): return [.resetInstall(installID: installID)]
        default: return []
        }
    }

    /// An id in a path.
    private static func id(_ part: String) -> String? {
        part.removingPercentEncoding.flatMap { $0.isEmpty ? nil : $0 }
    }
}
