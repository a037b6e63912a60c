// SPDX-License-Identifier: Apache-2.0

/// A person: the user id the platform gave, and the external id once it is linked. (app, external id) -> user id is
/// 1:1 (L18).
public struct Person: Sendable, Hashable {
    /// 24 lower-case hex characters.
    public var userID: String
    public var app: String
    /// `nil` for a person that was created unlinked, and for an erased one.
    public var externalID: String?
    /// An erased person is a tombstone: the id is never used again.
    public var isErased: Bool

    public init(userID: String, app: String, externalID: String? = nil, isErased: Bool = false) {
        self.userID = userID
        self.app = app
        self.externalID = externalID
        self.isErased = isErased
    }

    /// L38.
    public var tombstone: Person { Person(userID: userID, app: app, isErased: true) }
}
