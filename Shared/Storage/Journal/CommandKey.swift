// SPDX-License-Identifier: Apache-2.0

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

    /// Compared by bytes, as the database does. Swift's own `==` also takes canonically equivalent spellings for equal.
    public static func == (left: CommandKey, right: CommandKey) -> Bool {
        // What Swift takes for different has different bytes; the other way round they have to be looked at.
        left.id == right.id && left.source == right.source && left.app == right.app
            && left.id.utf8.elementsEqual(right.id.utf8) && left.source.utf8.elementsEqual(right.source.utf8)
            && left.app.utf8.elementsEqual(right.app.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for part in [app, source, id] {
            var part = part
            part.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            hasher.combine(0xFF as UInt8)
        }
    }
}
