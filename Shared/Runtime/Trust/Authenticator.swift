// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
import Crypto
public import Messaging

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
    /// What signs commands under the id `internal`: the derived keys, and the internal keys themselves, since whoever
    /// holds one of those can derive the others.
    private let commandKeys: [SymmetricKey]
    private let gatewayKeys: [SymmetricKey]

    public init(trust: Trust, apps: AppDirectory, keys: DeploymentKeys, topics: Topics) {
        self.trust = trust
        self.apps = apps
        publications = Publications(keys, topics: topics)
        commandKeys = keys.checking(.commands) + keys.internalKeys
        gatewayKeys = keys.checking(.gateway)
    }

    /// - Parameter record: of a commands topic.
    /// - Returns: the app the command is for and who sent it.
    /// - Throws: `AuthenticationFailure`; the record is then dead-lettered and nothing in it is believed.
    public func authenticate(
        _ record: KafkaRecord, _ attributes: EventAttributes, now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        if trust == .cluster {
            let app = try app(of: attributes)
            return (app, try vouched(attributes, for: app, now))
        }
        let signature = try Signature.of(record)
        let signed = Signature.signingString(of: record)
        switch signature.keyID {
        case Signature.internalKeyID:
            try check(signature, signed, commandKeys, "the internal key")
        case Signature.gatewayKeyID:
            try check(signature, signed, gatewayKeys, "the gateway's key")
            try checkGateway(attributes)
        case Signature.eventsKeyID:
            throw AuthenticationFailure(.keyUnknown, "the events key signs no commands")
        default:
            return try authenticate(signature, signed, attributes, now)
        }
        let app = try app(of: attributes)
        return (app, try vouched(attributes, for: app, now))
    }

    /// - Parameter record: an event or a reply of another service.
    /// - Returns: the app that it is about.
    /// - Throws: `AuthenticationFailure`, also when somebody else than a service wrote it.
    public func authenticate(
        publication record: KafkaRecord, _ attributes: EventAttributes, now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        if trust == .signed { try publications.check(record) }
        let app = try app(of: attributes)
        let principal = try vouched(attributes, for: app, now)
        guard principal.kind == .service else {
            throw AuthenticationFailure(
                .principalInvalid, "only the deployment's own services write events and replies")
        }
        return (app, principal)
    }

    private func app(of attributes: EventAttributes) throws(AuthenticationFailure) -> AppSettings {
        guard let id = attributes.appID, let app = apps[id] else {
            throw AuthenticationFailure(.appUnknown, "no such app in the apps file")
        }
        return app
    }

    private func check(
        _ signature: Signature, _ signed: [UInt8], _ keys: [SymmetricKey], _ name: String
    ) throws(AuthenticationFailure) {
        guard !keys.isEmpty else {
            throw AuthenticationFailure(.keyUnknown, "signed with \(name), but none is configured")
        }
        guard keys.contains(where: { signature.isValid(secret: $0, signingString: signed) }) else {
            throw AuthenticationFailure(.signatureInvalid, "the signature of \(name) does not match")
        }
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
        _ signature: Signature, _ signed: [UInt8], _ attributes: EventAttributes, _ now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        let app = try app(of: attributes)
        guard let key = app.keys[signature.keyID] else {
            let isForeign = apps.ownsKey(signature.keyID)
            throw AuthenticationFailure(
                isForeign ? .keyOfOtherApp : .keyUnknown,
                isForeign ? "the key belongs to another app" : "the app has no key with this id")
        }
        guard signature.isValid(secret: key.secret, signingString: signed) else {
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
            guard let key = app.keys[id] else {
                throw AuthenticationFailure(.principalInvalid, "authid names no key of this app")
            }
            return try principal(of: key, now)
        case ("app_user", let id?) where !id.isEmpty:
            return Principal(kind: .user(id), scopes: [.sdk])
        case ("app_install", let id?) where !id.isEmpty:
            return Principal(kind: .install(id), scopes: [.sdk])
        default:
            throw AuthenticationFailure(
                .principalInvalid,
                "authtype is api_key, app_user or app_install, together with authid, or both are absent")
        }
    }
}
