// SPDX-License-Identifier: Apache-2.0

/// What tells one strategy from another (facts/idsync.md 3.1): data, so that one resolver serves all.
public struct SyncStrategy: Sendable, Hashable {
    /// How a profile is found.
    public enum Lookup: Sendable, Hashable {
        /// Down the app's identity priority.
        case priority
        /// The customer id first, then the e-mail (domain.md "Verification").
        case userIDThenEmail
    }

    /// A login identity that no profile has yet, while an anonymous profile matches.
    public enum NewLogin: Sendable, Hashable {
        /// The anonymous profile becomes the person's.
        case convertAnonymous
        /// The person gets a new profile.
        case createProfile
    }

    public enum Logout: Sendable, Hashable {
        /// Always a new anonymous profile.
        case createAnonymous
        /// Back to the anonymous profile that matches, if there is one.
        case returnToMatching
        /// Back to the anonymous user the device had last, if it still is one.
        case returnToDevices
        /// There are no known users, and a logout is like an identify.
        case identify
    }

    public var name: String
    public var lookup: Lookup
    public var newLogin: NewLogin
    public var logout: Logout
    public var allowsAlias: Bool

    public static let `default` = SyncStrategy(
        name: "default", lookup: .priority, newLogin: .convertAnonymous, logout: .createAnonymous, allowsAlias: true)
    public static let conversion = SyncStrategy(
        name: "conversion", lookup: .priority, newLogin: .convertAnonymous, logout: .createAnonymous,
        allowsAlias: true)
    public static let link = SyncStrategy(
        name: "link", lookup: .priority, newLogin: .createProfile, logout: .createAnonymous, allowsAlias: true)
    public static let isolation = SyncStrategy(
        name: "isolation", lookup: .priority, newLogin: .createProfile, logout: .returnToMatching, allowsAlias: false)
    public static let bestMatch = SyncStrategy(
        name: "bestMatch", lookup: .priority, newLogin: .convertAnonymous, logout: .identify, allowsAlias: false)
    public static let userIDThenEmail = SyncStrategy(
        name: "userIdThenEmail", lookup: .userIDThenEmail, newLogin: .createProfile, logout: .returnToDevices,
        allowsAlias: false)

    public static let all = [`default`, conversion, link, isolation, bestMatch, userIDThenEmail]
}
