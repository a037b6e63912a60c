// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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

    /// - Parameter path: percent-encoded.
    /// - Returns: the endpoints with this path, one for each method; empty when there are none.
    static func at(_ path: String) -> [Route] {
        let parts = Self.signedPath(path).split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { String($0) }
        let decoded = parts.compactMap(\.removingPercentEncoding)
        guard decoded.count == parts.count, decoded.allSatisfy({ !$0.isEmpty }) else { return [] }
        switch decoded.first {
        case "v1": return [identityRoute(Array(decoded.dropFirst()))].compactMap { $0 }
        case "v2": return [secondVersion(Array(decoded.dropFirst()))].compactMap { $0 }
        case "v3": return isWebEvents(Array(decoded.dropFirst())) ? [.events] : []
        case "users": return users(Array(decoded.dropFirst()), isPlain: decoded == parts)
        case "sdk": return device(Array(decoded.dropFirst()))
        case "openapi.json": return decoded.count == 1 ? [.openAPI] : []
        default: return []
        }
    }

    /// - Parameter isPlain: whether nothing was percent-encoded; no user id has to be.
    private static func users(_ parts: [String], isPlain: Bool) -> [Route] {
        if parts == ["auth-code"] { return [.authCode] }
        return parts.count == 1 && isPlain ? [.eraseUser(userID: parts[0])] : []
    }

    private static func identityRoute(_ parts: [String]) -> Route? {
        switch parts.count {
        case 1: return SyncCall(rawValue: parts[0]).map(Route.sync)
        case 2 where parts[0] == "verification":
            return VerificationCall(rawValue: parts[1]).map(Route.verification)
        case 2 where parts[1] == "modify": return .modify(mpid: parts[0])
        case 3 where parts[0] == "identity" && (parts[2] == "alias" || parts[2] == "Alias"):
            return .alias(apiKey: parts[1])
        default: return isWebEvents(parts) ? .events : nil
        }
    }

    private static func secondVersion(_ parts: [String]) -> Route? {
        if parts.count == 3, parts[0] == "users", parts[2] == "link" { return .link(installID: parts[1]) }
        return isWebEvents(parts) ? .events : nil
    }

    /// `JS/{api key}/events`, below any version.
    private static func isWebEvents(_ parts: [String]) -> Bool {
        parts.count == 3 && parts[0] == "JS" && ["events", "forwarding"].contains(parts[2].lowercased())
    }

    private static func device(_ parts: [String]) -> [Route] {
        guard parts.first == "v1" else { return [] }
        if parts == ["v1", "users"] { return [.createUser] }
        guard parts.count >= 3, parts[1] == "installs" else { return [] }
        let installID = parts[2]
        switch (parts.count, parts.count == 4 ? parts[3] : "") {
        case (3, _): return [.readInstall(installID: installID)]
        case (4, "link"): return [.linkInstall(installID: installID)]
        case (4, "confirm-link"): return [.confirmLink(installID: installID)]
        case (4, "reset"): return [.resetInstall(installID: installID)]
        default: return []
        }
    }
}
