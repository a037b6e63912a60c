// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Crypto

/// The section `verification` of an app, for the verification service (domain.md "Verification").
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
        public var id: String
        public var secret: SymmetricKey
        /// For people who keep the file.
        public var created: Timestamp?
        /// From this instant its tokens are refused.
        public var retireAt: Timestamp?

        public init(id: String, secret: SymmetricKey, created: Timestamp? = nil, retireAt: Timestamp? = nil) {
            self.id = id
            self.secret = secret
            self.created = created
            self.retireAt = retireAt
        }

        public func isLive(at now: Timestamp) -> Bool { retireAt.map { now < $0 } ?? true }

        public var description: String { "verification key \(id)" }
    }

    public var mode: Mode
    public var signedFields: SignedFields
    public var keys: [Key]
    /// What identity tokens (JWT) are signed with. Without one they are refused.
    public var identityTokenSecret: SymmetricKey?
    /// Only the user id is used and signed; name and e-mail are dropped.
    public var fullPrivacy: Bool
    /// A login drops the device's anonymous user.
    public var clearAnonymousUserOnLogin: Bool

    public init(
        mode: Mode = .off, signedFields: SignedFields = .vendor, keys: [Key] = [],
        identityTokenSecret: SymmetricKey? = nil, fullPrivacy: Bool = false, clearAnonymousUserOnLogin: Bool = false
    ) {
        self.mode = mode
        self.signedFields = signedFields
        self.keys = keys
        self.identityTokenSecret = identityTokenSecret
        self.fullPrivacy = fullPrivacy
        self.clearAnonymousUserOnLogin = clearAnonymousUserOnLogin
    }

    public func liveKeys(at now: Timestamp) -> [Key] { keys.filter { $0.isLive(at: now) } }
}

extension VerificationSettings {
    /// The section's shape in the file.
    struct Section: Decodable {
        struct Key: Decodable {
            var id: String
            var secret: String?
            var secretFile: String?
            var created: String?
            var retireAt: String?

            private enum CodingKeys: String, CodingKey, CaseIterable { case id, secret, secretFile, created, retireAt }

            init(from decoder: any Decoder) throws {
                try refuseUnknownMembers(decoder, CodingKeys.allCases.map(\.stringValue))
                let container = try decoder.container(keyedBy: CodingKeys.self)
                id = try container.decode(String.self, forKey: .id)
                secret = try container.decodeIfPresent(String.self, forKey: .secret)
                secretFile = try container.decodeIfPresent(String.self, forKey: .secretFile)
                created = try container.decodeIfPresent(String.self, forKey: .created)
                retireAt = try container.decodeIfPresent(String.self, forKey: .retireAt)
            }
        }

        var mode: Mode?
        var signedFields: SignedFields?
        var keys: [Key]?
        var identityTokenSecret: String?
        var identityTokenSecretFile: String?
        var fullPrivacy: Bool?
        var clearAnonymousUserOnLogin: Bool?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case mode, signedFields, keys, identityTokenSecret, identityTokenSecretFile, fullPrivacy
            case clearAnonymousUserOnLogin
        }

        init(from decoder: any Decoder) throws {
            try refuseUnknownMembers(decoder, CodingKeys.allCases.map(\.stringValue))
            let container = try decoder.container(keyedBy: CodingKeys.self)
            mode = try container.decodeIfPresent(Mode.self, forKey: .mode)
            signedFields = try container.decodeIfPresent(SignedFields.self, forKey: .signedFields)
            keys = try container.decodeIfPresent([Key].self, forKey: .keys)
            identityTokenSecret = try container.decodeIfPresent(String.self, forKey: .identityTokenSecret)
            identityTokenSecretFile = try container.decodeIfPresent(String.self, forKey: .identityTokenSecretFile)
            fullPrivacy = try container.decodeIfPresent(Bool.self, forKey: .fullPrivacy)
            clearAnonymousUserOnLogin = try container.decodeIfPresent(Bool.self, forKey: .clearAnonymousUserOnLogin)
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(
        _ section: Section?, _ place: String, _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> VerificationSettings {
        guard let section else { return VerificationSettings() }
        var settings = VerificationSettings(
            mode: section.mode ?? .off, signedFields: section.signedFields ?? .vendor,
            fullPrivacy: section.fullPrivacy ?? false,
            clearAnonymousUserOnLogin: section.clearAnonymousUserOnLogin ?? false)
        for key in section.keys ?? [] {
            settings.keys.append(try read(key, among: settings.keys, "\(place), key \(key.id)", secrets))
        }
        if section.identityTokenSecret != nil || section.identityTokenSecretFile != nil {
            let secret = try secrets.read(
                inline: section.identityTokenSecret, file: section.identityTokenSecretFile,
                "\(place), identityTokenSecret")
            settings.identityTokenSecret = SymmetricKey(data: Array(secret.utf8))
        }
        if settings.mode != .off, settings.keys.isEmpty, settings.identityTokenSecret == nil {
            throw AppsFile.Problem("\(place): mode \(settings.mode.rawValue) needs keys or an identityTokenSecret")
        }
        if settings.fullPrivacy, settings.signedFields == .email {
            throw AppsFile.Problem("\(place): fullPrivacy signs the userId only, so signedFields cannot be email")
        }
        return settings
    }

    private static func read(
        _ key: Section.Key, among others: [Key], _ place: String, _ secrets: SecretReader
    ) throws(AppsFile.Problem) -> Key {
        guard (1...255).contains(key.id.utf8.count) else {
            throw AppsFile.Problem("\(place): the id must have 1 to 255 bytes")
        }
        let secret = SymmetricKey(data: Array(try secrets.read(inline: key.secret, file: key.secretFile, place).utf8))
        for other in others {
            if ExactText(other.id) == ExactText(key.id) { throw AppsFile.Problem("\(place): the id is used twice") }
            if other.secret == secret {
                throw AppsFile.Problem(
                    "\(place): has the secret of key \(other.id); counters could not tell them apart")
            }
        }
        return Key(
            id: key.id, secret: secret, created: try instant(key.created, "created", place),
            retireAt: try instant(key.retireAt, "retireAt", place))
    }

    private static func instant(
        _ text: String?, _ member: String, _ place: String
    ) throws(AppsFile.Problem) -> Timestamp? {
        guard let text else { return nil }
        guard let instant = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: "\(text)T00:00:00Z") else {
            throw AppsFile.Problem("\(place): \(member) is not a date such as 2030-01-31 or 2030-01-31T12:00:00Z")
        }
        return instant
    }
}
