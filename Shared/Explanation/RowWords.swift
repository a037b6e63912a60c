// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What a service holds, as a sentence.
package enum RowWords {
    package static func text(_ row: IdentityWalk.Row) -> String {
        let value = row.value
        func member(_ name: String) -> String { value[name]?.stringValue ?? "?" }
        func number(_ name: String) -> String { value[name]?.int64Value.map(String.init) ?? "?" }
        func with(_ name: String, _ word: String) -> String { value[name]?.stringValue.map { ", \(word) \($0)" } ?? "" }
        func mark(_ name: String, _ word: String) -> String { value[name] == true ? ", \(word)" : "" }
        func list(_ name: String) -> String {
            (value[name]?.arrayValue ?? []).compactMap(\.stringValue).joined(separator: ", ")
        }
        let text =
            switch (row.service, value["kind"]?.stringValue) {
            case ("link", "install") where value["status"] == nil:
                "install \(member("installId")) (\(member("device")), \(member("platform"))) has another user, "
                    + member("userId")
            case ("link", "install"):
                "install \(member("installId")) (\(member("device")), \(member("platform"))) is \(member("status")), "
                    + (value["userId"]?.stringValue.map { "user \($0)" } ?? "no user") + ", \(member("activity"))"
                    + (value["inactiveBecause"] == "restricted" ? ", and not to be used: the user is restricted" : "")
            case ("link", "user"):
                value["isErased"] == true
                    ? "user \(member("userId")) is erased" + erasure(value)
                    : "user \(member("userId")) "
                        + (value["externalId"]?.stringValue.map { "has external id \($0)" } ?? "is unlinked")
                        + mark("isRestricted", "restricted")
            case ("link", "hold") where value["userId"] == nil:
                "external id \(member("externalId")) was changed, and is kept for whoever had it until \(member("until"))"
            case ("link", "hold"):
                "external id \(member("externalId")) was changed, and was user \(member("userId"))'s; nobody else gets it "
                    + "before \(member("until"))"
            case ("user", "user"):
                "user \(member("userId")) is erased"
            case ("user", "codes"):
                "codes for external id \(member("externalId")): \(number("count")), of them not used: \(number("unused"))"
            case ("user", "install") where value["phase"] == nil:
                "install \(member("installId")) has another user, \(member("userId"))"
            case ("user", "install"): "install \(member("installId")) is \(member("phase"))" + with("userId", "user")
            case ("sync", "identity"):
                "\(member("type")) \(member("value")) is held by \(list("mpids").isEmpty ? "nobody" : list("mpids"))"
            case ("sync", "profile"):
                value["isErased"] == true
                    ? "profile \(member("mpid")) is erased" + erasure(value)
                    : "profile \(member("mpid")) has \(identities(value))" + mark("isRestricted", "restricted")
                        + mark("isOrphaned", "orphaned") + with("userId", "link user")
                        + (list("apartFrom").isEmpty ? "" : ", kept apart from \(list("apartFrom"))")
                        + ", seen \(member("firstSeen")) to \(member("lastSeen"))"
            case ("sync", "device"):
                "device \(member("deviceId")) has current user \(value["mpid"]?.stringValue ?? "nobody"); "
                    + "seen there: \(list("users"))"
            case ("verification", "session") where value["state"] == nil:
                "device \(member("deviceId")) has another profile, \(member("mpid"))"
            case ("verification", "session"):
                "device \(member("deviceId")) is \(member("state"))" + with("mpid", "profile")
            default: MessageWords.pairs(value)
            }
        return "\(row.service): \(text)"
    }

    /// Since when somebody is erased, and as far as the service knows, whether all services have done it.
    private static func erasure(_ row: JSONValue) -> String {
        guard let start = row["erasedAt"]?.stringValue else { return "" }
        let end = row["completedAt"]?.stringValue.map { ", in all services at \($0)" }
        return " since \(start)" + (row["isUnderWay"] == true ? ", and not yet in all services" : end ?? "")
    }

    private static func identities(_ profile: JSONValue) -> String {
        let list = (profile["identities"]?.arrayValue ?? []).map(EventWords.words)
        return list.isEmpty ? "no identities" : list.joined(separator: ", ")
    }
}
