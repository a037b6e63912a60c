// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// The `identities` of an identity token, checked (V19, F59, F60).
struct TokenIdentities {
    /// What the vendor can name somebody by. The first value of each counts; only one uid is allowed.
    enum Identifier: String, CaseIterable {
        case uid, email
        case phoneNumber = "phone_number"
        case facebookID = "facebook_id"
        case discordID = "discord_id"
        case whatsAppID = "whatsapp_id"
        case googlePlayStoreID = "google_playstore_id"
        case appleGameCenterID = "apple_gamecenter_id"
        case nintendoID = "nintendo_id"
        case psnID = "psn_id"
        case xboxLiveID = "xbox_live_id"
        case steamID = "steam_id"
    }

    private var values: [Identifier: String] = [:]

    subscript(_ identifier: Identifier) -> String? { values[identifier] }

    /// - Throws: `IDENTITIES_DATA_INVALID`, naming the identity by its place and the vendor's name of the error;
    ///   `IDENTITIES_SIZE_LIMIT_EXCEEDED`.
    init(_ value: JSONValue?) throws(Rejection) {
        guard let list = value?.arrayValue else {
            throw Rejection(.identitiesDataInvalid, "The identity token has no list of identities.")
        }
        guard list.count <= 30 else { throw Rejection(.identitiesSizeLimitExceeded) }
        for (index, element) in list.enumerated() {
            let place = "identities[\(index)]"
            guard let object = element.objectValue, let name = object["identifier"]?.stringValue,
                let identifier = Identifier(rawValue: name)
            else { throw Self.invalid(place, "INVALID_DATA", "an object with a known identifier is expected") }
            let text = try Self.value(object["value"], identifier, place)
            try Self.check(metadata: object["metadata"], place)
            if identifier == .uid, values[.uid] != nil {
                throw Self.invalid(place, "INVALID_DATA", "there is a uid already")
            }
            if values[identifier] == nil { values[identifier] = text }
        }
    }

    private static func value(
        _ value: JSONValue?, _ identifier: Identifier, _ place: String
    ) throws(Rejection) -> String {
        guard let value, let text = value.stringValue else {
            throw invalid("\(place).value", "INVALID_VALUE_TYPE", "text is expected")
        }
        guard !text.isBlank else { throw invalid("\(place).value", "EMPTY_DATA", "it is empty") }
        let limit = identifier == .uid ? 750 : 300
        guard text.unicodeScalars.count <= limit else {
            throw invalid("\(place).value", "EXCEEDED_VALUE_LENGTH_LIMIT", "\(limit) characters are allowed")
        }
        guard !text.hasOuterWhiteSpace, !text.hasControlCharacter else {
            throw invalid("\(place).value", "INVALID_DATA", "it has outer white space or a control character")
        }
        guard identifier != .email || EmailAddress.isValid(text) else {
            throw invalid("\(place).value", "INVALID_DATA", "it is not an e-mail address")
        }
        return text
    }

    private static func check(metadata: JSONValue?, _ place: String) throws(Rejection) {
        guard let metadata, !metadata.isNull else { return }
        guard let object = metadata.objectValue else {
            throw invalid("\(place).metadata", "INVALID_VALUE_TYPE", "an object is expected")
        }
        guard object.count <= 30 else {
            throw invalid("\(place).metadata", "META_DATA_EXCEEDED_COUNT_LIMIT", "30 entries are allowed")
        }
        for member in object {
            guard member.name.unicodeScalars.count <= 255 else {
                throw invalid("\(place).metadata", "META_DATA_EXCEEDED_KEY_LENGTH_LIMIT", "255 characters are allowed")
            }
            guard let text = member.value.stringValue else {
                throw invalid("\(place).metadata", "INVALID_VALUE_TYPE", "text is expected")
            }
            guard !member.name.isBlank, !text.isBlank else {
                throw invalid("\(place).metadata", "METADATA_EMPTY_KEY_OR_VALUE", "an entry is empty")
            }
            guard text.unicodeScalars.count <= 300 else {
                throw invalid(
                    "\(place).metadata", "META_DATA_EXCEEDED_VALUE_LENGTH_LIMIT", "300 characters are allowed")
            }
        }
    }

    private static func invalid(_ place: String, _ error: String, _ what: String) -> Rejection {
        Rejection(.identitiesDataInvalid, "\(place): \(error), \(what).")
    }
}
