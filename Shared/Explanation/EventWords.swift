// SPDX-License-Identifier: Apache-2.0

package import Contracts
import WireJSON

/// An event as a sentence for somebody who helps people and has read no page.
package struct EventWords {
    private let data: JSONValue
    private let people: KnownPeople?

    /// Without a full stop. Of an event that has no words here, its type and members.
    /// - Parameter people: whom the reader sees beside it.
    package static func sentence(_ told: Fact.Told, among people: KnownPeople? = nil) -> String {
        let type = MessageWords.short(told.type)
        guard told.data != .null else { return "\(type), too long to be shown" }
        let words = EventWords(data: told.data, people: people)
        let parts = type.split(separator: ".", maxSplits: 1).map(String.init)
        let sentence: String? =
            switch parts.first {
            case "link": words.link(parts[1])
            case "user": words.user(parts[1])
            case "sync": words.sync(parts[1]) ?? words.ofSupport(parts[1])
            case "verification": words.verification(parts[1])
            default: nil
            }
        return sentence ?? "\(type)  \(MessageWords.pairs(told.data))"
    }

    // Parts of sentences

    private func text(_ name: String) -> String? { data[name]?.stringValue }
    private func says(_ name: String) -> String { text(name) ?? "?" }
    private func isTrue(_ name: String) -> Bool { data[name] == true }
    private func with(_ name: String, _ before: String, _ after: String = "") -> String {
        text(name).map { before + $0 + after } ?? ""
    }
    private func list(_ name: String) -> [String] { (data[name]?.arrayValue ?? []).compactMap(\.stringValue) }

    private func identities(_ name: String) -> String {
        (data[name]?.arrayValue ?? []).map(Self.words).joined(separator: ", ")
    }

    private var byHand: String { with("author", "; by ") + with("reason", ": ") }

    private func word(_ name: String, _ words: [String: String]) -> String {
        text(name).map { words[$0] ?? $0 } ?? "?"
    }

    // The services' events

    private func link(_ name: String) -> String? {
        switch name {
        case "install-registered":
            return "install \(says("installId")) is known now" + with("userId", ", with user ")
        case "linked":
            let active = text("activeInstallId")
            let gone = list("deactivatedInstallIds")
            return "install \(says("installId")) belongs to user \(says("userId")), external id \(says("externalId"))"
                + (isTrue("personCreated") ? ", who is new" : "")
                + (active == text("installId")
                    ? ", and is active" : active.map { "; active is \($0)" } ?? "; none is active")
                + (gone.isEmpty ? "" : "; no longer active: \(gone.joined(separator: ", "))")
        case "refused": return "the link of install \(says("installId")) was refused: \(says("reason"))"
        case "install-detached": return "install \(says("installId")) no longer belongs to user \(says("userId"))"
        case "install-status-changed":
            return "install \(says("installId")) is \(says("status"))"
                + (text("userId") == nil
                    ? ", without a user"
                    : " and \(isTrue("isActive") ? "active" : "not active") for user \(says("userId"))")
                + ", because " + word("cause", Self.causesOfStatus) + byHand
        case "user-erased": return "user \(says("userId")) is erased" + byHand
        case "user-expired": return "user \(says("userId")) is gone: nobody came back to install \(says("installId"))"
        case "external-id-removed":
            return "user \(says("userId")) no longer has the external id \(says("externalId"))" + byHand
        case "external-id-changed":
            return "user \(says("userId")) has the external id \(says("externalId"))"
                + with("previousExternalId", " in place of ") + byHand
        default: return nil
        }
    }

    private static let causesOfStatus = [
        "superseded": "the user moved to another install",
        "command": "somebody set it so",
        "restored": "the creation failed that the user had moved to",
        "chosen": "support chose it",
        "unlinked": "support took the user's external id",
        "relinked": "the user was linked again",
        "restricted": "what is known of the user is not to be used",
        "unrestricted": "what is known of the user may be used again",
    ]

    private func user(_ name: String) -> String? {
        let install = "install \(says("installId"))"
        switch name {
        case "auth-code-issued":
            return "a code for external id \(says("externalId")) is valid until \(says("expiresAt"))"
        case "created":
            return "user \(says("userId")) was created on \(install)"
                + (isTrue("isLinked") ? ", with an external id" : "")
        case "restored": return "user \(says("userId")) is back, on \(install)"
        case "linked": return "user \(says("userId")) on \(install) has an external id now"
        case "unlinked": return "user \(says("userId")) on \(install) has no external id any more"
        case "creation-failed":
            return "the creation of a user on \(install) failed"
                + (text("reason") == nil ? ": nobody answered in time" : with("reason", ": "))
        case "deactivated":
            return "\(install) is no longer active" + with("userId", " for user ") + ", because "
                + word(
                    "cause",
                    [
                        "superseded": "the user moved to another install", "disabled": "the install was disabled",
                        "deleted": "the install was deleted", "erased": "the user was erased",
                        "restricted": "what is known of the user is not to be used",
                    ])
        case "activated": return "\(install) is active again for user \(says("userId"))"
        case "erased": return "user \(says("userId")) is erased"
        case "reset": return "\(install) was reset" + with("userId", ", and no longer has user ")
        default: return nil
        }
    }

    private func sync(_ name: String) -> String? {
        switch name {
        case "profile-created":
            let has = identities("identities")
            return "profile \(says("mpid")) was made" + (has.isEmpty ? "" : " with \(has)")
        case "current-user-changed":
            return currentUserChanged
        case "identities-changed": return identitiesChanged
        case "profile-orphaned":
            return "profile \(says("mpid")) has no identity left" + with("takenBy", ": profile ", " has it")
                + ", and nobody finds it any more"
        case "linked-user-changed":
            return "profile \(says("mpid")) is \(whose)\(otherIdentities)"
        case "profile-joined":
            return "profile \(says("sourceMPID")) counts as the same person as \(says("destinationMPID")), who has its"
                + " customer id now, and would be erased with it\(otherIdentities)"
        case "aliased":
            return "profile \(says("sourceMPID")) was aliased: it is profile \(says("destinationMPID")) from now on"
        case "alias-dropped":
            return "the alias of profile \(says("sourceMPID")) to \(says("destinationMPID")) is not applied: "
                + word("rule", Self.rulesOfDroppedAliases)
        case "profile-erased": return "profile \(says("mpid")) is erased"
        case "current-user-erased":
            return "device \(says("deviceId")) has no profile any more: "
                + (text("cause") == "expire" ? "nobody used it" : "\(says("mpid")) is erased")
        case "request-changed":
            return "the request \(says("requestId")) for \(says("kind")) is \(says("status"))" + with("reason", ": ")
        case "profile-expired": return "profile \(says("mpid")) is gone: nobody came back"
        case "device-expired": return "what was known of device \(says("deviceId")) is gone: nobody used it"
        default: return nil
        }
    }

    /// Who came, and who went.
    private var currentUserChanged: String {
        let (device, state) = ("device \(says("deviceId"))", isTrue("isLoggedIn") ? "logged in" : "not logged in")
        guard let before = text("previousMPID"), before != text("mpid") else {
            return "\(device) has profile \(says("mpid")), \(state)"
                + (text("previousMPID") == nil ? "" : ", as before")
        }
        let after = profile(says("mpid"))
        return "\(device) went from \(profile(before)) to \(after)\(after.hasSuffix(",") ? "" : ",") \(state)"
    }

    private func profile(_ mpid: String) -> String { people?.profile(mpid) ?? "profile \(mpid)" }

    /// Which user of the link service it is.
    private var whose: String {
        guard let user = text("userId") else { return "no longer that of user \(says("previousUserId"))" }
        return "that of user \(user)" + with("previousUserId", ", and no longer that of user ")
    }

    /// What goes along with the customer id.
    private var otherIdentities: String {
        let others = (data["identities"]?.arrayValue ?? []).filter {
            $0["type"]?.stringValue != IdentityType.customerID.rawValue
        }
        return " (its devices\(others.map { " and \(Self.words(of: $0))" }.joined()) too)"
    }

    private var identitiesChanged: String {
        let (added, removed) = (identities("added"), identities("removed"))
        let changes = [added.isEmpty ? nil : "has \(added)", removed.isEmpty ? nil : "no longer has \(removed)"]
        let why = Self.reasonsOfIdentities[text("reason") ?? ""].map { ": \($0)" } ?? ""
        return "profile \(says("mpid")) \(changes.compactMap(\.self).joined(separator: ", and "))\(why)"
    }

    private static let reasonsOfIdentities = [
        "replaced": "a newer value came",
        "taken": "another profile has it now",
        "limit": "it had too many, and the oldest went",
        "detached": "support took them apart",
        "cleared": "the one that it was shared with has it alone",
    ]

    private static let rulesOfDroppedAliases = [
        "source-was-source-before": "the first was aliased to somebody before",
        "source-was-destination-before": "somebody was aliased to the first before",
        "destination-was-source-before": "the second was aliased to somebody before",
        "erased": "one of the two was erased",
        "detached": "support took the two apart",
        "became-known": "nobody vouched for it, and one of the two is known now",
        "restricted": "what is known of one of the two is not to be used",
    ]

    /// What support did, and what comes of it.
    private func ofSupport(_ name: String) -> String? {
        switch name {
        case "profile-detached":
            return "\(identities("identities")) went from profile \(says("fromMPID")) to \(says("toMPID"))" + byHand
        case "merge-barred":
            return "a login on device \(says("deviceId")) as profile \(says("mpid")) left out its "
                + list("types").joined(separator: ", ") + ": support has taken these people apart"
        case "merge-allowed":
            let allowed = data["allowed"]?.arrayValue ?? []
            let more = (data["allowedCount"]?.int64Value ?? 0) - Int64(allowed.count)
            return "profile \(says("mpid")) may meet \(allowedToMeet(allowed).joined(separator: ", "))"
                + (more > 0 ? " and \(more) more" : "") + " again" + byHand
        case "restriction-changed":
            return "what is known of profile \(says("mpid")) \(mayBeUsed)" + byHand
        case "user-restriction-changed":
            return "what is known of user \(says("userId")) \(mayBeUsed), as profile \(says("mpid")) says"
        case "value-too-common":
            return "one value of \(says("type")) is shared by many profiles: most likely it names nobody"
        default: return nil
        }
    }

    /// The others, each with what stood between: what either of the two was not to have.
    private func allowedToMeet(_ barriers: [JSONValue]) -> [String] {
        let own = text("mpid")
        var between: [(other: String, identities: [String])] = []
        for barrier in barriers {
            let ends = ["mpid", "otherMPID"].compactMap { barrier[$0]?.stringValue }
            let other = ends.first { $0 != own } ?? "?"
            let identity = Self.words(of: barrier["identity"])
            if let place = between.firstIndex(where: { $0.other == other }) {
                between[place].identities.append(identity)
            } else {
                between.append((other, [identity]))
            }
        }
        return between.map { "\($0.other) (\($0.identities.joined(separator: ", ")))" }
    }

    /// The type and the value.
    static func words(of identity: JSONValue?) -> String {
        "\(identity?["type"]?.stringValue ?? "?") \(identity?["value"]?.stringValue ?? "?")"
    }

    private var mayBeUsed: String { isTrue("isRestricted") ? "is kept and not used" : "may be used again" }

    private func verification(_ name: String) -> String? {
        let device = "device \(says("deviceId"))"
        switch name {
        case "verified": return "\(device) proved who its user is" + with("keyId", ", by key ")
        case "failed": return "\(device) did not prove who its user is\(proof): \(says("reason"))"
        case "unverified-observed":
            return "\(device) did not prove who its user is\(proof), which this app lets pass: \(says("reason"))"
        case "session-changed":
            let profile = with("mpid", ", profile ")
            return switch text("cause") {
            case "login": "the session of \(device) is \(says("state"))\(profile)"
            case "logout": "the session of \(device) ended: the user logged out\(profile)"
            case "refusal": "the session of \(device) is \(says("state")): its login was refused"
            default: "the session of \(device) ended: " + word("reason", Self.endsOfSessions) + profile
            }
        case "erased": return "the sessions of \(list("mpids").joined(separator: ", ")) are gone"
        case "session-expired": return "nothing is known of \(device) any more: nobody used it"
        default: return nil
        }
    }

    /// With what it was to be proved, and whose key made that.
    private var proof: String {
        let signer = with("keyId", " of key ")
        return switch text("method") {
        case "authToken": ", with an authentication token\(signer)"
        case "identityToken": ", with an identity token\(signer)"
        default: ""
        }
    }

    private static let endsOfSessions = [
        "keyGone": "the key of its token is no longer valid",
        "verificationRequired": "the app wants verified users now",
        "sessionExpired": "it was too old",
        "erased": "the user was erased",
        "userChanged": "the device has another user",
        "detached": "support took people apart",
        "sessionForgotten": "nobody has used the device for long",
    ]
}
