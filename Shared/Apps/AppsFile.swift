// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import WireJSON
import Yams

/// Reads `config/apps.yaml`. Every mistake is one line that names the app and the member.
///
/// The sections `sdk`, `sync`, `verification` and `gateway` are read by the types of these names.
public enum AppsFile {
    /// What a process keeps of the file. All of it is read, whatever is kept: every process accepts the same files.
    public enum Extent: Sendable {
        case everything
        /// Without what only services need: the gateway faces the internet and holds no secret that it has no use for. So it
        /// does not open the secret files of `verification` either, which need not be where it runs.
        case gateway
    }

    /// - Parameters:
    ///   - keys: the deployment's; no app may have one of the internal keys as a secret of its own.
    ///   - readSecret: reads a `secretFile`; relative paths are relative to the apps file.
    /// - Throws: `Problem`.
    public static func parse(
        _ text: String, reading extent: Extent = .everything, weakSecrets: WeakSecrets = .warn,
        keys: DeploymentKeys = .none, readSecret: @escaping (String) throws -> String
    ) throws(Problem) -> AppDirectory {
        let reading = try read(compose(text), keys, SecretReader(extent, readFile: readSecret))
        if weakSecrets == .refuse, let first = reading.weaknesses.first {
            throw Problem("\(first) (IDENTITYBUS_WEAK_SECRETS=warn accepts it for now)")
        }
        return AppDirectory(
            extent == .gateway ? reading.apps.map(\.withoutVerification) : reading.apps, demo: reading.demo.first,
            weaknesses: reading.weaknesses.map(\.description),
            remarks: remarks(on: reading, ofDemos: false).map(\.description))
    }

    /// What stands in a file that can be used.
    struct Reading {
        var apps: [AppSettings]
        /// Secrets that are short or known, of apps that are no demos.
        var weaknesses: [Problem]
        /// One line about all demo apps, if there are any.
        var demo: [String]
        /// The way to each app, in the order of ``apps``.
        var places: [Place]
        var keyPlaces: [KeyID: Place]
        var uses: [SecretUse]
    }

    static func compose(_ text: String) throws(Problem) -> Node {
        do {
            // With merge keys, as the decoder composes it by itself.
            guard let root = try Yams.compose(yaml: text, .basic.appending(.merge)) else {
                throw Problem("the file is empty; list at least one app under apps:")
            }
            guard case .mapping = root else {
                var problem = Problem(
                    "is no mapping at its top; begin it with apps:, and list at least one app under that")
                problem.position = Position(root.mark)
                throw problem
            }
            guard size(of: root, upTo: largest) < largest else {
                throw Problem("stands for \(largest) values or more: aliases that hold aliases multiply")
            }
            return root
        } catch let error as YamlError {
            throw YAMLWords.problem(error, in: text)
        } catch {
            throw explain(error)
        }
    }

    /// What becomes of a mistake between apps, each of which may be right by itself: it is thrown, or told, and the reading
    /// goes on without what is wrong.
    typealias Refusal = (Problem) throws(Problem) -> Void

    static func read(
        _ root: Node, _ deploymentKeys: DeploymentKeys, _ secrets: SecretReader,
        refusing: Refusal = { problem throws(Problem) in throw problem }
    ) throws(Problem) -> Reading {
        let file: Strict<File>
        do {
            file = try YAMLDecoder().decode(Strict<File>.self, from: root)
        } catch {
            throw explain(error)
        }
        guard !file.apps.isEmpty else {
            throw Problem("has no apps; list at least one under apps:", at: [.member("apps")])
        }
        var apps: [AppSettings] = []
        var places: [Place] = []
        var ids: Set<AppID> = []
        var keyOwners: [KeyID: AppID] = [:]
        var keyPlaces: [KeyID: Place] = [:]
        for (index, app) in file.apps.enumerated() {
            let place = Place(steps: [.member("apps"), .element(index)], words: "app \(app.id)")
            try check(app.id, place)
            guard ids.insert(app.id).inserted else {
                try refusing(Problem("lists app \(app.id) twice", at: place["id"]))
                continue
            }
            let keys = try keys(of: app, place, &keyOwners, deploymentKeys, secrets, refusing)
            apps.append(try settings(of: app, keys, place, secrets))
            places.append(place)
            for (index, key) in (app.keys ?? []).enumerated() where keyPlaces[key.id] == nil {
                keyPlaces[key.id] = place.inside("keys", index, "key \(key.id)")
            }
        }
        try checkTopics(of: apps, places, refusing)
        try SecretUse.check(secrets.uses, refusing)
        let demo = Set(apps.filter(\.isDemo).map(\.id))
        let names = demo.map(\.text).sorted().joined(separator: ", ")
        return Reading(
            apps: apps, weaknesses: secrets.uses.filter { !demo.contains($0.app) }.compactMap(\.weakness),
            demo: demo.isEmpty ? [] : ["demo apps (\(names)): their secrets are public, anybody can act as them"],
            places: places, keyPlaces: keyPlaces, uses: secrets.uses)
    }

