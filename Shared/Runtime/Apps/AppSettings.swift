// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// One app (tenant) of the apps file.
public struct AppSettings: Sendable {
    public var id: String
    public var keys: [String: APIKey]
    public var linking: Linking
    public var sdk: SDKSettings
    public var sync: SyncSettings
    public var verification: VerificationSettings
    public var gateway: GatewaySettings
    /// The reply topic of the app's own API keys, without `TOPIC_PREFIX`: the default, and the only one. `nil`: the
    /// common one, or any that no app has.
    public var replies: String?

    public init(
        id: String, keys: [String: APIKey] = [:], linking: Linking = Linking(), sdk: SDKSettings = SDKSettings(),
        sync: SyncSettings = SyncSettings(), verification: VerificationSettings = VerificationSettings(),
        gateway: GatewaySettings = GatewaySettings(), replies: String? = nil
    ) {
        self.id = id
        self.keys = keys
        self.linking = linking
        self.sdk = sdk
        self.sync = sync
        self.verification = verification
        self.gateway = gateway
        self.replies = replies
    }

    /// How installs are linked (domain.md "Link").
    public struct Linking: Sendable {
        public var isEnabled: Bool
        /// External ids that are refused because an upstream bug sends them for many people.
        public var nobody: NobodyValues

        public init(isEnabled: Bool = true, nobody: NobodyValues = .standard) {
            self.isEnabled = isEnabled
            self.nobody = nobody
        }

        /// Refuses external ids that cannot be one person's: outer white space, and values that name nobody.
        public func check(externalID: String) throws(Rejection) {
            let scalars = externalID.unicodeScalars
            if scalars.first?.properties.isWhitespace == true || scalars.last?.properties.isWhitespace == true {
                throw Rejection(.invalidRequest, "data.externalId starts or ends with white space.")
            }
            if nobody.contains(externalID) {
                throw Rejection(.invalidRequest, "data.externalId is a value that names nobody.")
            }
        }
    }
}
