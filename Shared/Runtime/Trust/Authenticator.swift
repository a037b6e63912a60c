// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto

/// Decides who sent a record (docs/contracts.md "Signature"). Pure; one per version of the app directory.
public struct Authenticator: Sendable {
    /// Whom a deployment believes.
    public enum Trust: String, Sendable, CaseIterable {
        /// Every command is signed. The default.
        case signed
        /// Kafka's ACLs decide who may write: `appid`, `authtype` and `authid` are believed.
        case cluster
    }

    private let trust: Trust
    let apps: AppDirectory
    private let publications: Publications
    private let commandKeys: [SigningKey]
    private let gatewayKeys: [SigningKey]

    public init(trust: Trust, apps: AppDirectory, keys: DeploymentKeys, topics: Topics) {
        self.trust = trust
        self.apps = apps
        publications = Publications(keys, topics: topics)
        commandKeys = keys.checking(.commands).map { SigningKey($0) }
        gatewayKeys = keys.checking(.gateway).map { SigningKey($0) }
    }

    /// - Parameter record: of a commands topic.
    /// - Returns: the app the command is for and who sent it.
    /// - Throws: `AuthenticationFailure`; the record is then dead-lettered and nothing in it is believed.
    public func authenticate(
        _ record: KafkaRecord, _ attributes: EventAttributes, now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        if trust == .cluster { return try ours(attributes, now) }
        let signature = try Signature.of(record)
        switch signature.keyID {
        case Signature.internalKeyID:
            try signature.check(record, commandKeys)
        case Signature.gatewayKeyID:
            try signature.check(record, gatewayKeys)
            try checkGateway(attributes)
        case Signature.eventsKeyID:
            throw AuthenticationFailure(.keyUnknown, "the events key signs no commands")
        default:
            return try authenticate(signature, record, attributes, now)
        }
        return try ours(attributes, now)
    }

    /// Of a command that the deployment's own key signed.
    private func ours(
        _ attributes: EventAttributes, _ now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        do throws(AuthenticationFailure) {
            let app = try app(of: attributes)
            return (app, try vouched(attributes, for: app, now))
        } catch {
            var failure = error
            failure.isOfOurs = true
            throw failure
        }
    }

    /// - Parameter record: an event or a reply of another service.
    /// - Returns: the app that it is about.
    /// - Throws: `AuthenticationFailure`, also when somebody else than a service wrote it.
    public func authenticate(
        publication record: KafkaRecord, _ attributes: EventAttributes
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        if trust == .signed { try publications.check(record) }
        // Its `authid` says whose key it was that led to it, and not who writes it.
        return (try app(of: attributes), Principal(kind: .service, scopes: Set(Scope.allCases)))
    }

    private func app(of attributes: EventAttributes) throws(AuthenticationFailure) -> AppSettings {
        guard let id = attributes.appID, let app = apps[AppID(id)] else {
            throw AuthenticationFailure(.appUnknown, "no such app in the apps file")
        }
        return app
    }

    /// The gateway faces the internet, so its key only ever speaks for those whose credential it has checked, and only
    /// under its own name.
    private func checkGateway(_ attributes: EventAttributes) throws(AuthenticationFailure) {
        guard attributes.source == Topics.gatewaySource else {
            throw AuthenticationFailure(.principalInvalid, "the gateway's source is \(Topics.gatewaySource)")
        }
        guard attributes.authType != nil, attributes.authID != nil else {
            throw AuthenticationFailure(
                .principalInvalid, "the gateway speaks for others: authtype and authid say for whom")
        }
    }

    private func authenticate(
        _ signature: Signature, _ record: KafkaRecord, _ attributes: EventAttributes, _ now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        let app = try app(of: attributes)
        guard let key = app.keys[KeyID(signature.keyID)] else {
            let isForeign = apps.ownsKey(KeyID(signature.keyID))
            throw AuthenticationFailure(
                isForeign ? .keyOfOtherApp : .keyUnknown,
                isForeign ? "the key belongs to another app" : "the app has no key with this id")
        }
        guard signature.isValid(key.signing, record) else {
            throw AuthenticationFailure(.signatureInvalid, "the signature of key \(key.id) does not match")
        }
        // Ids of our own messages follow from ids that senders know: under our sources anybody could take them first.
        guard !attributes.source.hasPrefix(Topics.ownSources) else {
            throw AuthenticationFailure(
                .principalInvalid,
                "sources that begin with \(Topics.ownSources) are the deployment's own; name your own as the source")
        }
        return (app, try principal(of: key, now))
    }

