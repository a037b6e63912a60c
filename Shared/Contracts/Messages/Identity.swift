// SPDX-License-Identifier: Apache-2.0

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
    public var value: String

    public init(_ type: IdentityType, _ value: String) {
        self.type = type
        self.value = value
    }

    public static func == (left: Identity, right: Identity) -> Bool {
        left.type == right.type && ExactText(left.value) == ExactText(right.value)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(ExactText(value))
    }
}