    private static func check(_ id: AppID, _ place: Place) throws(Problem) {
        // Who leaves it out in YAML's words has not named the app so.
        guard !["~", "null", "Null", "NULL"].contains(id.text) else {
            throw Problem(
                "has an app whose id is \(id.text), which is nothing in YAML; give it a name", at: place["id"])
        }
        guard canBeName(id.text), !id.text.contains("/") else {
            throw Problem(
                "has an app whose id is empty, is over 255 bytes or has a slash or a control character", at: place["id"]
            )
        }
    }

    private static func keys(
        of app: Strict<App>, _ place: Place, _ owners: inout [KeyID: AppID], _ deploymentKeys: DeploymentKeys,
        _ secrets: SecretReader, _ refusing: Refusal
    ) throws(Problem) -> [KeyID: APIKey] {
        var keys: [KeyID: APIKey] = [:]
        for (index, key) in (app.keys ?? []).enumerated() {
            let place = place.inside("keys", index, "key \(key.id)")
            if let owner = owners[key.id] {
                try refusing(
                    Problem(
                        "uses key id \(key.id) twice (apps \(owner) and \(app.id)); key ids are unique",
                        at: place["id"]))
                continue
            }
            owners[key.id] = app.id
            let read = try apiKey(key, place, of: app.id, secrets)
            guard !deploymentKeys.comeFrom(read.secret) else {
                throw Problem(
                    "key \(key.id) has the internal key as its secret: whoever holds it could send as a service",
                    at: place[key.secret == nil ? "secretFile" : "secret"])
            }
            keys[key.id] = read
        }
        return keys
    }

    private static func settings(
        of app: Strict<App>, _ keys: [KeyID: APIKey], _ place: Place, _ secrets: SecretReader
    ) throws(Problem) -> AppSettings {
        let linking = try linking(app.linking, place.inside("linking"))
        var sync = try SyncSettings.read(app.sync, place.inside("sync"))
        var verification = try VerificationSettings.read(
            app.verification, place.inside("verification"), of: app.id, secrets)
        // One list for the whole app: what is no external id is no user id and no identity either.
        try sync.check(with: verification, place.inside("sync"))
        sync.nobody = linking.nobody
        verification.nobody = linking.nobody
        let sdk = try SDKSettings.read(app.sdk, place.inside("sdk"), of: app.id, secrets)
        return AppSettings(
            id: app.id, keys: keys, linking: linking, sdk: sdk, sync: sync, verification: verification,
            gateway: try GatewaySettings.read(app.gateway, place.inside("gateway")),
            retention: try RetentionSettings.read(app.retention, place.inside("retention"), sdk: sdk),
            requests: try SubjectRequestSettings.read(app.dsr, place.inside("dsr")),
            replies: app.replies, ownCommandsTopics: app.ownCommandsTopics ?? false)
    }

    /// How many apps may have commands topics of their own (docs/operations.md says what each costs).
    static let mostOwnersOfCommandsTopics = 16

    /// How many values a file may have when its aliases are written out.
    private static let largest = 1_000_000

    private static func size(of node: Node, upTo limit: Int) -> Int {
        let parts: [Node] =
            switch node {
            case .scalar, .alias: []
            case .mapping(let mapping): mapping.flatMap { [$0.key, $0.value] }
            case .sequence(let sequence): Array(sequence)
            }
        var size = 1
        for part in parts where size < limit { size += Self.size(of: part, upTo: limit - size) }
        return size
    }

    /// Whether it can stand in messages: as `appid`, as `authid`, in a signature.
    private static func canBeName(_ id: String) -> Bool {
        !id.isEmpty && EnvelopeReader.canBeAttribute(id)
    }

    /// The topics that apps have for themselves.
    private static func checkTopics(
        of apps: [AppSettings], _ places: [Place], _ refusing: Refusal
    ) throws(Problem) {
        var replyOwners: [String: AppID] = [:]
        for (app, place) in zip(apps, places) {
            if let replies = app.replies {
                try check(replies: replies, place)
                if let owner = replyOwners[replies] {
                    try refusing(
                        Problem(
                            "gives apps \(owner) and \(app.id) the same reply topic; each app has its own",
                            at: place["replies"]))
                } else {
                    replyOwners[replies] = app.id
                }
            }
            guard !app.ownCommandsTopics || Topics.canOwnCommandsTopics(app.id) else {
                throw Problem(
                    "\(place), ownCommandsTopics: the id stands in the names of the topics, so it may have at most "
                        + "100 characters of A-Z a-z 0-9 _ -", at: place["ownCommandsTopics"])
            }
        }
        let owners = zip(apps, places).filter(\.0.ownCommandsTopics)
        if owners.count > mostOwnersOfCommandsTopics {
            try refusing(
                Problem(
                    "has \(owners.count) apps with ownCommandsTopics; there may be \(mostOwnersOfCommandsTopics), because "
                        + "each is one more consumer in every service. Give apps deployments of their own",
                    at: owners[mostOwnersOfCommandsTopics].1["ownCommandsTopics"]))
        }
    }

