// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto

/// The section `verification` of an app, for the verification service (docs/verification.md).
public struct VerificationSettings: Sendable {
    public enum Mode: String, WireEnum {
        /// Tokens are ignored.
        case off
        /// Tokens are checked and counted, and nobody is stopped.
        case report
        /// Logins that nobody vouches for are refused.
        case enforce
    }

    /// What a token is made of. In all but `vendor` a login without a signed field is refused, and a field that is not
    /// signed is not used.
    public enum SignedFields: String, WireEnum {
        /// User id and e-mail, whichever there are, joined without a separator. Two people can have one token.
        case vendor
        case userId
        case email
        /// User id, a line feed, e-mail.
        case delimited
    }

    /// A secret that tokens are made with. Its description never shows the secret.
    public struct Key: Sendable, CustomStringConvertible {
        /// Empty for a single `identityTokenSecret`.
        public var id: KeyID
        public var secret: SymmetricKey
        /// For people who keep the file.
        public var created: Timestamp?
        /// From this instant its tokens are refused.
        public var retireAt: Timestamp?

        public init(id: KeyID, secret: SymmetricKey, created: Timestamp? = nil, retireAt: Timestamp? = nil) {
            self.id = id
            self.secret = secret
            self.created = created
            self.retireAt = retireAt
        }

        /// V56.
        public func isLive(at now: Timestamp) -> Bool { retireAt.map { now < $0 } ?? true }

        /// The id as replies, events and counters show it.
        public var shownID: KeyID? { id.text.isEmpty ? nil : id }

        public var description: String { "verification key \(id)" }
    }

    public var mode: Mode
    public var signedFields: SignedFields
    public var keys: [Key]
    /// What identity tokens (JWT) are signed with. Without any they are refused.
    public var identityTokenSecrets: [Key]
    /// What an identity token's `aud` has to name; `nil`: it is not looked at.
    public var identityTokenAudience: String?
    /// What an identity token's `iss` has to be; `nil`: it is not looked at.
    public var identityTokenIssuer: String?
    /// Only the user id is used and signed; name and e-mail are dropped.
    public var fullPrivacy: Bool
    /// A login drops the device's anonymous user.
    public var clearAnonymousUserOnLogin: Bool
    /// How long a session's `verified` lasts, in milliseconds; without it, until the next login or logout.
    public var sessionLifetime: Int64?
    /// User ids that make a login an anonymous one.
    public var nobody = NobodyValues.standard

    public init(
        mode: Mode = .off, signedFields: SignedFields = .vendor, keys: [Key] = [], identityTokenSecrets: [Key] = [],
        fullPrivacy: Bool = false, clearAnonymousUserOnLogin: Bool = false, sessionLifetime: Int64? = nil
    ) {
        self.mode = mode
        self.signedFields = signedFields
        self.keys = keys
        self.identityTokenSecrets = identityTokenSecrets
        self.fullPrivacy = fullPrivacy
        self.clearAnonymousUserOnLogin = clearAnonymousUserOnLogin
        self.sessionLifetime = sessionLifetime
    }

    public func liveKeys(at now: Timestamp) -> [Key] { keys.filter { $0.isLive(at: now) } }
}

extension VerificationSettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        struct Key: Mapping {
            var id: KeyID
            var secret: String?
            var secretFile: String?
            var created: String?
            var retireAt: String?

