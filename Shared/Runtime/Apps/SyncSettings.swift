// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The section `sync` of an app, for the sync service.
public struct SyncSettings: Sendable {
    public init() {}
}

extension SyncSettings {
    /// The section's shape in the file.
    struct Section: Decodable {
        init(from decoder: any Decoder) throws {}
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(_ section: Section?, _ place: String, _ secrets: SecretReader) throws(AppsFile.Problem)
        -> SyncSettings
    {
        SyncSettings()
    }
}
