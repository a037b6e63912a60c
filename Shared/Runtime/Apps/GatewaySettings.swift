// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The section `gateway` of an app, for the HTTP gateway.
public struct GatewaySettings: Sendable, Hashable {
    /// Whether identity calls may show a key's id without its secret (facts/idsync.md 1.2 "Key only"). Anybody who
    /// reads the app's web page can then send them; off unless the app says otherwise.
    public var acceptsKeyOnly: Bool
    /// Seconds that an SDK may answer `identify` and `login` from its own cache (`X-MP-Max-Age`). `nil` sends no
    /// header, and the SDK asks every time.
    public var maxAgeSeconds: Int?

    public init(acceptsKeyOnly: Bool = false, maxAgeSeconds: Int? = nil) {
        self.acceptsKeyOnly = acceptsKeyOnly
        self.maxAgeSeconds = maxAgeSeconds
    }
}

extension GatewaySettings {
    /// The section's shape in the file.
    struct Section: Decodable {
        var keyOnly: Bool?
        var maxAgeSeconds: Int?

        private enum CodingKeys: String, CodingKey, CaseIterable { case keyOnly, maxAgeSeconds }

        init(from decoder: any Decoder) throws {
            try refuseUnknownMembers(decoder, CodingKeys.allCases.map(\.stringValue))
            let container = try decoder.container(keyedBy: CodingKeys.self)
            keyOnly = try container.decodeIfPresent(Bool.self, forKey: .keyOnly)
            maxAgeSeconds = try container.decodeIfPresent(Int.self, forKey: .maxAgeSeconds)
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(_ section: Section?, _ place: String) throws(AppsFile.Problem) -> GatewaySettings {
        guard let section else { return GatewaySettings() }
        if let age = section.maxAgeSeconds, !(0...604_800).contains(age) {
            throw AppsFile.Problem("\(place): maxAgeSeconds is not from 0 to 604800 (a week)")
        }
        return GatewaySettings(acceptsKeyOnly: section.keyOnly ?? false, maxAgeSeconds: section.maxAgeSeconds)
    }
}
