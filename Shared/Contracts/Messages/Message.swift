// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// Something with a name on the wire: `identity.<service>.<what>.v<major>`.
public protocol Message: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// The CloudEvents `type`.
    static var type: String { get }
}

/// A command's data. The Kafka key is `<app>/<partitionSubject>`, so that commands about one thing stay in order.
public protocol CommandMessage: Message {
    /// What the API key must be allowed to do.
    static var scope: Scope { get }
    /// Another scope that is enough; `nil` for most.
    static var orScope: Scope? { get }
    /// The thing the command is about: the second half of the Kafka key.
    var partitionSubject: String { get }
    /// Whom it is about, as it says it: the kind of name, and the name, such as `externalId` and `ada`. For the log of who
    /// reads about people, to whom questions, dry runs and repairs are told; others need not say the kind.
    var subject: (kind: String, name: String) { get }
    /// Checks what the types cannot say.
    /// - Throws: `Rejection` with `INVALID_REQUEST` and the member that is wrong.
    func validate() throws(Rejection)
}

extension CommandMessage {
    public static var orScope: Scope? { nil }
    public var subject: (kind: String, name: String) { ("subject", partitionSubject) }
}

/// A question about a person. Whoever answers it notes who has asked (docs/operations.md "Who reads about people").
public protocol PersonQuery: CommandMessage {}

/// An event's data: something that happened and is now a fact.
public protocol EventMessage: Message {
    /// The thing the event is about: the CloudEvents `subject` and the second half of the Kafka key.
    var subject: String { get }
}

/// The `result` of a succeeded command.
public protocol CommandResult: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// Whether it holds a secret, such as an authentication code or a token: a store keeps it only encrypted.
    static var isConfidential: Bool { get }
}

extension CommandResult {
    public static var isConfidential: Bool { false }
}

/// The Kafka key of everything about `subject` in `app`.
public func partitionKey(app: AppID, subject: String) -> String {
    var key = app.text
    key.reserveCapacity(key.utf8.count + subject.utf8.count + 1)
    key += "/"
    key += subject
    return key
}

/// What an API key may ask for (the services' pages in docs). The vendor writes its scopes in two spellings
/// (F6: `user.link`, `USER_LINK`); both are read.
public enum Scope: String, Sendable, Hashable, CaseIterable {
    case userLink = "user.link"
    case userDelete = "user.delete"
    case sdk
    case identitySync = "identity.sync"
    /// Name login identities in an app that enforces verification. For backends; `identity.sync` is needed as well.
    case identityVouch = "identity.vouch"
    case verificationCheck = "verification.check"
    /// Reads people and repairs what is known of them. For those who help users, and their tools.
    case support
    /// Brings people from another system, as they are there. For tools.
    case importing = "import"
    case admin
    /// Commands that only the deployment's own services may send. No API key can hold it.
    case `internal`

    /// Whether it is for what people do to other people by hand, or has done for them: whose key it was then stands in all
    /// that is told of it.
    public var isByHand: Bool {
        switch self {
        case .support, .userDelete, .importing, .admin: true
        case .userLink, .sdk, .identitySync, .identityVouch, .verificationCheck, .internal: false
        }
    }

    public init?(spelling: String) {
        let dotted = spelling.lowercased().split(separator: "_", omittingEmptySubsequences: false).joined(
            separator: ".")
        self.init(rawValue: dotted)
    }
}

/// A type of command, without its data: what those who send commands need to know of it.
public struct CommandType: Sendable {
    /// In full: `identity.link.request.v1`.
    public let name: String
    /// What the sender must be allowed to do.
    public let scope: Scope
    /// Another scope that is enough.
    public let orScope: Scope?
    private let subject: @Sendable (JSONValue) throws -> String
    private let check: @Sendable (JSONValue) throws -> Void

    public init<Message: CommandMessage>(_: Message.Type) {
        name = Message.type
        scope = Message.scope
        orScope = Message.orScope
        subject = { try WireJSONDecoder().read(Message.self, from: JSONView($0)).partitionSubject }
        check = { try WireJSONDecoder().read(Message.self, from: JSONView($0)).validate() }
    }

