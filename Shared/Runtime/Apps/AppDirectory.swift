// SPDX-License-Identifier: Apache-2.0

import Crypto

/// The apps of one version of the apps file. A value: a reload makes a new one.
public struct AppDirectory: Sendable {
    private let apps: [String: AppSettings]
    /// The app that each key belongs to.
    private let owners: [String: String]

    /// What the file's author should change, one line each, without secrets.
    public let warnings: [String]

    /// - Precondition: key ids are unique across apps (the apps file is refused otherwise).
    public init(_ apps: [AppSettings], warnings: [String] = []) {
        self.warnings = warnings
        self.apps = Dictionary(apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let keys = apps.flatMap { app in app.keys.keys.map { ($0, app.id) } }
        owners = Dictionary(keys, uniquingKeysWith: { first, _ in first })
    }

    public subscript(_ id: String) -> AppSettings? { apps[id] }

    /// Whether any app has a key with this id.
    public func ownsKey(_ id: String) -> Bool { owners[id] != nil }

    /// The app that has the key with this id, and the key.
    public func key(_ id: String) -> (app: AppSettings, key: APIKey)? {
        guard let app = owners[id].flatMap({ apps[$0] }), let key = app.keys[id] else { return nil }
        return (app, key)
    }

    /// The id of an API key that has one of these secrets.
    func key(withSecret secrets: [SymmetricKey]) -> String? {
        apps.values.flatMap(\.keys.values).filter { secrets.contains($0.secret) }.map(\.id).min()
    }

    /// The reply topics that apps have for themselves, without prefix, and whose they are.
    public var replyTopics: [String: String] {
        Dictionary(
            apps.values.compactMap { app in app.replies.map { ($0, app.id) } }, uniquingKeysWith: { first, _ in first })
    }

    public var ids: [String] { apps.keys.sorted() }
}
