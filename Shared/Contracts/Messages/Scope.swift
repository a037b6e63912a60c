// SPDX-License-Identifier: Apache-2.0

/// What an API key may ask for (the services' pages in docs). The vendor writes its scopes in two spellings
/// (F6: `user.link`, `USER_LINK`); both are read.
public enum Scope: String, Sendable, Hashable, CaseIterable {
    case userLink = "user.link"
    case userDelete = "user.delete"
    case sdk
    case identitySync = "identity.sync"
    /// Name login identities in an app that enforces verification. For backends; `identity.sync` is needed as well.
    case identityVouch = "identity.vouch"
    case verificationCheck = "verification.check"
    case admin
    /// Commands that only the deployment's own services may send. No API key can hold it.
    case `internal`

    public init?(spelling: String) {
        let dotted = spelling.lowercased().split(separator: "_", omittingEmptySubsequences: false).joined(
            separator: ".")
        self.init(rawValue: dotted)
    }
}
