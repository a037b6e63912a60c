// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The apps of one version of the apps file. A value: a reload makes a new one.
public struct AppDirectory: Sendable {
    private let apps: [String: AppSettings]
    private let keyIDs: Set<String>

    /// - Precondition: key ids are unique across apps (the apps file is refused otherwise).
    public init(_ apps: [AppSettings]) {
        self.apps = Dictionary(apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        keyIDs = Set(apps.flatMap(\.keys.keys))
    }

    public subscript(_ id: String) -> AppSettings? { apps[id] }

    /// Whether any app has a key with this id.
    public func ownsKey(_ id: String) -> Bool { keyIDs.contains(id) }

    public var ids: [String] { apps.keys.sorted() }
}
