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
    public struct Problem: Error, Sendable, CustomStringConvertible {
        public var description: String
        public init(_ description: String) { self.description = description }
    }

    /// What a process keeps of the file.
    public enum Extent: Sendable {
        case everything
        /// Without what only services need: the gateway faces the internet and holds no secret that it has no use for.
        case gateway
    }

    /// - Parameter readSecret: reads a `secretFile`; relative paths are relative to the apps file.
    /// - Throws: `Problem`.
    public static func parse(
        _ text: String, reading extent: Extent = .everything, weakSecrets: WeakSecrets = .warn,
        readSecret: @escaping (String) throws -> String
    ) throws(Problem) -> AppDirectory {
        let file: Strict<File>
        do {
            // With merge keys, as the decoder composes it by itself.
            guard let root = try Yams.compose(yaml: text, .basic.appending(.merge)) else {
                throw Problem("the file is empty; list at least one app under apps:")
            }
            guard size(of: root, upTo: largest) < largest else {
                throw Problem("stands for \(largest) values or more: aliases that hold aliases multiply")
            }
            file = try YAMLDecoder().decode(Strict<File>.self, from: root)
        } catch {
            throw explain(error)
        }
        guard !file.apps.isEmpty else { throw Problem("has no apps; list at least one under apps:") }
        let secrets = SecretReader(readFile: readSecret)
        var apps: [AppSettings] = []
        var appIDs: Set<AppID> = []
        var keyOwners: [KeyID: AppID] = [:]
        for app in file.apps {
            guard canBeName(app.id.text), !app.id.text.contains("/") else {
                throw Problem("has an app whose id is empty, is over 255 bytes or has a slash or a control character")
            }
            guard appIDs.insert(app.id).inserted else { throw Problem("lists app \(app.id) twice") }
            var keys: [KeyID: APIKey] = [:]
            for key in app.keys ?? [] {
                if let owner = keyOwners.updateValue(app.id, forKey: key.id) {
                    throw Problem("uses key id \(key.id) twice (apps \(owner) and \(app.id)); key ids are unique")
                }
                keys[key.id] = try apiKey(key, app: app.id, secrets)
            }
            let place = "app \(app.id)"
            let linking = try linking(app.linking, app.id)
            var sync = try SyncSettings.read(app.sync, "\(place), sync", secrets)
            var verification =
                extent == .gateway
                ? VerificationSettings() : try VerificationSettings.read(app.verification, app.id, secrets)
            // One list for the whole app: what is no external id is no user id and no identity either.
            try sync.check(with: verification, "\(place), sync")
            sync.nobody = linking.nobody
            verification.nobody = linking.nobody
            apps.append(
                AppSettings(
                    id: app.id, keys: keys, linking: linking, sdk: try SDKSettings.read(app.sdk, app.id, secrets),
                    sync: sync, verification: verification,
                    gateway: try GatewaySettings.read(app.gateway, "\(place), gateway"), replies: app.replies,
                    ownCommandsTopics: app.ownCommandsTopics ?? false))
        }
        try checkTopics(of: apps)
        try SecretUse.check(secrets.uses)
        return AppDirectory(apps, warnings: try warnings(secrets.uses, apps, weakSecrets))
    }

    /// What is read and should not stay so, one line each; the demo apps have one line for all.
    private static func warnings(
        _ uses: [SecretUse], _ apps: [AppSettings], _ weakSecrets: WeakSecrets
    ) throws(Problem) -> [String] {
        let demo = Set(apps.filter(\.isDemo).map(\.id))
        let weaknesses = uses.filter { !demo.contains($0.app) }.compactMap(\.weakness)
        if weakSecrets == .refuse, let first = weaknesses.first {
            throw Problem("\(first) (IDENTITYBUS_WEAK_SECRETS=warn accepts it for now)")
        }
        guard !demo.isEmpty else { return weaknesses }
        let ids = demo.map(\.text).sorted().joined(separator: ", ")
        return ["demo apps (\(ids)): their secrets are public, anybody can act as them"] + weaknesses
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
    private static func checkTopics(of apps: [AppSettings]) throws(Problem) {
        var replyOwners: [String: AppID] = [:]
        for app in apps {
            if let replies = app.replies {
                try check(replies: replies, "app \(app.id)")
                if let owner = replyOwners.updateValue(app.id, forKey: replies) {
                    throw Problem("gives apps \(owner) and \(app.id) the same reply topic; each app has its own")
                }
            }
            guard !app.ownCommandsTopics || Topics.canOwnCommandsTopics(app.id) else {
                throw Problem(
                    "app \(app.id), ownCommandsTopics: the id stands in the names of the topics, so it may have at most "
                        + "100 characters of A-Z a-z 0-9 _ -")
            }
        }
        let owners = apps.count(where: \.ownCommandsTopics)
        guard owners <= mostOwnersOfCommandsTopics else {
            throw Problem(
                "has \(owners) apps with ownCommandsTopics; there may be \(mostOwnersOfCommandsTopics), because each is one "
                    + "more consumer in every service. Give apps deployments of their own")
        }
    }

    private static func check(replies: String, _ place: String) throws(Problem) {
        let topics = Topics()
        guard topics.replyTopic(replies) == replies, replies != topics.replies, !topics.isOwn(replyTopic: replies)
        else {
            throw Problem(
                "\(place): replies must be identity.replies.<name>, and not a topic of the deployment's own services "
                    + "(identity.replies.<word>.v1); write identity.replies.\(place.dropFirst(4)), for example")
        }
    }

    private static func apiKey(
        _ key: Strict<Key>, app: AppID, _ secrets: SecretReader
    ) throws(Problem) -> APIKey {
        let place = "app \(app), key \(key.id)"
        guard canBeName(key.id.text), !key.id.text.contains(";"), !key.id.text.contains(".") else {
            throw Problem(
                "\(place): the id must not be empty, be over 255 bytes or have a semicolon, a dot or a control "
                    + "character")
        }
        guard !Signature.reservedKeyIDs.contains(key.id.text) else {
            let names = Signature.reservedKeyIDs.sorted().joined(separator: ", ")
            throw Problem("\(place): the id is one of the deployment's own: \(names)")
        }
        let secret = try secrets.read(inline: key.secret, file: key.secretFile, place, of: app, for: .apiKey)
        var scopes: Set<Scope> = []
        for name in key.scopes {
            guard let scope = Scope(spelling: name), scope != .internal else {
                let known = Scope.allCases.filter { $0 != .internal }.map(\.rawValue).joined(separator: ", ")
                throw Problem("\(place): unknown scope \(name); known are \(known)")
            }
            scopes.insert(scope)
        }
        var expires: Timestamp?
        if let text = key.expires {
            expires = Timestamp(rfc3339OrDay: text)
            guard expires != nil else {
                throw Problem("\(place): expires is not a date such as 2030-01-31 or 2030-01-31T12:00:00Z")
            }
        }
        return APIKey(
            id: key.id, secret: SymmetricKey(data: Array(secret.utf8)), scopes: scopes, expires: expires,
            isRevoked: key.revoked ?? false)
    }

    private static func linking(
        _ section: Strict<LinkingSection>?, _ app: AppID
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
                throw Problem("app \(app), linking, clockToleranceSeconds: is not between 1 and 300")
            }
            linking.clockTolerance = seconds * 1000
        }
        if let days = section.holdDays {
            guard (1...3650).contains(days) else {
                throw Problem("app \(app), linking, holdDays: is not between 1 and 3650")
            }
            linking.hold = days * 86_400_000
        }
        return linking
    }

    /// What is wrong with the file, of what composing and decoding it throw.
    private static func explain(_ error: any Error) -> Problem {
        func path(_ context: DecodingError.Context) -> String {
            let members = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }
            return members.isEmpty ? "the file" : String(members.joined().trimmingPrefix("."))
        }
        switch error {
        case let problem as Problem: return problem
        case DecodingError.keyNotFound(let key, let context):
            return Problem("\(path(context)): \(key.stringValue) is missing")
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            return Problem("\(path(context)): has a value of another kind than expected")
        case DecodingError.dataCorrupted(let context):
            return Problem("\(path(context)): \(context.debugDescription)")
        default:
            // A YAML error's own text quotes the line, which may hold a secret; its place is enough.
            guard let mark = (error as? YamlError)?.mark else {
                return Problem("the file: The given data was not valid YAML.")
            }
            return Problem("is not YAML: line \(mark.line), column \(mark.column)")
        }
    }
}

// MARK: - The file's shape

private struct File: Mapping {
    var apps: [Strict<App>]

    enum CodingKeys: String, CodingKey, CaseIterable { case apps }
}

extension YamlError {
    /// Where the file stops being YAML, if the error says so.
    fileprivate var mark: Mark? {
        switch self {
        case .scanner(_, _, let mark, _), .parser(_, _, let mark, _), .composer(_, _, let mark, _): mark
        default: nil
        }
    }
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
    var replies: String?
    var ownCommandsTopics: Bool?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case id, name, keys, linking, sdk, sync, verification, gateway, replies, ownCommandsTopics
    }
}

private struct Key: Mapping {
    var id: KeyID
    var secret: String?
    var secretFile: String?
    var scopes: [String]
    var expires: String?
    var revoked: Bool?

    enum CodingKeys: String, CodingKey, CaseIterable { case id, secret, secretFile, scopes, expires, revoked }
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