    private func principal(of key: APIKey, _ now: Timestamp) throws(AuthenticationFailure) -> Principal {
        if key.isRevoked { throw AuthenticationFailure(.keyRevoked, "key \(key.id) is revoked") }
        if let expires = key.expires, expires <= now {
            throw AuthenticationFailure(.keyExpired, "key \(key.id) expired at \(expires.rfc3339)")
        }
        return Principal(kind: .apiKey(key.id), scopes: key.scopes)
    }

    /// The principal that the gateway (or, under cluster trust, the producer) speaks for.
    private func vouched(
        _ attributes: EventAttributes, for app: AppSettings, _ now: Timestamp
    ) throws(AuthenticationFailure) -> Principal {
        switch (attributes.authType, attributes.authID) {
        case (nil, nil):
            return Principal(kind: .service, scopes: Set(Scope.allCases))
        case ("api_key", let id?):
            guard let key = app.keys[KeyID(id)] else {
                throw AuthenticationFailure(.principalInvalid, "authid names no key of this app")
            }
            return try principal(of: key, now)
        case ("app_user", let id?) where !id.isEmpty:
            return Principal(kind: .user(UserID(id)), scopes: [.sdk])
        case ("app_install", let id?) where !id.isEmpty:
            return Principal(kind: .install(id), scopes: [.sdk])
        case ("app_install_expired", let id?) where !id.isEmpty:
            return Principal(kind: .expiredInstall(id), scopes: [.sdk])
        default:
            throw AuthenticationFailure(
                .principalInvalid,
                "authtype is api_key, app_user, app_install or app_install_expired, together with authid, or both are "
                    + "absent")
        }
    }
}

/// Tells whether a service of the deployment wrote an event or a reply. Takes no key that signs a command of a service.
public struct Publications: Sendable {
    private let gatewayReplies: String
    private let eventsKeys: [SigningKey]
    private let gatewayKeys: [SigningKey]

    public init(_ keys: DeploymentKeys, topics: Topics) {
        gatewayReplies = topics.gatewayReplies
        eventsKeys = keys.checking(.events).map { SigningKey($0) }
        gatewayKeys = keys.checking(.gateway).map { SigningKey($0) }
    }

    /// Whether there is anything to check records of this topic with.
    public func canCheck(_ topic: String) -> Bool { !keys(topic).isEmpty }

    public func isGenuine(_ record: KafkaRecord) -> Bool {
        do {
            try check(record)
            return true
        } catch {
            return false
        }
    }

    /// - Throws: `AuthenticationFailure` when no service wrote it.
    func check(_ record: KafkaRecord) throws(AuthenticationFailure) {
        let topic = record.topicPartition.topic
        let signature = try Signature.of(record)
        guard signature.keyID == (topic == gatewayReplies ? Signature.gatewayKeyID : Signature.eventsKeyID) else {
            throw AuthenticationFailure(
                .principalInvalid, "only the deployment's own services write events and replies")
        }
        try signature.check(record, keys(topic))
    }

    private func keys(_ topic: String) -> [SigningKey] { topic == gatewayReplies ? gatewayKeys : eventsKeys }
}

extension Signature {
    /// The record's signature.
    /// - Throws: `AuthenticationFailure` when there is none that can be read.
    static func of(_ record: KafkaRecord) throws(AuthenticationFailure) -> Signature {
        guard let header = record.header(HeaderName.signature) else {
            throw AuthenticationFailure(.signatureMissing, "no signature header")
        }
        guard let signature = Signature(header: header) else {
            throw AuthenticationFailure(.signatureMalformed, "signature header is not v1;kid=<id>;<base64 of 32 bytes>")
        }
        return signature
    }

    /// - Parameter keys: those that the deployment has under the signature's id.
    /// - Throws: `AuthenticationFailure` when none of them made it.
    func check(_ record: KafkaRecord, _ keys: [SigningKey]) throws(AuthenticationFailure) {
        guard !keys.isEmpty else {
            throw AuthenticationFailure(.keyUnknown, "signed as \(keyID), and no key for that is configured")
        }
        guard keys.contains(where: { isValid($0, record) }) else {
            throw AuthenticationFailure(.signatureInvalid, "the signature of \(keyID) does not match")
        }
    }