            enum CodingKeys: String, CodingKey, CaseIterable { case id, secret, secretFile, created, retireAt }
        }

        var mode: Mode?
        var signedFields: SignedFields?
        var keys: [Strict<Key>]?
        var identityTokenSecret: String?
        var identityTokenSecretFile: String?
        var identityTokenSecrets: [Strict<Key>]?
        var identityTokenAudience: String?
        var identityTokenIssuer: String?
        var fullPrivacy: Bool?
        var clearAnonymousUserOnLogin: Bool?
        var sessionSeconds: Int64?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case mode, signedFields, keys, identityTokenSecrets, identityTokenSecret, identityTokenSecretFile
            case identityTokenAudience, identityTokenIssuer
            case fullPrivacy, clearAnonymousUserOnLogin, sessionSeconds
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(
        _ section: Strict<Section>?, _ place: AppsFile.Place, of app: AppID, _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> VerificationSettings {
        guard let section else { return VerificationSettings() }
        var settings = VerificationSettings(
            mode: section.mode ?? .off, signedFields: section.signedFields ?? .vendor,
            fullPrivacy: section.fullPrivacy ?? false,
            clearAnonymousUserOnLogin: section.clearAnonymousUserOnLogin ?? false)
        for (index, key) in (section.keys ?? []).enumerated() {
            let place = place.inside("keys", index, "key \(key.id)")
            settings.keys.append(
                try read(key, among: settings.keys, place, of: app, for: .verificationKey, secrets))
        }
        settings.identityTokenSecrets = try identityTokenSecrets(section, place, of: app, secrets)
        settings.identityTokenAudience = section.identityTokenAudience
        settings.identityTokenIssuer = section.identityTokenIssuer
        for (name, value) in [
            ("identityTokenAudience", section.identityTokenAudience),
            ("identityTokenIssuer", section.identityTokenIssuer),
        ] where value?.isEmpty == true {
            throw AppsFile.Problem(
                "\(place): \(name) is empty; write what tokens have, or leave it away", at: place[name])
        }
        if settings.mode != .off {
            if settings.keys.isEmpty, settings.identityTokenSecrets.isEmpty {
                throw AppsFile.Problem(
                    "\(place): mode \(settings.mode.rawValue) needs keys, identityTokenSecrets or both",
                    at: place["keys"])
            }
            if section.signedFields == nil {
                throw AppsFile.Problem(
                    "\(place): mode \(settings.mode.rawValue) needs signedFields, what the app's backend signs; write "
                        + "delimited, userId or email, or vendor for a backend that joins user id and e-mail already",
                    at: place["signedFields"])
            }
        }
        if settings.fullPrivacy, settings.signedFields == .email {
            throw AppsFile.Problem(
                "\(place): fullPrivacy signs the userId only, so signedFields cannot be email", at: place["fullPrivacy"]
            )
        }
        if let seconds = section.sessionSeconds {
            guard (1...31_536_000).contains(seconds) else {
                throw AppsFile.Problem(
                    "\(place): sessionSeconds is not from 1 to 31536000 (a year)", at: place["sessionSeconds"])
            }
            settings.sessionLifetime = seconds * 1000
        }
        return settings
    }

    /// The list, or the single one as a list of one.
    private static func identityTokenSecrets(
        _ section: Strict<Section>, _ place: AppsFile.Place, of app: AppID, _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> [Key] {
        let isSingle = section.identityTokenSecret != nil || section.identityTokenSecretFile != nil
        guard let list = section.identityTokenSecrets else {
            guard isSingle else { return [] }
            let secret = try secrets.read(
                inline: section.identityTokenSecret, file: section.identityTokenSecretFile, place,
                "identityTokenSecret",
                of: app, for: .identityTokenSecret)
            return [Key(id: "", secret: SymmetricKey(data: Array(secret.utf8)))]
        }
        guard !isSingle else {
            let member = section.identityTokenSecret == nil ? "identityTokenSecretFile" : "identityTokenSecret"
            throw AppsFile.Problem(
                "\(place): give either identityTokenSecrets or a single identityTokenSecret", at: place[member])
        }
        var keys: [Key] = []
        for (index, key) in list.enumerated() {
            let place = place.inside("identityTokenSecrets", index, "identityTokenSecrets \(key.id)")
            keys.append(try read(key, among: keys, place, of: app, for: .identityTokenSecret, secrets))
        }
        return keys
    }

    private static func read(
        _ key: Strict<Section.Key>, among others: [Key], _ place: AppsFile.Place, of app: AppID,
        for purpose: SecretUse.Purpose,
        _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> Key {
        guard (1...255).contains(key.id.text.utf8.count) else {
            throw AppsFile.Problem("\(place): the id must have 1 to 255 bytes", at: place["id"])
        }
        let text = try secrets.read(inline: key.secret, file: key.secretFile, place, of: app, for: purpose)
        let secret = SymmetricKey(data: Array(text.utf8))
        for other in others {
            if other.id == key.id { throw AppsFile.Problem("\(place): the id is used twice", at: place["id"]) }
            if other.secret == secret {
                throw AppsFile.Problem(
                    "\(place): has the same secret as key \(other.id); counters could not tell them apart",
                    at: place[key.secret == nil ? "secretFile" : "secret"])
            }
        }
        return Key(
            id: key.id, secret: secret, created: try instant(key.created, "created", place),
            retireAt: try instant(key.retireAt, "retireAt", place))
    }

    private static func instant(
        _ text: String?, _ member: String, _ place: AppsFile.Place
    ) throws(AppsFile.Problem) -> Timestamp? {
        guard let text else { return nil }
        guard let instant = Timestamp(rfc3339OrDay: text) else {
            throw AppsFile.Problem(
                "\(place): \(member) is not a date such as 2030-01-31 or 2030-01-31T12:00:00Z", at: place[member])
        }
        return instant
    }
}
