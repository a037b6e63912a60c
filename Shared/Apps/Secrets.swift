// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Crypto
import Synchronization

/// What to do with secrets of the apps file that are short, or that everybody knows (`IDENTITYBUS_WEAK_SECRETS`).
public enum WeakSecrets: String, Sendable, CaseIterable {
    /// One line in the log for each.
    case warn
    /// The file is refused, but for demo apps (``AppSettings/isDemo``).
    case refuse
}

/// A secret of the apps file and what it is for (V21, V58).
public struct SecretUse {
    enum Purpose {
        /// Of a key of `keys`.
        case apiKey
        case appSecret, tokenSecret
        /// Of a key of `verification.keys`.
        case verificationKey
        case identityTokenSecret

        /// Whether two apps may not share one. A token would count in both.
        var isOneAppsOnly: Bool { self == .verificationKey || self == .identityTokenSecret }

        /// Whether strangers can try to guess it from what it signs or opens. An app secret is in every copy of the
        /// app; its length makes it no better.
        var isWeakWhenShort: Bool { self != .appSecret }
    }

    var app: AppID
    /// Names the app and the member.
    var place: AppsFile.Place
    var purpose: Purpose
    var secret: [UInt8]

    /// Bytes that a secret should have: as many as an HMAC-SHA256 has.
    public static let goodLength = 32

    /// Refuses a secret with two purposes, and a verification secret of two apps: what one of them makes would be taken
    /// for the other's. The line names both places and no secret.
    static func check(_ uses: [SecretUse], _ refusing: AppsFile.Refusal) throws(AppsFile.Problem) {
        var seen: [[UInt8]: SecretUse] = [:]
        for use in uses {
            guard let other = seen[use.secret] else {
                seen[use.secret] = use
                continue
            }
            let demand: String
            if other.purpose != use.purpose {
                demand = "each purpose needs a secret of its own"
            } else if use.purpose.isOneAppsOnly, other.app != use.app {
                demand = "each app needs secrets of its own"
            } else {
                continue
            }
            try refusing(
                AppsFile.Problem(
                    "\(use.place): has the same secret as \(other.place); \(demand)", at: use.place.steps))
        }
    }

    /// What is wrong with the secret itself, in one line that does not show it.
    var weakness: AppsFile.Problem? {
        if String(decoding: secret, as: UTF8.self).hasPrefix("demo-") {
            return AppsFile.Problem(
                "\(place): has a secret of a demo, so everybody knows it; make one with: openssl rand -hex 32",
                at: place.steps)
        }
        guard purpose.isWeakWhenShort, secret.count < Self.goodLength else { return nil }
        return AppsFile.Problem(
            "\(place): the secret has \(secret.count) bytes, fewer than \(Self.goodLength); "
                + "make one with: openssl rand -hex 32", at: place.steps)
    }
}

extension AppSettings {
    /// Whether the app is a demonstration that keeps nobody out: it has a key as in `config/apps.yaml`, whose id begins
    /// with the app's and a hyphen, and whose secret is `demo-secret-` and the key's id.
    var isDemo: Bool {
        keys.values.contains { key in
            key.id.text.hasPrefix("\(id)-") && key.secret == SymmetricKey(data: Array("demo-secret-\(key.id)".utf8))
        }
    }
}

/// Takes secrets from the apps file: inline, or from the file that holds it. Remembers where each is used, for what can
/// only be seen when all are read (``SecretUse``).
final class SecretReader {
    private let extent: AppsFile.Extent
    private let readFile: (String) throws -> String
    private(set) var uses: [SecretUse] = []

    init(_ extent: AppsFile.Extent, readFile: @escaping (String) throws -> String) {
        self.extent = extent
        self.readFile = readFile
    }

    /// - Parameters:
    ///   - mapping: what has the secret as a member. It stands in a problem's text, with the member's name unless that is
    ///     `secret`.
    ///   - member: the member; with `File` behind it the one that names a file.
    func read(
        inline: String?, file: String?, _ mapping: AppsFile.Place, _ member: String = "secret", of app: AppID,
        for purpose: SecretUse.Purpose
    ) throws(AppsFile.Problem) -> String {
        var place = mapping.inside(file == nil || inline != nil ? member : "\(member)File")
        place.words = member == "secret" ? mapping.words : "\(mapping), \(member)"
        let secret: String
        switch (inline, file) {
        case (let inline?, nil): secret = inline
        // What vouches for users is for services. It is taken for a good one, and kept nowhere.
        case (nil, let path?) where extent == .gateway && purpose.isOneAppsOnly: return path
        case (nil, let path?):
            do {
                secret = try readFile(path).withoutFinalNewlines
            } catch {
                throw AppsFile.Problem("\(place): \(member)File \(error)", at: place.steps)
            }
        case (nil, nil): throw AppsFile.Problem("\(place): give either secret or secretFile", at: mapping.steps)
        case (_?, _?): throw AppsFile.Problem("\(place): give either secret or secretFile", at: place.steps)
        }
        guard secret.utf8.count >= 8 else {
            throw AppsFile.Problem("\(place): the secret has fewer than 8 bytes", at: place.steps)
        }
        uses.append(SecretUse(app: app, place: place, purpose: purpose, secret: Array(secret.utf8)))
        return secret
    }
}

