// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Supervision
import WireJSON

/// What another version of the apps file would do, once services have it.
struct AppsComparison {
    struct Change: Equatable {
        var app: AppID
        var what: String
        var meaning: String
    }

    let topics: Topics
    /// Digests of secrets by their places.
    let oldSecrets: [String: [UInt8]]
    let newSecrets: [String: [UInt8]]

    func changes(from old: AppDirectory, to new: AppDirectory) -> [Change] {
        Set(old.ids + new.ids).sorted().flatMap { id -> [Change] in
            switch (old[id], new[id]) {
            case (let old?, let new?): return changes(from: old, to: new)
            case (nil, let new?): return [arrival(of: new)]
            case (_?, nil):
                let meaning = "its commands become dead letters; its people stay stored"
                return [Change(app: id, what: "app gone", meaning: meaning)]
            case (nil, nil): return []
            }
        }
    }

    private func arrival(of app: AppSettings) -> Change {
        let keys = "\(app.keys.count) key\(app.keys.count == 1 ? "" : "s")"
        var made: [String] = []
        if let replies = app.replies { made.append(topics.prefix + replies) }
        if app.ownCommandsTopics { made += commandsTopics(of: app.id) }
        return Change(
            app: app.id, what: "new app (\(keys))",
            meaning: made.isEmpty ? "its commands are taken from then on" : "creates \(Self.list(made))")
    }

    private func commandsTopics(of app: AppID) -> [String] { serviceNames.map { topics.commands($0, of: app) } }

    private static func list(_ topics: [String]) -> String {
        "topic\(topics.count == 1 ? "" : "s") \(topics.joined(separator: ", "))"
    }

    private func changes(from old: AppSettings, to new: AppSettings) -> [Change] {
        let special =
            keyChanges(old, new) + topicChanges(old, new) + secretChanges(new) + verificationChanges(old, new)
        let members = Self.members.compactMap { member -> Change? in
            let (before, after) = (member.value(old), member.value(new))
            if before == after { return nil }
            return Change(app: new.id, what: "\(member.name) \(before) -> \(after)", meaning: member.meaning)
        }
        guard old.linking.nobody != new.linking.nobody else { return special + members }
        let blocked = Change(
            app: new.id, what: "linking: other values name nobody",
            meaning: "they are refused as external ids and login identities; stored ones stay")
        return special + [blocked] + members
    }

    // MARK: Keys

    private func keyChanges(_ old: AppSettings, _ new: AppSettings) -> [Change] {
        Set(old.keys.keys).union(new.keys.keys).sorted().flatMap { id -> [Change] in
            switch (old.keys[id], new.keys[id]) {
            case (let before?, let after?): return keyChanges(before, after, new.id)
            case (_?, nil):
                return [
                    Change(
                        app: new.id, what: "key \(id) ends now",
                        meaning: "commands waiting under it become dead letters")
                ]
            case (nil, let key?):
                let scopes = key.scopes.map(\.rawValue).sorted().joined(separator: ", ")
                return [
                    Change(app: new.id, what: "new key \(id)", meaning: "may \(scopes.isEmpty ? "nothing" : scopes)")
                ]
            case (nil, nil): return []
            }
        }
    }

    private func keyChanges(_ old: APIKey, _ new: APIKey, _ app: AppID) -> [Change] {
        var changes: [Change] = []
        func add(_ what: String, _ meaning: String) {
            changes.append(Change(app: app, what: "key \(new.id) \(what)", meaning: meaning))
        }
        if old.secret != new.secret {
            add("has another secret", "what was signed with the one before becomes a dead letter")
        }
        let lost = old.scopes.subtracting(new.scopes).map(\.rawValue).sorted()
        let won = new.scopes.subtracting(old.scopes).map(\.rawValue).sorted()
        if !lost.isEmpty { add("loses \(lost.joined(separator: ", "))", "such commands under it are refused") }
        if !won.isEmpty { add("may \(won.joined(separator: ", "))", "such commands under it are taken") }
        if old.isRevoked != new.isRevoked {
            add(
                new.isRevoked ? "is revoked" : "is revoked no more",
                new.isRevoked ? "commands waiting under it become dead letters" : "its commands are taken from then on")
        }
        if old.expires != new.expires {
            let end = new.expires.map { "ends \($0.rfc3339)" } ?? "has no end any more"
            let isOver = new.expires.map { $0 <= .now } ?? false
            add(end, isOver ? "that is over: its commands become dead letters" : "until then nothing changes")
        }
        return changes
    }

    // MARK: Topics

    private func topicChanges(_ old: AppSettings, _ new: AppSettings) -> [Change] {
        var changes: [Change] = []
        if old.replies != new.replies {
            let shared = topics.replies
            let (before, after) = (old.replies.map { topics.prefix + $0 }, new.replies.map { topics.prefix + $0 })
            changes.append(
                Change(
                    app: new.id, what: "replies \(before ?? shared) -> \(after ?? shared)",
                    meaning: after.map { "creates topic \($0); answers come there only" }
                        ?? "answers come to the topic that all apps share"))
        }
        if old.ownCommandsTopics != new.ownCommandsTopics {
            changes.append(
                Change(
                    app: new.id, what: "ownCommandsTopics \(old.ownCommandsTopics) -> \(new.ownCommandsTopics)",
                    meaning: new.ownCommandsTopics
                        ? "creates \(Self.list(commandsTopics(of: new.id)))"
                        : "gateways write to the shared topics; services read its own until they are restarted"))
        }
        return changes
    }

