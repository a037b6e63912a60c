// SPDX-License-Identifier: Apache-2.0

/// Checks shared by the commands.
enum Validation {
    /// Install, device and user ids: 1 to 255 UTF-8 bytes, no control characters (docs/contracts.md "Limits").
    static func id(_ text: String, _ member: String) throws(Rejection) {
        guard !text.isEmpty, text.utf8.count <= 255 else {
            throw Rejection(.invalidRequest, "data.\(member) has \(text.utf8.count) bytes; 1 to 255 are allowed.")
        }
        try noControlCharacters(text, member)
    }

    /// External ids and identity values: 1 to 750 characters.
    static func identityValue(_ text: String, _ member: String) throws(Rejection) {
        let length = text.unicodeScalars.count
        guard (1...750).contains(length) else {
            throw Rejection(.invalidRequest, "data.\(member) has \(length) characters; 1 to 750 are allowed.")
        }
        try noControlCharacters(text, member)
    }

    /// The names of one person in commands that erase: one of them, or both.
    static func person(_ userID: String?, _ externalID: String?) throws(Rejection) {
        guard userID != nil || externalID != nil else {
            throw Rejection(.invalidRequest, "data needs userId, externalId or both.")
        }
        if let userID { try id(userID, "userId") }
        if let externalID { try identityValue(externalID, "externalId") }
    }

    static func identityType(_ name: String, _ member: String) throws(Rejection) {
        guard IdentityType(rawValue: name) != nil else {
            // S4
            throw Rejection(.validationError, "data.\(member): \(String(name.prefix(40))) is not an identity type.")
        }
    }

    static func noControlCharacters(_ text: String, _ member: String) throws(Rejection) {
        // Unicode's category Cc, which will not grow; asking for a scalar's properties costs more than all else here.
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }) else {
            throw Rejection(.invalidRequest, "data.\(member) has a control character.")
        }
    }
}