/// What an app's SDK shows to create a user by itself. Kept as a digest; its description never shows it.
public struct AppSecret: Sendable, CustomStringConvertible {
    private let code: HashedAuthenticationCode<SHA256>
    private let key: SymmetricKey

    public init(_ secret: String) {
        key = SymmetricKey(size: .bits256)
        code = HMAC<SHA256>.authenticationCode(for: Array(secret.utf8), using: key)
    }

    /// Whether it is the same. Takes as long whatever differs: what is compared are keyed digests.
    public func matches(_ other: String) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: Array(other.utf8), using: key)
    }

    public var description: String { "an app secret" }
}

/// The key of an app's user tokens, when the apps file gives one. Its description never shows it.
public struct TokenSecret: Sendable, CustomStringConvertible {
    public let key: SymmetricKey

    public init(_ secret: String) { key = SymmetricKey(data: Array(secret.utf8)) }

    public var description: String { "a token secret" }
}

/// Ids and secrets that a decider gives out: unguessable for everybody outside, and the same when the command is decided
/// again.
///
/// What a command makes follows from the salt of the service's own store, so it does not change when the deployment's
/// keys do. What several processes have to know, the keys of user tokens, follows from the internal keys.
///
/// A class, because each command's context has it: a copy is one reference instead of nine.
public final class DerivedSecrets: Sendable {
    /// What the ids of new users, profiles and aliases are derived with.
    public let ids: DerivedID.Salt
    /// With the salt taken in: the two blocks of each code that are about the key are computed once.
    private let start: HMAC<SHA512>
    private let tokenKey: SymmetricKey
    private let previousTokenKeys: [SymmetricKey]
    private let known = KnownKeys()

    /// For tests, and deciders that give out no secrets.
    public static let none = DerivedSecrets(.none, salt: [UInt8](repeating: 0, count: 32))

    /// - Parameter salt: the store's. Without one nothing can be derived from a command again: that is for processes
    ///   that only check user tokens.
    public init(_ keys: DeploymentKeys, salt: [UInt8]? = nil) {
        let salt = salt.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
        start = HMAC(key: salt)
        ids = DerivedID.Salt(salt)
        // Without keys: one that nobody else has.
        tokenKey = keys.signing(.tokens) ?? SymmetricKey(size: .bits256)
        previousTokenKeys = Array(keys.checking(.tokens).dropFirst())
    }

    /// 64 bytes, HMAC-SHA512 of the purpose and the parts under the salt.
    public func bytes(_ purpose: String, _ parts: [String]) -> [UInt8] { Self.code([purpose] + parts, start) }

    /// Encrypts what only who has the salt is to read (AES-GCM). The same bytes give the same text: the number that is used
    /// once follows from them.
    /// - Returns: `nil` when the cipher refuses, which it does for no bytes.
    public func closed(_ bytes: [UInt8], _ purpose: String, _ parts: [String]) -> [UInt8]? {
        let secret = self.bytes(purpose, parts)
        let once = HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: Array(secret[32...])))
        guard let nonce = try? AES.GCM.Nonce(data: Array(once).prefix(12)),
            let box = try? AES.GCM.seal(bytes, using: SymmetricKey(data: Array(secret[..<32])), nonce: nonce).combined
        else { return nil }
        return Array(box)
    }

    /// - Returns: `nil` when it was closed with another salt or for something else, or is damaged.
    public func opened(_ bytes: [UInt8], _ purpose: String, _ parts: [String]) -> [UInt8]? {
        let key = SymmetricKey(data: Array(self.bytes(purpose, parts)[..<32]))
        guard let box = try? AES.GCM.SealedBox(combined: bytes), let plain = try? AES.GCM.open(box, using: key) else {
            return nil
        }
        return Array(plain)
    }

    /// The key that an app's user tokens are signed with.
    public func tokenKey(of app: AppID) -> SymmetricKey {
        known.key(of: app) { Self.tokenKey(of: app, tokenKey) }
    }

    /// The keys that an app's user tokens may be signed with: of each internal key one.
    public func tokenKeys(of app: AppID) -> [SymmetricKey] {
        ([tokenKey] + previousTokenKeys).map { Self.tokenKey(of: app, $0) }
    }

    private static func tokenKey(of app: AppID, _ key: SymmetricKey) -> SymmetricKey {
        SymmetricKey(data: code(["user-token-key", app.text, "", ""], HMAC(key: key)))
    }

    /// Lengths are part of the text, so that no two lists of parts give one code.
    private static func code(_ parts: [String], _ start: HMAC<SHA512>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(parts.reduce(0) { $0 + $1.utf8.count + 21 })
        for part in parts {
            text.append(contentsOf: String(part.utf8.count).utf8)
            text.append(UInt8(ascii: ":"))
            text.append(contentsOf: part.utf8)
        }
        var code = start
        code.update(data: text)
        return code.finalize().withUnsafeBytes { Array($0) }
    }
}

/// Keys that were derived before: that takes longer than to sign a token. There are as many as apps.
private final class KnownKeys: Sendable {
    private let keys = Mutex<[AppID: SymmetricKey]>([:])

    func key(of app: AppID, _ derived: () -> SymmetricKey) -> SymmetricKey {
        keys.withLock { keys in
            if let key = keys[app] { return key }
            let key = derived()
            keys[app] = key
            return key
        }
    }
}
