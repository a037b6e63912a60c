// SPDX-License-Identifier: Apache-2.0

import Contracts
package import WireJSON

/// What stands in messages, on one line.
package enum MessageWords {
    package static let hidden = JSONValue.string("\u{2039}hidden\u{203A}")

    package static func short(_ type: String) -> String {
        type.hasPrefix("identity.") && type.hasSuffix(".v1") ? String(type.dropFirst(9).dropLast(3)) : type
    }

    /// `a=1 b=[..]`: an object's members on one line.
    package static func pairs(_ value: JSONValue, showsSecrets: Bool = false) -> String {
        let value = showsSecrets ? value : SecretMembers.replaced(in: value, by: hidden)
        guard let object = value.objectValue else { return text(value) }
        return object.members.map { "\($0.name)=\($0.value.stringValue ?? text($0.value))" }.joined(separator: " ")
    }

    private static func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }
}
