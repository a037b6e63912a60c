// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// The kinds of identity there are, by their wire names (F30). Which of them mark a login, are unique
/// or cannot change is a setting of each app.
public enum IdentityType: String, WireEnum, Comparable {
    case customerID = "customerid"
    case email
    case other, other2, other3, other4, other5, other6, other7, other8, other9, other10
    case mobileNumber = "mobile_number"
    case phoneNumber2 = "phone_number_2"
    case phoneNumber3 = "phone_number_3"
    case facebook, twitter, google, microsoft, yahoo
    case facebookCustomAudienceID = "facebookcustomaudienceid"
    case alias
    case deviceApplicationStamp = "device_application_stamp"
    case iosIDFA = "ios_idfa"
    case iosIDFV = "ios_idfv"
    case androidAAID = "android_aaid"
    case androidUUID = "android_uuid"
    case fireAID = "fire_aid"
    case pushToken = "push_token"
    case rokuAID = "roku_aid"
    case rokuPublisherID = "roku_publisher_id"
    case ampID = "amp_id"
    case microsoftAID = "microsoft_aid"
    case microsoftPublisherID = "microsoft_publisher_id"

    public static func < (left: IdentityType, right: IdentityType) -> Bool { left.rawValue < right.rawValue }
}

/// One identity as events and results write it.
public struct Identity: Codable, Sendable, Hashable {
    public var type: IdentityType
    public var value: IdentityValue

    public init(_ type: IdentityType, _ value: IdentityValue) {
        self.type = type
        self.value = value
    }
}

/// The device an install lives on. Only `kind` takes part in decisions (phones are preferred to tablets, L22).
public struct Device: Codable, Sendable, Hashable {
    public enum Kind: String, WireEnum {
        case phone, tablet, other
    }

    public var kind: Kind
    public var platform: String
    public var model: String?
    public var osVersion: String?

    public init(kind: Kind, platform: String, model: String? = nil, osVersion: String? = nil) {
        self.kind = kind
        self.platform = platform
        self.model = model
        self.osVersion = osVersion
    }

    func validate() throws(Rejection) {
        for (member, text) in [("platform", platform), ("model", model), ("osVersion", osVersion)] {
            if let text { try Validation.text(text, "device.\(member)") }
        }
    }
}

/// A closed set of words on the wire. Reading any other word fails with the list of those that would be right.
public protocol WireEnum: RawRepresentable<String>, Codable, Sendable, Hashable, CaseIterable {}

extension WireEnum {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Self(rawValue: try container.decode(String.self)) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "expected one of \(known)")
        }
        self = value
    }
}

/// A map that is written in the order of its keys, so that the same content has the same bytes in every process.
@propertyWrapper
public struct SortedKeys<Value: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
    public var wrappedValue: [String: Value]

    public init(wrappedValue: [String: Value]) { self.wrappedValue = wrappedValue }

    public init(from decoder: any Decoder) throws { wrappedValue = try [String: Value](from: decoder) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        for (name, value) in wrappedValue.sorted(by: { $0.key.precedesByBytes($1.key) }) {
            try container.encode(value, forKey: AnyKey(name))
        }
    }
}

/// Checks shared by the commands.
enum Validation {
    /// Install, device and user ids: 1 to 255 UTF-8 bytes, no control characters (docs/contracts.md "Limits").
    static func id(_ id: ID<some Any>, _ member: String) throws(Rejection) { try text(id.text, member) }

    /// What is as long as an id, and shown like one.
    static func text(_ text: String, _ member: String) throws(Rejection) {
        guard !text.isEmpty, text.utf8.count <= 255 else {
            throw Rejection(.invalidRequest, "data.\(member) has \(text.utf8.count) bytes; 1 to 255 are allowed.")
        }
        try noControlCharacters(text, member)
    }

    /// External ids and identity values: 1 to 750 characters.
    static func identityValue(_ id: ID<some Any>, _ member: String) throws(Rejection) {
        try identityValue(id.text, member)
    }

    static func identityValue(_ text: String, _ member: String) throws(Rejection) {
        let length = text.unicodeScalars.count
        guard (1...750).contains(length) else {
            throw Rejection(.invalidRequest, "data.\(member) has \(length) characters; 1 to 750 are allowed.")
        }
        try noControlCharacters(text, member)
    }

    /// The names of one person in commands that erase: one of them, or both.
    static func person(_ userID: UserID?, _ externalID: ExternalID?) throws(Rejection) {
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
        guard !text.hasControlCharacter else {
            throw Rejection(.invalidRequest, "data.\(member) has a control character.")
        }
    }
}

extension String {
    /// Of Unicode's category Cc, which will not grow; asking for a scalar's properties would cost more.
    package var hasControlCharacter: Bool {
        unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    }
}
