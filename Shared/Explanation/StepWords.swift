// SPDX-License-Identifier: Apache-2.0

package import Contracts
import WireJSON

/// A decision in words: what was wanted, what became of it, and what changed.
package struct StepWords {
    /// Whether somebody who helps people has to see it: something changed, or was refused to somebody outside. The rest is
    /// how the services ask and answer each other.
    package static func isShown(_ fact: Fact) -> Bool {
        if !fact.events.isEmpty || fact.outcome == "rejected" { return true }
        let isOfServices = fact.source.text.hasPrefix(Topics.ownSources) && fact.source.text != Topics.gatewaySource
        return !isOfServices && fact.outcome != "noted"
    }

    /// What was wanted; of what a service heard, of what.
    package let title: String
    /// What became of it, where the lines do not say it.
    package let outcome: String?
    /// What changed, and whom it was about.
    package let lines: [String]
    /// Of the rule that decided, where one is known (``RuleNumbers``).
    package let rule: String?

    /// - Parameters:
    ///   - others: whom it is about, where that is nobody who is explained.
    ///   - people: who is explained.
    package init(_ fact: Fact, others: [String] = [], among people: KnownPeople? = nil) {
        let type = MessageWords.short(fact.type)
        title = Self.names[type] ?? "heard of \(type)"
        outcome =
            switch fact.outcome {
            case "succeeded": fact.events.isEmpty ? "succeeded, nothing changed" : nil
            case "noted": fact.events.isEmpty ? "nothing changed" : nil
            case "pending": "begun"
            case "expired": "too late"
            case "rejected": "refused, \(fact.reason ?? "?")" + (fact.message.map { ": \($0)" } ?? "")
            default: fact.outcome
            }
        let stranger = others.isEmpty ? nil : "this is about somebody else: \(others.joined(separator: " and "))"
        lines =
            [Self.found(fact), stranger].compactMap(\.self)
            + fact.events.map {
                EventWords.sentence($0, among: people)
            }
        rule = RuleNumbers.number(of: fact)
    }

    /// For a terminal.
    package static func lines(
        _ fact: Fact, others: [String] = [], among people: KnownPeople? = nil
    ) -> [String] {
        let words = StepWords(fact, others: others, among: people)
        let key = fact.authId.map { ", key \($0)" } ?? ""
        let head = "\(day(fact))  \(words.title)\(key)" + (words.outcome.map { ": \($0)" } ?? "")
        return [head] + words.lines.map { "    \($0)" }
    }

    /// Whom it was about, and by what they were found: that stands in the answer, and in no event.
    private static func found(_ fact: Fact) -> String? {
        guard let mpid = fact.result?["mpid"]?.stringValue, let matched = fact.result?["matchedIdentities"]?.objectValue
        else { return nil }
        // The answer names what the profile has by now, of what was named: what this very decision gave it found nobody.
        let given = fact.events.filter { MessageWords.short($0.type) == "sync.identities-changed" }
            .flatMap { $0.data["added"]?.arrayValue ?? [] }.compactMap { $0["type"]?.stringValue }
        let values = matched.members.filter { !given.contains($0.name) }
            .map { "\($0.name) \($0.value.stringValue ?? "?")" }
        if values.isEmpty { return fact.events.isEmpty ? "profile \(mpid)" : nil }
        return "profile \(mpid) was found by \(values.joined(separator: ", "))"
    }

    private static func day(_ fact: Fact) -> String {
        let text = fact.decidedAt.rfc3339
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(8))"
    }

    /// Commands by their short type. An event that one service hears of another keeps its type.
    package static let names = [
        "link.request": "request to link an install with an external id",
        "link.register-install": "registration of an install",
        "link.establish": "link of an install, for a creation",
        "link.query": "question about an install",
        "link.detach-install": "an install let go by its user",
        "link.set-install-status": "change of an install's status",
        "link.erase-user": "erasure of a user",
        "link.make-active": "an install made active by support",
        "link.unlink-user": "an external id taken by support",
        "link.change-external-id": "an external id changed by support",
        "link.forget": "erasure of a user",
        "link.import-users": "users brought from another system",
        "link.get-user": "question about a user",
        "link.get-erasure": "question about an erasure",
        "link.expire-user": "retention of a user",
        "link.facts": "question about an id",
        "user.request-auth-code": "request for a code",
        "user.create": "creation of a user",
        "user.link": "link asked for by the app",
        "user.confirm-link": "answer of the app's backend to a link",
        "user.reset": "reset of an install",
        "user.get": "question about an install",
        "user.expire-linker": "end of the wait for the app's backend",
        "user.forget": "erasure of a user",
        "user.expire-user": "retention of a user",
        "user.facts": "question about an id",
        "sync.identify": "identify",
        "sync.login": "login",
        "sync.logout": "logout",
        "sync.search": "search",
        "sync.modify": "change of identities",
        "sync.alias": "alias of two profiles",
        "sync.apply-alias": "alias of two profiles, when its time had come",
        "sync.get-users": "question about a device's users",
        "sync.get-profile": "question about a profile",
        "sync.get-erasure": "question about an erasure",
        "sync.facts": "question about an id",
        "sync.file-request": "request of a data subject",
        "sync.cancel-request": "request of a data subject, taken back",
        "sync.process-request": "request of a data subject, when its time had come",
        "sync.get-request": "question about a request of a data subject",
        "sync.get-requests": "question about requests of data subjects",
        "sync.get-request-results": "question about the results of a data subject's request",
        "sync.expire-device": "retention of a device",
        "sync.expire-profile": "retention of a profile",
        "sync.erase-profile": "erasure of a profile",
        "sync.forget": "erasure of a user",
        "sync.keep-erased": "erasure of a profile",
        "sync.detach": "people taken apart by support",
        "sync.import-profiles": "profiles brought from another system",
        "sync.restrict": "use of what is known of a person, changed by support",
        "sync.allow": "people allowed to meet again by support",
        "verification.login": "login, to be verified",
        "verification.login-identity": "login with an identity token",
        "verification.logout": "logout",
        "verification.check": "check of a token",
        "verification.usage": "question about the use of keys",
        "verification.get-session": "question about a session",
        "verification.review-session": "review of a session",
        "verification.forget": "erasure of sessions",
        "verification.expire-session": "retention of a session",
        "verification.facts": "question about an id",
        "reply": "answer of another service",
    ]
}
