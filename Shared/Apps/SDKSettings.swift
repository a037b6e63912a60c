// SPDX-License-Identifier: Apache-2.0

import Contracts
public import WireJSON

/// The section `sdk` of an app, for the user service.
public struct SDKSettings: Sendable {
    /// What an app's SDK shows to create a user without an authentication code. Without one that way is closed.
    public var appSecret: AppSecret?
    /// Signs the app's user tokens; without one a key is derived from the deployment's internal key.
    public var tokenSecret: TokenSecret?
    /// How long an authentication code can be redeemed, in milliseconds.
    public var authCodeLifetime: Int64
    /// How many authentication codes of one external id may wait to be redeemed.
    public var maxOutstandingCodes: Int
    /// How long an app's linker may take, in milliseconds.
    public var linkerTimeout: Int64
    /// How long a user token is valid, in milliseconds.
    public var tokenLifetime: Int64
    /// How long an expired token may still read and reset the install whose present creation it names, in milliseconds;
    /// 0: not at all (U75).
    public var tokenGrace: Int64
    /// Given to every SDK with its user: a JSON object of any members.
    public var configuration: JSONValue
    /// Whether commands that an API key signs itself, over Kafka, read and change installs: for apps whose keys with the
    /// scope `sdk` are in backends only. The gateway asks for a token of the install in any case.
    public var keysOpenInstalls: Bool

    public init(
        appSecret: AppSecret? = nil, tokenSecret: TokenSecret? = nil, authCodeLifetime: Int64 = 600_000,
        maxOutstandingCodes: Int = 10, linkerTimeout: Int64 = 600_000, tokenLifetime: Int64 = 7 * 86_400_000,
        tokenGrace: Int64 = 400 * 86_400_000, configuration: JSONValue = .object(JSONObject()),
        keysOpenInstalls: Bool = false
    ) {
        self.appSecret = appSecret
        self.tokenSecret = tokenSecret
        self.authCodeLifetime = authCodeLifetime
        self.maxOutstandingCodes = maxOutstandingCodes
        self.linkerTimeout = linkerTimeout
        self.tokenLifetime = tokenLifetime
        self.tokenGrace = tokenGrace
        self.configuration = configuration
        self.keysOpenInstalls = keysOpenInstalls
    }
}

extension SDKSettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        var appSecret: String?
        var appSecretFile: String?
        var tokenSecret: String?
        var tokenSecretFile: String?
        var authCodeLifetimeSeconds: Int64?
        var maxOutstandingCodes: Int?
        var linkerTimeoutSeconds: Int64?
        var tokenLifetimeSeconds: Int64?
        var tokenGraceSeconds: Int64?
        var configuration: YAMLValue?
        var keysOpenInstalls: Bool?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case appSecret, appSecretFile, tokenSecret, tokenSecretFile, authCodeLifetimeSeconds, maxOutstandingCodes,
                linkerTimeoutSeconds, tokenLifetimeSeconds, tokenGraceSeconds, configuration, keysOpenInstalls
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(
        _ section: Strict<Section>?, _ place: AppsFile.Place, of app: AppID, _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> SDKSettings {
        var settings = SDKSettings()
        guard let section else { return settings }
        if section.appSecret != nil || section.appSecretFile != nil {
            let secret = try secrets.read(
                inline: section.appSecret, file: section.appSecretFile, place, "appSecret", of: app, for: .appSecret)
            settings.appSecret = AppSecret(secret)
        }
        if section.tokenSecret != nil || section.tokenSecretFile != nil {
            let secret = try secrets.read(
                inline: section.tokenSecret, file: section.tokenSecretFile, place, "tokenSecret", of: app,
                for: .tokenSecret)
            guard secret.utf8.count >= 32 else {
                let way = place[section.tokenSecret == nil ? "tokenSecretFile" : "tokenSecret"]
                throw AppsFile.Problem("\(place), tokenSecret: the secret has fewer than 32 bytes", at: way)
            }
            settings.tokenSecret = TokenSecret(secret)
        }
        func milliseconds(
            _ seconds: Int64?, _ member: String, _ limit: Int64, least: Int64 = 1, into value: inout Int64
        ) throws(AppsFile.Problem) {
            guard let seconds else { return }
            guard (least...limit).contains(seconds) else {
                throw AppsFile.Problem(
                    "\(place), \(member): is not between \(least) and \(limit)", at: place[member])
            }
            value = seconds * 1000
        }
        try milliseconds(
            section.authCodeLifetimeSeconds, "authCodeLifetimeSeconds", 86_400, into: &settings.authCodeLifetime)
        try milliseconds(section.linkerTimeoutSeconds, "linkerTimeoutSeconds", 86_400, into: &settings.linkerTimeout)
        try milliseconds(
            section.tokenLifetimeSeconds, "tokenLifetimeSeconds", 365 * 86_400, into: &settings.tokenLifetime)
        try milliseconds(
            section.tokenGraceSeconds, "tokenGraceSeconds", 3650 * 86_400, least: 0, into: &settings.tokenGrace)
        if let count = section.maxOutstandingCodes {
            guard (1...1000).contains(count) else {
                throw AppsFile.Problem(
                    "\(place), maxOutstandingCodes: is not between 1 and 1000", at: place["maxOutstandingCodes"])
            }
            settings.maxOutstandingCodes = count
        }
        if let configuration = section.configuration?.value {
            guard configuration.objectValue != nil else {
                throw AppsFile.Problem("\(place), configuration: is not a mapping", at: place["configuration"])
            }
            // It stands in replies, which have limits of their own.
            let limits = JSONLimits(maxDepth: 16, maxBytes: 65_536)
            guard (try? JSONValue(parsing: configuration.serialized(), limits: limits)) != nil else {
                throw AppsFile.Problem(
                    "\(place), configuration: has more than 16 levels, or 65536 bytes as JSON",
                    at: place["configuration"])
            }
            settings.configuration = configuration
        }
        settings.keysOpenInstalls = section.keysOpenInstalls ?? false
        return settings
    }
}