    // MARK: Secrets

    /// Of API keys something else is said.
    private func secretChanges(_ app: AppSettings) -> [Change] {
        let places = ["sdk, appSecret", "sdk, tokenSecret", "verification, identityTokenSecret"]
        return places.compactMap { words -> Change? in
            let place = "app \(app.id), \(words)"
            let (before, after) = (oldSecrets[place], newSecrets[place])
            if before == after { return nil }
            let member = words.replacing(", ", with: ".")
            let what =
                before == nil ? "\(member) is new" : after == nil ? "\(member) ends" : "\(member) is another one"
            return Change(app: app.id, what: what, meaning: Self.meaning(ofSecret: words, isNew: before == nil))
        }
    }

    private static func meaning(ofSecret words: String, isNew: Bool) -> String {
        switch words {
        case "sdk, appSecret":
            isNew
                ? "copies of the app that have it can create users"
                : "copies of the app with the one before cannot create users"
        case "sdk, tokenSecret": "user tokens of before are refused; devices need a code again"
        default: isNew ? "identity tokens made with it pass" : "identity tokens made with the one before are refused"
        }
    }

    // MARK: Verification

    private func verificationChanges(_ old: AppSettings, _ new: AppSettings) -> [Change] {
        var changes: [Change] = []
        let (before, after) = (old.verification, new.verification)
        func add(_ what: String, _ meaning: String) {
            changes.append(Change(app: new.id, what: "verification.\(what)", meaning: meaning))
        }
        if before.mode != after.mode {
            let meaning =
                switch after.mode {
                case .off: "tokens are ignored from then on"
                case .report: "tokens are checked and counted, and nobody is stopped"
                case .enforce: "logins without a token are refused from then on"
                }
            add("mode \(before.mode.rawValue) -> \(after.mode.rawValue)", meaning)
        }
        if before.signedFields != after.signedFields {
            add(
                "signedFields \(before.signedFields.rawValue) -> \(after.signedFields.rawValue)",
                "tokens that are signed otherwise are refused")
        }
        for (list, old, new) in [
            ("key", before.keys, after.keys),
            ("identityTokenSecrets", before.identityTokenSecrets, after.identityTokenSecrets),
        ] {
            let (old, new) = (old.filter { $0.shownID != nil }, new.filter { $0.shownID != nil })
            for key in old {
                guard let other = new.first(where: { $0.id == key.id }) else {
                    add("\(list) \(key.id) ends now", "tokens made with it are refused")
                    continue
                }
                if other.secret != key.secret {
                    add("\(list) \(key.id) has another secret", "tokens made with the one before are refused")
                }
                if other.retireAt != key.retireAt {
                    add(
                        "\(list) \(key.id) " + (other.retireAt.map { "retires \($0.rfc3339)" } ?? "retires no more"),
                        "from then on tokens made with it are refused")
                }
            }
            for key in new where !old.contains(where: { $0.id == key.id }) {
                add("new \(list) \(key.id)", "tokens made with it pass")
            }
        }
        return changes
    }

    // MARK: Everything else

    private struct Member: Sendable {
        var name: String
        var value: @Sendable (AppSettings) -> String
        var meaning: String

        init(_ name: String, _ meaning: String, _ value: @escaping @Sendable (AppSettings) -> String) {
            self.name = name
            self.value = value
            self.meaning = meaning
        }
    }

    private static func names(_ types: some Sequence<IdentityType>) -> String {
        "[\(types.map(\.rawValue).joined(separator: ", "))]"
    }

    private static let resolved = "decides from then on whose profile a command finds; stored ones stay"
    private static let people = "stored values stay; new ones are bounded by it"

    private static let members = [linking, sdk, sync, throttles, gateway, verification, retention, requests].flatMap {
        $0
    }

    private static let verification = [
        Member("verification.fullPrivacy", "logins from then on") { "\($0.verification.fullPrivacy)" },
        Member("verification.clearAnonymousUserOnLogin", "logins from then on") {
            "\($0.verification.clearAnonymousUserOnLogin)"
        },
        Member("verification.sessionSeconds", "sessions from then on, and those that there are") {
            $0.verification.sessionLifetime.map { "\($0 / 1000)" } ?? "none"
        },
        Member("verification.identityTokenAudience", "identity tokens for another audience are refused") {
            $0.verification.identityTokenAudience ?? "none"
        },
        Member("verification.identityTokenIssuer", "identity tokens of another issuer are refused") {
            $0.verification.identityTokenIssuer ?? "none"
        },
    ]

    private static let retention = ["anonymousDays", "orphanDays", "deviceDays", "sessionDays", "unlinkedDays"].map {
        name in
        Member("retention.\(name)", "what has not been used for so long goes, from the next look on") { app in
            app.retention.periods.first { $0.member == name }.map { "\($0.milliseconds / 86_400_000)" } ?? "none"
        }
    }

