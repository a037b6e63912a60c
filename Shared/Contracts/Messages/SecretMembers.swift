// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// The members of commands and results that open something to whoever reads them: authentication codes, tokens, app
/// secrets. Every ``CommandResult`` that is confidential has one of them.
public enum SecretMembers {
    /// In no message does a member of these names mean anything else.
    public static let names: Set<String> = [
        "authenticationCode", "authCode", "appSecret", "tokenId", "installToken", "userAuthToken", "identityToken",
    ]

    /// The same value with another one in place of each secret, however deep it lies; without them when that is `nil`.
    /// What is `null` stays: there is no secret.
    public static func replaced(in value: JSONValue, by substitute: JSONValue?) -> JSONValue {
        switch value {
        case .object(let object):
            .object(
                JSONObject(
                    object.members.compactMap { member -> (String, JSONValue)? in
                        guard names.contains(member.name), member.value != .null else {
                            return (member.name, replaced(in: member.value, by: substitute))
                        }
                        return substitute.map { (member.name, $0) }
                    }))
        case .array(let elements): .array(elements.map { replaced(in: $0, by: substitute) })
        default: value
        }
    }
}