    /// Whether the record is signed with this key.
    func isValid(_ key: SigningKey, _ record: KafkaRecord) -> Bool {
        isValid(
            key: key, topic: record.topicPartition.topic, headers: record.headers, value: record.value ?? [])
    }
}

/// Who sent a command, after the credential checked out.
public struct Principal: Sendable, Hashable {
    public enum Kind: Sendable, Hashable {
        /// An app's API key, by id.
        case apiKey(KeyID)
        /// One of the deployment's own services, speaking for itself.
        case service
        /// An SDK user's token, vouched for by the gateway.
        case user(UserID)
        /// An install's token, vouched for by the gateway: the creation that it is from, which a reset ends.
        case install(String)
        /// A token of a user or an install whose time has passed, not long ago: the creation that it names (U75).
        case expiredInstall(String)
    }

    public var kind: Kind
    public var scopes: Set<Scope>

    public init(kind: Kind, scopes: Set<Scope>) {
        self.kind = kind
        self.scopes = scopes
    }

    /// A service or an app's backend, whose word about who somebody is counts where an app enforces verification (S47, S76).
    package var isVoucher: Bool { kind == .service || scopes.contains(.identityVouch) }

    /// Checks that the principal may send a command that needs `scope` (L2).
    public func authorize(_ scope: Scope) throws(Rejection) { try authorize(scope, or: nil) }

    /// The same of a type of command.
    public func authorize(_ type: CommandType) throws(Rejection) { try authorize(type.scope, or: type.orScope) }

    private func authorize(_ scope: Scope, or other: Scope?) throws(Rejection) {
        if scopes.contains(scope) || other.map(scopes.contains) == true { return }
        switch kind {
        case .user where scope != .sdk, .install where scope != .sdk, .expiredInstall where scope != .sdk:
            throw Rejection(.userTokenNotAllowed)  // U42
        default: break
        }
        throw Rejection(
            .insufficientScope,
            scope == .internal
                ? "Only the deployment's own services may send this command."
                : "This command needs an API key with the scope "
                    + [scope, other].compactMap { $0?.rawValue }.joined(separator: " or ") + ".")
    }
}

/// Why a credential did not check out. Operators see `reason` in the dead letter.
///
/// The sender sees `messageForSender`, which tells expired and revoked keys apart only after the signature proved that
/// the sender holds the key; otherwise nobody could be told more than that it did not check out.
public struct AuthenticationFailure: Error, Sendable, Hashable {
    public enum Reason: String, Sendable, CaseIterable {
        case signatureMissing = "SIGNATURE_MISSING"
        case signatureMalformed = "SIGNATURE_MALFORMED"
        case signatureInvalid = "SIGNATURE_INVALID"
        case appUnknown = "APP_UNKNOWN"
        case keyUnknown = "KEY_UNKNOWN"
        /// The key exists but belongs to another app.
        case keyOfOtherApp = "KEY_OF_OTHER_APP"
        case keyExpired = "KEY_EXPIRED"
        case keyRevoked = "KEY_REVOKED"
        /// `authtype` or `authid` that cannot be believed.
        case principalInvalid = "PRINCIPAL_INVALID"
    }

    public var reason: Reason
    /// For operators; names key ids and apps, never secrets.
    public var detail: String
    /// Whether a service or the gateway wrote the record for all that, and waits for the answer.
    public var isOfOurs = false

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var messageForSender: String {
        switch reason {
        case .signatureMissing:
            "The record has no signature header; send v1;kid=<api key id>;<base64 HMAC-SHA256>."
        case .signatureMalformed:
            "The signature header is malformed; send v1;kid=<api key id>;<base64 HMAC-SHA256>."
        case .keyExpired: "The API key has expired."
        case .keyRevoked: "The API key is revoked."
        case .signatureInvalid, .appUnknown, .keyUnknown, .keyOfOtherApp, .principalInvalid:
            "The signature does not check out for this app: unknown app or key id, a key of another app, or a "
                + "signature over other bytes."
        }
    }
}