    private static func check(replies: String, _ place: Place) throws(Problem) {
        let topics = Topics()
        guard topics.replyTopic(replies) == replies, replies != topics.replies, !topics.isOwn(replyTopic: replies)
        else {
            throw Problem(
                "\(place): replies must be identity.replies.<name>, and not a topic of the deployment's own services "
                    + "(identity.replies.<word>.v1); write identity.replies.\(place.words.dropFirst(4)), for example",
                at: place["replies"])
        }
    }

    private static func apiKey(
        _ key: Strict<Key>, _ place: Place, of app: AppID, _ secrets: SecretReader
    ) throws(Problem) -> APIKey {
        guard canBeName(key.id.text), !key.id.text.contains(";"), !key.id.text.contains(".") else {
            throw Problem(
                "\(place): the id must not be empty, be over 255 bytes or have a semicolon, a dot or a control "
                    + "character", at: place["id"])
        }
        guard !Signature.reservedKeyIDs.contains(key.id.text) else {
            let names = Signature.reservedKeyIDs.sorted().joined(separator: ", ")
            throw Problem("\(place): the id is one of the deployment's own: \(names)", at: place["id"])
        }
        let secret = try secrets.read(inline: key.secret, file: key.secretFile, place, of: app, for: .apiKey)
        var scopes: Set<Scope> = []
        for (index, name) in key.scopes.enumerated() {
            guard let scope = Scope(spelling: name), scope != .internal else {
                let known = known(Scope.allCases.filter { $0 != .internal }.map(\.rawValue), for: name)
                throw Problem("\(place): unknown scope \(name)\(known)", at: place["scopes", index])
            }
            scopes.insert(scope)
        }
        var expires: Timestamp?
        if let text = key.expires {
            expires = Timestamp(rfc3339OrDay: text)
            guard expires != nil else {
                throw Problem(
                    "\(place): expires is not a date such as 2030-01-31 or 2030-01-31T12:00:00Z",
                    at: place["expires"])
            }
        }
        return APIKey(
            id: key.id, secret: SymmetricKey(data: Array(secret.utf8)), scopes: scopes, expires: expires,
            isRevoked: key.revoked ?? false, isMasked: key.masked ?? false)
    }

    private static func linking(
        _ section: Strict<LinkingSection>?, _ place: Place
    ) throws(Problem) -> AppSettings.Linking {
        var linking = AppSettings.Linking()
        guard let section else { return linking }
        linking.isEnabled = section.enabled ?? true
        if let blocked = section.blockedExternalIds {
            linking.nobody = NobodyValues(Set(blocked.map { IdentityValue($0) }))
        }
        if let words = section.blockedEmailNames {
            linking.nobody.emailWords.formUnion(words.map { IdentityValue($0.asciiLowercased) })
        }
        if let seconds = section.clockToleranceSeconds {
            guard (1...300).contains(seconds) else {
                throw Problem(
                    "\(place), clockToleranceSeconds: is not between 1 and 300", at: place["clockToleranceSeconds"])
            }
            linking.clockTolerance = seconds * 1000
        }
        if let days = section.holdDays {
            guard (1...3650).contains(days) else {
                throw Problem("\(place), holdDays: is not between 1 and 3650", at: place["holdDays"])
            }
            linking.hold = days * 86_400_000
        }
        return linking
    }
}

// MARK: - The file's shape

private struct File: Mapping {
    var apps: [Strict<App>]

    enum CodingKeys: String, CodingKey, CaseIterable { case apps }
}

private struct App: Mapping {
    var id: AppID
    /// For people who keep the file.
    var name: String?
    var keys: [Strict<Key>]?
    var linking: Strict<LinkingSection>?
    var sdk: Strict<SDKSettings.Section>?
    var sync: Strict<SyncSettings.Section>?
    var verification: Strict<VerificationSettings.Section>?
    var gateway: Strict<GatewaySettings.Section>?
    var retention: Strict<RetentionSettings.Section>?
    var dsr: Strict<SubjectRequestSettings.Section>?
    var replies: String?
    var ownCommandsTopics: Bool?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case id, name, keys, linking, sdk, sync, verification, gateway, retention, dsr, replies, ownCommandsTopics
    }
}

private struct Key: Mapping {
    var id: KeyID
    var secret: String?
    var secretFile: String?
    var scopes: [String]
    var expires: String?
    var revoked: Bool?
    var masked: Bool?

    enum CodingKeys: String, CodingKey, CaseIterable { case id, secret, secretFile, scopes, expires, revoked, masked }
}

private struct LinkingSection: Mapping {
    var enabled: Bool?
    var blockedExternalIds: [String]?
    var blockedEmailNames: [String]?
    var clockToleranceSeconds: Int64?
    var holdDays: Int64?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case enabled, blockedExternalIds, blockedEmailNames, clockToleranceSeconds, holdDays
    }
}
