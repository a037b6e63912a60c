// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Crypto
public import Messaging

/// Decides who sent a record (architecture.md section 7). Pure; one per version of the app directory.
public struct Authenticator: Sendable {
    /// Whom a deployment believes.
    public enum Trust: String, Sendable, CaseIterable {
        /// Every command is signed. The default.
        case signed
        /// Kafka's ACLs decide who may write: `appid`, `authtype` and `authid` are believed.
        case cluster
    }

    private let trust: Trust
    private let apps: AppDirectory
    private let internalKeys: [SymmetricKey]

    /// - Parameter previousInternalKeys: what they signed is still believed.
    public init(
        trust: Trust, apps: AppDirectory, internalKey: SymmetricKey?, previousInternalKeys: [SymmetricKey] = []
    ) {
        self.trust = trust
        self.apps = apps
        internalKeys = (internalKey.map { [$0] } ?? []) + previousInternalKeys
    }

    /// - Returns: the app the command is for and who sent it.
    /// - Throws: `AuthenticationFailure`; the record is then dead-lettered and nothing in it is believed.
    public func authenticate(
        _ record: KafkaRecord, _ attributes: EventAttributes, now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        switch trust {
        case .cluster:
            let app = try app(of: attributes)
            return (app, try vouched(attributes, for: app, now))
        case .signed:
            return try authenticateSigned(record, attributes, now)
        }
    }

    private func app(of attributes: EventAttributes) throws(AuthenticationFailure) -> AppSettings {
        guard let id = attributes.appID, let app = apps[id] else {
            throw AuthenticationFailure(.appUnknown, "no such app in the apps file")
        }
        return app
    }

    private func authenticateSigned(
        _ record: KafkaRecord, _ attributes: EventAttributes, _ now: Timestamp
    ) throws(AuthenticationFailure) -> (app: AppSettings, principal: Principal) {
        guard let header = record.header(HeaderName.signature) else {
            throw AuthenticationFailure(.signatureMissing, "no signature header")
        }
        guard let signature = Signature(header: header) else {
            throw AuthenticationFailure(.signatureMalformed, "signature header is not v1;kid=<id>;<base64 of 32 bytes>")
        }
        let signed = Signature.signingString(
            topic: record.topicPartition.topic, headers: record.headers.map { WireHeader($0.name, $0.value) },
            value: record.value ?? [])
        if signature.keyID == Signature.internalKeyID {
            guard !internalKeys.isEmpty else {
                throw AuthenticationFailure(.keyUnknown, "signed with the internal key, but none is configured")
            }
            guard internalKeys.contains(where: { signature.isValid(secret: $0, signingString: signed) }) else {
                throw AuthenticationFailure(.signatureInvalid, "the internal key's signature does not match")
            }
            let app = try app(of: attributes)
            return (app, try vouched(attributes, for: app, now))
        }
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
        default:
            throw AuthenticationFailure(
                .principalInvalid, "authtype is api_key or app_user, together with authid, or both are absent")
        }
    }
}
