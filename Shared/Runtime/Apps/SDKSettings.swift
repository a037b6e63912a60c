// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The section `sdk` of an app, for the user service.
public struct SDKSettings: Sendable {
    public init() {}
}

extension SDKSettings {
    /// The section's shape in the file.
    struct Section: Decodable {
        init(from decoder: any Decoder) throws {}
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(_ section: Section?, _ place: String, _ secrets: SecretReader) throws(AppsFile.Problem)
        -> SDKSettings
    {
        SDKSettings()
    }
}
