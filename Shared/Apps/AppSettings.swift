// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto

/// One app (tenant) of the apps file. A class, because every command carries it and it never changes.
public final class AppSettings: Sendable {
    public let id: AppID
    public let keys: [KeyID: APIKey]
    public let linking: Linking
    public let sdk: SDKSettings
    public let sync: SyncSettings
    public let verification: VerificationSettings
    public let gateway: GatewaySettings
    public let retention: RetentionSettings
    public let requests: SubjectRequestSettings
    /// The reply topic of the app's own API keys, without `TOPIC_PREFIX`: the default, and the only one. `nil`: the
    /// common one, or any that no app has.
    public let replies: String?
    /// Whether the app has commands topics of its own, one of each service (`Topics.commands(_:of:)`), so that its backlog
    /// waits behind nobody else's, and nobody else behind its.
    public let ownCommandsTopics: Bool

    public init(
        id: AppID, keys: [KeyID: APIKey] = [:], linking: Linking = Linking(), sdk: SDKSettings = SDKSettings(),
        sync: SyncSettings = SyncSettings(), verification: VerificationSettings = VerificationSettings(),
        gateway: GatewaySettings = GatewaySettings(), retention: RetentionSettings = RetentionSettings(),
        requests: SubjectRequestSettings = SubjectRequestSettings(),
        replies: String? = nil,
        ownCommandsTopics: Bool = false
    ) {
        self.id = id
        self.keys = keys
        self.linking = linking
        self.sdk = sdk
        self.sync = sync
        self.verification = verification
        self.gateway = gateway
        self.retention = retention
        self.requests = requests
        self.replies = replies
        self.ownCommandsTopics = ownCommandsTopics
    }

    /// For a process that checks no logins: it keeps nothing that vouches for users.
    var withoutVerification: AppSettings {
        var none = VerificationSettings(mode: verification.mode)
        none.nobody = verification.nobody
        return AppSettings(
            id: id, keys: keys, linking: linking, sdk: sdk, sync: sync, verification: none, gateway: gateway,
            retention: retention, requests: requests, replies: replies, ownCommandsTopics: ownCommandsTopics)
    }

    /// Where a producer writes the app's commands to a service: the app's own topic, once the service has made it.
    /// - Parameter existing: topics that are there.
    public func commandsTopic(of service: String, _ topics: Topics, among existing: Set<String>) -> String {
        let own = topics.commands(service, of: id)
        return ownCommandsTopics && existing.contains(own) ? own : topics.commands(service)
    }
}

/// A credential of an app (F6). Its description never shows the secret.
public struct APIKey: Sendable, CustomStringConvertible {
    public var id: KeyID
    public let secret: SymmetricKey
    /// The secret, for checking the signatures of records.
    public let signing: SigningKey
    public var scopes: Set<Scope>
    public var expires: Timestamp?
    public var isRevoked: Bool
    /// Whether the gateway masks in its answers what people are reached and called by.
    public var isMasked: Bool

    public init(
        id: KeyID, secret: SymmetricKey, scopes: Set<Scope>, expires: Timestamp?, isRevoked: Bool,
        isMasked: Bool = false
    ) {
        self.id = id
        self.secret = secret
        signing = SigningKey(secret)
        self.scopes = scopes
        self.expires = expires
        self.isRevoked = isRevoked
        self.isMasked = isMasked
    }

    public var description: String { "API key \(id)" }
}

/// The apps of one version of the apps file. A value: a reload makes a new one.
public struct AppDirectory: Sendable {
    private let apps: [AppID: AppSettings]
    /// The app that each key belongs to.
    private let owners: [KeyID: AppID]

    /// What is said of apps that are demonstrations; `nil` when there are none.
    package let demo: String?
    /// What is to be said of secrets of the others, one line each, without secrets.
    package let weaknesses: [String]
    /// What else the file's author should change, one line each.
    package let remarks: [String]

    /// The first two.
    public var warnings: [String] { [demo].compactMap { $0 } + weaknesses }

    /// - Precondition: key ids are unique across apps (the apps file is refused otherwise).
    public init(_ apps: [AppSettings], demo: String? = nil, weaknesses: [String] = [], remarks: [String] = []) {
        self.demo = demo
        self.weaknesses = weaknesses
        self.remarks = remarks
        self.apps = Dictionary(apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let keys = apps.flatMap { app in app.keys.keys.map { ($0, app.id) } }
        owners = Dictionary(keys, uniquingKeysWith: { first, _ in first })
    }

    public subscript(_ id: AppID) -> AppSettings? { apps[id] }

    /// Whether any app has a key with this id.
    public func ownsKey(_ id: KeyID) -> Bool { owners[id] != nil }

    /// The app that has the key with this id, and the key.
    public func key(_ id: KeyID) -> (app: AppSettings, key: APIKey)? {
        guard let app = owners[id].flatMap({ apps[$0] }), let key = app.keys[id] else { return nil }
        return (app, key)
    }

    /// The reply topics that apps have for themselves, without prefix, and whose they are.
    public var replyTopics: [String: AppID] {
        Dictionary(
            apps.values.compactMap { app in app.replies.map { ($0, app.id) } }, uniquingKeysWith: { first, _ in first })
    }

    /// The apps that have commands topics of their own.
    public var ownersOfCommandsTopics: [AppID] { apps.values.filter(\.ownCommandsTopics).map(\.id).sorted() }

    public var ids: [AppID] { apps.keys.sorted() }

    public var count: Int { apps.count }
}