    /// Why a service would not take this data, whatever its state; `nil` when it would.
    public func problem(of data: JSONValue) -> String? {
        do {
            try check(data)
            return nil
        } catch let rejection as Rejection {
            return rejection.message
        } catch {
            return "data: \(WireJSONError.explain(error))"
        }
    }

    /// The second half of the Kafka key of a command with this data; `nil` when the data is not what the type needs.
    public func partitionSubject(of data: JSONValue) -> String? {
        (try? subject(data)).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The full type of `link.request` is `identity.link.request.v1`; a full one is returned as it is.
    public static func fullName(_ name: String) -> String {
        name.hasPrefix("identity.") ? name : "identity.\(name).v1"
    }

    /// The service that consumes a type: its second part. `nil` when the type does not have the form.
    public static func service(of name: String) -> String? {
        let parts = name.split(separator: ".")
        return parts.count >= 4 && parts[0] == "identity" ? String(parts[1]) : nil
    }
}

/// What makes a command the same command: the app it was authenticated for, its source and its id.
public struct CommandKey: Sendable, Hashable, Comparable {
    public var app: AppID
    public var source: SourceID
    public var id: CommandID

    public init(app: AppID, source: SourceID, id: CommandID) {
        self.app = app
        self.source = source
        self.id = id
    }

    public static func < (left: CommandKey, right: CommandKey) -> Bool {
        (left.app, left.source, left.id) < (right.app, right.source, right.id)
    }
}

/// Checks shared by the commands. The name of a member is made where it is refused.
enum Validation {
    /// Install, device and user ids: 1 to 255 UTF-8 bytes, something visible, no control characters (docs/contracts.md
    /// "Limits").
    static func id(_ id: ID<some Any>, _ member: @autoclosure () -> String) throws(Rejection) {
        try text(id.text, member())
        guard id.text.unicodeScalars.contains(where: { $0.isVisibleAlone }) else {
            throw Rejection(.invalidRequest, "data.\(member()) has nothing visible in it.")
        }
    }

    /// What is as long as an id, and shown like one.
    static func text(
        _ text: String, _ member: @autoclosure () -> String, atLeast least: Int = 1, atMost most: Int = 255
    ) throws(Rejection) {
        let bytes = text.utf8.count
        guard least <= bytes, bytes <= most else {
            throw Rejection(
                .invalidRequest, "data.\(member()) has \(bytes) bytes; \(range(least, most)) are allowed.")
        }
        try noControlCharacters(text, member())
    }

    /// How many a list has.
    static func entries(
        _ count: Int, _ member: @autoclosure () -> String, atLeast least: Int = 0, atMost most: Int
    ) throws(Rejection) {
        guard least <= count, count <= most else {
            throw Rejection(
                .invalidRequest, "data.\(member()) has \(count) entries; \(range(least, most)) are allowed.")
        }
    }

    private static func range(_ least: Int, _ most: Int) -> String { least == 0 ? "\(most)" : "\(least) to \(most)" }

    /// External ids and identity values: 1 to 750 characters.
    static func identityValue(_ id: ID<some Any>, _ member: @autoclosure () -> String) throws(Rejection) {
        try identityValue(id.text, member())
    }

    static func identityValue(
        _ text: String, _ member: @autoclosure () -> String, atMost most: Int = 750
    ) throws(Rejection) {
        let length = text.unicodeScalars.count
        guard (1...most).contains(length) else {
            throw Rejection(.invalidRequest, "data.\(member()) has \(length) characters; 1 to \(most) are allowed.")
        }
        try noControlCharacters(text, member())
    }

    static func identityType(_ name: String, _ member: @autoclosure () -> String) throws(Rejection) {
        guard IdentityType(rawValue: name) != nil else {
            // S4
            throw Rejection(.validationError, "data.\(member()): \(String(name.prefix(40))) is not an identity type.")
        }
    }

    static func noControlCharacters(_ text: String, _ member: @autoclosure () -> String) throws(Rejection) {
        guard !text.hasControlCharacter else {
            throw Rejection(.invalidRequest, "data.\(member()) has a control character.")
        }
    }
}

extension String {
    /// Of Unicode's category Cc, which will not grow; asking for a scalar's properties would cost more.
    package var hasControlCharacter: Bool {
        unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    }
}
