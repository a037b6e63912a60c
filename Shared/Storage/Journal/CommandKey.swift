// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// What makes a command the same command: the app it was authenticated for, its source and its id.
public struct CommandKey: Sendable, Hashable {
    public let app: String
    public let source: String
    public let id: String

    public init(app: String, source: String, id: String) {
        self.app = app
        self.source = source
        self.id = id
    }
}
