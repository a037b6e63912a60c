// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// The section `verification` of an app, for the verification service.
public struct VerificationSettings: Sendable {
    public init() {}
}

extension VerificationSettings {
    /// The section's shape in the file.
    struct Section: Decodable {
        init(from decoder: any Decoder) throws {}
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(_ section: Section?, _ place: String, _ secrets: SecretReader) throws(AppsFile.Problem)
        -> VerificationSettings
    {
        VerificationSettings()
    }
}
