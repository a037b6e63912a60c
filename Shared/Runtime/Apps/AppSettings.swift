// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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
        public var blockedExternalIDs: Set<String>

        /// The values that are blocked unless the app says otherwise (domain.md "Link").
        public static let defaultBlockedExternalIDs: Set<String> = [
            "null", "undefined", "anonymous", "guest", "0", "-1", "[object Object]", "NaN",
        ]

        public init(isEnabled: Bool = true, blockedExternalIDs: Set<String> = Self.defaultBlockedExternalIDs) {
            self.isEnabled = isEnabled
            self.blockedExternalIDs = blockedExternalIDs
        }

        /// Refuses external ids that cannot be one person's: outer white space, blocked values, only dashes and zeros.
        public func check(externalID: String) throws(Rejection) {
            let scalars = externalID.unicodeScalars
            if scalars.first?.properties.isWhitespace == true || scalars.last?.properties.isWhitespace == true {
                throw Rejection(.invalidRequest, "data.externalId starts or ends with white space.")
            }
            if externalID.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "0") }) {
                throw Rejection(.invalidRequest, "data.externalId has only dashes and zeros; it names nobody.")
            }
            if blockedExternalIDs.contains(externalID) {
                throw Rejection(.invalidRequest, "data.externalId is a blocked value; it does not name one person.")
            }
        }
    }
}
