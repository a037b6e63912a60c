// SPDX-License-Identifier: Apache-2.0

public import WireJSON

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

    /// Whether it names a device, or a copy of an app on one, and not a person: several people may use it, and nobody need
    /// vouch for it (S70).
    public var isDevice: Bool {
        switch self {
        case .deviceApplicationStamp, .iosIDFA, .iosIDFV, .androidAAID, .androidUUID, .fireAID, .pushToken, .rokuAID,
            .rokuPublisherID, .ampID, .microsoftAID, .microsoftPublisherID:
            true
        case .customerID, .email, .other, .other2, .other3, .other4, .other5, .other6, .other7, .other8, .other9,
            .other10, .mobileNumber, .phoneNumber2, .phoneNumber3, .facebook, .twitter, .google, .microsoft, .yahoo,
            .facebookCustomAudienceID, .alias:
            false
        }
    }

    /// By its byte: what Swift makes for an enum of words hashes the word, and sets of types are asked at every turn.
    public func hash(into hasher: inout Hasher) { withUnsafeBytes(of: self) { hasher.combine(bytes: $0) } }
}

extension Identity {
    public init(_ type: IdentityType, _ value: IdentityValue) { self.init(type: type, value: value) }
}

/// A closed set of words on the wire. Reading any other word fails with the list of those that would be right.
public protocol WireEnum: RawRepresentable<String>, Codable, WireReadable, WireWritable, Sendable, Hashable,
    CaseIterable
{}

extension WireEnum {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Self(rawValue: try container.decode(String.self)) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "expected one of \(known)")
        }
        self = value
    }

    public init?(usual view: JSONView) {
        guard let text = view.stringValue else { return nil }
        self.init(rawValue: text)
    }

    public func write(to json: inout JSONOutput) { json.write(rawValue) }
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