    private static let requests = [
        Member("dsr.delayHours", "requests of data subjects from then on") { "\($0.requests.delay / 3_600_000)" }
    ]

    private static let linking = [
        Member("linking.enabled", "while it is false, link requests are refused") { "\($0.linking.isEnabled)" },
        Member("linking.clockToleranceSeconds", "link requests from then on") {
            "\($0.linking.clockTolerance / 1000)"
        },
        Member("linking.holdDays", "for external ids that are changed from then on") {
            "\($0.linking.hold / 86_400_000)"
        },
    ]

    private static let sdk = [
        Member("sdk.authCodeLifetimeSeconds", "codes from then on") { "\($0.sdk.authCodeLifetime / 1000)" },
        Member("sdk.maxOutstandingCodes", "codes from then on") { "\($0.sdk.maxOutstandingCodes)" },
        Member("sdk.linkerTimeoutSeconds", "links that begin from then on") { "\($0.sdk.linkerTimeout / 1000)" },
        Member("sdk.tokenLifetimeSeconds", "tokens from then on") { "\($0.sdk.tokenLifetime / 1000)" },
        Member("sdk.tokenGraceSeconds", "decides at once which expired tokens can be renewed") {
            "\($0.sdk.tokenGrace / 1000)"
        },
        Member("sdk.configuration", "devices get it with their next answer") {
            String(decoding: $0.sdk.configuration.serialized(), as: UTF8.self)
        },
        Member("sdk.keysOpenInstalls", "whether a key with the scope sdk opens every install") {
            "\($0.sdk.keysOpenInstalls)"
        },
    ]

    private static let sync = [
        Member("sync.strategy", resolved) { $0.sync.strategy.name },
        Member("sync.priority", resolved) { names($0.sync.priority) },
        Member("sync.loginIdentities", resolved) { names($0.sync.loginIdentities.sorted()) },
        Member("sync.uniqueIdentities", resolved) { names($0.sync.uniqueIdentities.sorted()) },
        Member("sync.immutableIdentities", resolved) { names($0.sync.immutableIdentities.sorted()) },
        Member(
            "sync.caseInsensitiveIdentities",
            "refused, and the file before stays in force, while the store has such values: see identitybus rekey"
        ) { names($0.sync.foldedIdentities.sorted()) },
        Member("sync.searchByAnyIdentity", "searches from then on") { "\($0.sync.searchByAnyIdentity)" },
        Member("sync.fromLinks", "links from then on make profiles, or do so no more") { "\($0.sync.fromLinks)" },
        Member("sync.joinByLowerRank", resolved) { "\($0.sync.joinByLowerRank)" },
        Member("sync.limits.valuesPerType", people) { "\($0.sync.limits.valuesPerType)" },
        Member("sync.limits.profilesPerValue", people) { "\($0.sync.limits.profilesPerValue)" },
        Member("sync.limits.usersPerDevice", people) { "\($0.sync.limits.usersPerDevice)" },
        Member("sync.limits.aliasesPerProfile", people) { "\($0.sync.limits.aliasesPerProfile)" },
        Member("sync.limits.aliasWindowDays", "aliases from then on") { "\($0.sync.limits.aliasWindowDays)" },
    ]

    private static let throttles = [
        Member("sync.throttle.devicePerSecond", "more from one device is refused; 0: any number") {
            "\($0.sync.throttle.devicePerSecond)"
        },
        Member("sync.throttle.deviceBurst", "at once from one device") { "\($0.sync.throttle.deviceBurst)" },
        Member("sync.throttle.loginPerSecond", "more under one login identity is refused; 0: any number") {
            "\($0.sync.throttle.loginPerSecond)"
        },
        Member("sync.throttle.loginBurst", "at once under one login identity") { "\($0.sync.throttle.loginBurst)" },
    ]

    private static let gateway = [
        Member("gateway.keyOnly", "the calls that need no secret") {
            "[\($0.gateway.keyOnly.map(\.rawValue).sorted().joined(separator: ", "))]"
        },
        Member("gateway.maxAgeSeconds", "how long SDKs keep an answer") {
            $0.gateway.maxAgeSeconds.map { "\($0)" } ?? "none"
        },
        Member("gateway.origins", "pages of other origins are refused") {
            $0.gateway.origins.map { "[\($0.sorted().joined(separator: ", "))]" } ?? "all"
        },
        Member("gateway.limits.keyPerSecond", "more under one key gets 429") { shown($0.gateway.limits.key.perSecond) },
        Member("gateway.limits.keyBurst", "more at once under one key gets 429") { shown($0.gateway.limits.key.burst) },
        Member("gateway.limits.addressPerSecond", "more from one address gets 429") {
            shown($0.gateway.limits.address.perSecond)
        },
        Member("gateway.limits.addressBurst", "more at once from one address gets 429") {
            shown($0.gateway.limits.address.burst)
        },
    ]

    private static func shown(_ number: Double) -> String { "\(Int(number))" }
}
