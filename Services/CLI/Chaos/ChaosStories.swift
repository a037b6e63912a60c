// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime
import Supervision
import WireJSON

/// A signed command, and what the judge has to know of it.
struct ChaosMessage {
    var record: Record
    var sent: ChaosHistory.Command
    /// What comes after it, once it is answered.
    var next: ChaosStories.Step?
}

/// What apps and backends do during a run, drawn from the seed: installs are registered and linked, users are created with
/// codes, people log in and out on devices, tokens are checked; commands are sent again, and ids are used twice.
struct ChaosStories {
    /// What follows an answer.
    enum Step {
        case link(InstallID, ExternalID)
        case create(InstallID)
        case verifiedLogout(DeviceID)
    }

    /// Person, SDK, profiles.
    static let app: AppID = "chaos"
    /// An app that verifies logins.
    static let verifyingApp: AppID = "chaos-verified"
    static let source = "https://chaos.example/backend"

    private let keys: ChaosKeys
    private let topics: Topics
    private var random: SeededGenerator
    private var number = 0
    private var devices: [DeviceID] = []
    private(set) var installs: [InstallID] = []
    private(set) var users: [InstallID] = []
    private var due: [ChaosMessage] = []
    /// Commands that may be sent again.
    private var past: [ChaosMessage] = []
    /// Commands whose ids may be used twice: answered for good.
    private var answered: [ChaosMessage] = []

    init(seed: UInt64, keys: ChaosKeys, topics: Topics) {
        self.keys = keys
        self.topics = topics
        random = SeededGenerator(seed: seed)
    }

    /// Whether no story that has begun has a command to send.
    var isAtRest: Bool { due.isEmpty }

    /// The next command of a story that has begun, if one is due.
    mutating func nextDue() -> ChaosMessage? { due.isEmpty ? nil : due.removeFirst() }

    /// The next command to send, perhaps of a new story.
    mutating func next() throws -> ChaosMessage {
        if let command = nextDue() { return command }
        number += 1
        let command = try draw()
        remember(command)
        return command
    }

    /// Goes on with the story of a command that has its final answer.
    mutating func goOn(_ command: ChaosMessage, result: JSONValue?) throws {
        if command.sent.allowed != ["ID_REUSED"] { Self.keep(command, in: &answered) }
        guard let step = command.next else { return }
        number += 1
        switch step {
        case .link(let install, let externalID):
            due.append(try make(LinkRequest(installId: install, externalId: externalID), keys.backend))
        case .create(let install):
            guard let code = result?["authenticationCode"]?.stringValue else { return }
            installs.append(install)
            users.append(install)
            due.append(try make(CreateUser(installId: install, device: phone, authCode: code), keys.sdk))
        case .verifiedLogout(let device):
            due.append(try make(VerificationLogout(deviceId: device), keys.verifiedSDK, app: Self.verifyingApp))
        }
        due.last.map { remember($0) }
    }

    /// What the services hold in the end, of at most so many of each.
    mutating func questions(atMost limit: Int) throws -> [(ChaosHistory.Question, ChaosMessage)] {
        var questions: [(ChaosHistory.Question, ChaosMessage)] = []
        func add(_ subject: ChaosHistory.Question.Subject, _ id: String, _ command: ChaosMessage) {
            questions.append((ChaosHistory.Question(subject: subject, id: id, command: command.sent.key), command))
        }
        for install in installs.shuffled(using: &random).prefix(limit) {
            number += 1
            add(.install, install.text, try make(QueryInstall(installId: install), keys.services))
        }
        for install in users.shuffled(using: &random).prefix(limit) {
            number += 1
            add(.user, install.text, try make(GetUser(installId: install), keys.sdk))
        }
        for device in devices.shuffled(using: &random).prefix(limit) {
            number += 1
            add(.device, device.text, try make(GetDeviceUsers(deviceId: device), keys.sdk))
        }
        return questions
    }

    // MARK: What is drawn

    private mutating func draw() throws -> ChaosMessage {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<24:
            let install = InstallID("install-\(number)")
            installs.append(install)
            var command = try make(RegisterInstall(installId: install, device: phone, user: .none), keys.services)
            command.next = .link(install, person())
            return command
        case 24..<36:
            var command = try make(RequestAuthCode(externalId: person()), keys.backend)
            command.sent.allowed = ["succeeded", ReasonCode.authCodeLimitReached.rawValue]
            command.next = .create(InstallID("install-\(number)"))
            return command
        case 36..<66: return try syncCommand()
        case 66..<76: return try tokenCheck()
        case 76..<86:
            let device = DeviceID("verified-\(number)")
            let user = person().text
            var command = try make(
                VerificationLogin(deviceId: device, userId: user, userAuthToken: keys.token(of: user)),
                keys.verifiedSDK,
                app: Self.verifyingApp)
            command.next = .verifiedLogout(device)
            return command
        case 86..<96:
            guard var command = past.randomElement(using: &random) else { return try syncCommand() }
            command.next = nil
            return command
        default:
            guard let index = answered.indices.randomElement(using: &random) else { return try syncCommand() }
            return try reuse(answered.remove(at: index))
        }
    }

    private mutating func syncCommand() throws -> ChaosMessage {
        let isNew = devices.isEmpty || Int.random(in: 0..<8, using: &random) == 0
        let device = isNew ? DeviceID("device-\(number)") : devices.suffix(200).randomElement(using: &random) ?? ""
        if isNew { devices.append(device) }
        // A stamp of its own each time: a value that many profiles have comes to a limit (S62).
        var identities: [String: String?] = [IdentityType.deviceApplicationStamp.rawValue: "stamp-of-\(number)"]
        let kind = Int.random(in: 0..<10, using: &random)
        if kind < 6 { identities[IdentityType.customerID.rawValue] = person().text }
        let request = SyncRequest(deviceId: device, knownIdentities: identities, environment: .production)
        switch kind {
        case 0..<4: return try make(LogInUser(request), keys.sdk)
        case 4..<8: return try make(IdentifyUser(request), keys.sdk)
        default: return try make(LogOutUser(request), keys.sdk)
        }
    }

    private mutating func tokenCheck() throws -> ChaosMessage {
        let user = person().text
        let isRight = Bool.random(using: &random)
        var command = try make(
            VerificationCheck(userId: user, userAuthToken: keys.token(of: isRight ? user : "somebody else")),
            keys.verifiedBackend, app: Self.verifyingApp)
        if !isRight { command.sent.allowed = [ReasonCode.invalidAuthToken.rawValue] }
        return command
    }

    /// The same id, to the same service and partition, with other content.
    private mutating func reuse(_ original: ChaosMessage) throws -> ChaosMessage {
        let data = original.sent.data
        var command: ChaosMessage
        switch original.sent.type {
        case "link.register-install":
            let install = InstallID(data["installId"]?.stringValue ?? "")
            command = try make(QueryInstall(installId: install), keys.services, id: original.sent.key.id)
        case "sync.login", "sync.identify", "sync.logout":
            let device = DeviceID(data["deviceId"]?.stringValue ?? "")
            command = try make(GetDeviceUsers(deviceId: device), keys.sdk, id: original.sent.key.id)
        case "verification.check":
            let user = data["userId"]?.stringValue ?? ""
            command = try make(
                VerificationCheck(userId: user, userAuthToken: "other"), keys.verifiedBackend,
                app: Self.verifyingApp, id: original.sent.key.id)
        default: return try syncCommand()
        }
        command.sent.allowed = ["ID_REUSED"]
        return command
    }

    /// One of those who are known already, or somebody new: more and more of them.
    private mutating func person() -> ExternalID {
        ExternalID("person-\(Int.random(in: 0...(20 + number / 4), using: &random))")
    }

    private var phone: Device { Device(kind: .phone, platform: "ios") }

    // MARK: Records

    private func make(
        _ message: some CommandMessage, _ seal: Seal, app: AppID = Self.app, id: String? = nil
    ) throws -> ChaosMessage {
        func make<Command: CommandMessage>(_ message: Command) throws -> ChaosMessage {
            let id = id ?? "command-\(number)"
            let service = CommandType.service(of: Command.type) ?? ""
            let attributes = EventAttributes(
                id: id, source: Self.source, type: Command.type, appID: app.text, time: Timestamp.now.rfc3339)
            let data = try JSONValue(parsing: try WireJSONEncoder().encode(message))
            let digest = CommandDigest.text(type: Command.type, data: data)
            return ChaosMessage(
                record: try seal.command(
                    to: topics.commands(service), of: app, about: message.partitionSubject, attributes, message),
                sent: ChaosHistory.Command(
                    key: .init(id: id, digest: digest), type: RecordLine.short(Command.type), service: service,
                    data: data, sentAt: []))
        }
        return try make(message)
    }

    private mutating func remember(_ command: ChaosMessage) {
        // Of a second use of an id only the refusal is promised, not its bytes.
        if command.sent.allowed != ["ID_REUSED"] { Self.keep(command, in: &past) }
    }

    private static func keep(_ command: ChaosMessage, in list: inout [ChaosMessage]) {
        list.append(command)
        if list.count > 400 { list.removeFirst(200) }
    }
}

/// The secrets of one run: made for it, and worth nothing afterwards.
struct ChaosKeys {
    let internalKey = Self.secret()
    private let verification = Self.secret()
    private let secrets = (
        backend: Self.secret(), sdk: Self.secret(), verifiedBackend: Self.secret(), verifiedSDK: Self.secret()
    )

    var deployment: DeploymentKeys { DeploymentKeys(internalKeys: [Self.key(internalKey)]) }
    var services: Seal { Seal(Signature.internalKeyID, deployment.signing(.commands)) }
    var backend: Seal { Seal("chaos-backend", Self.key(secrets.backend)) }
    var sdk: Seal { Seal("chaos-sdk", Self.key(secrets.sdk)) }
    var verifiedBackend: Seal { Seal("chaos-verified-backend", Self.key(secrets.verifiedBackend)) }
    var verifiedSDK: Seal { Seal("chaos-verified-sdk", Self.key(secrets.verifiedSDK)) }

    /// What the app's backend says of a user.
    func token(of user: String) -> String {
        Data(HMAC<SHA256>.authenticationCode(for: Array(user.utf8), using: Self.key(verification)))
            .base64EncodedString()
    }

    var appsFile: String {
        """
        apps:
          - id: \(ChaosStories.app)
            keys:
              - {id: chaos-backend, secret: \(secrets.backend), scopes: [user.link]}
              - {id: chaos-sdk, secret: \(secrets.sdk), scopes: [sdk, identity.sync]}
            sdk: {keysOpenInstalls: true}
            sync:
              strategy: conversion
              priority: [customerid, device_application_stamp]
              loginIdentities: [customerid]
              uniqueIdentities: [customerid]
              immutableIdentities: []
            verification: {mode: "off"}
          - id: \(ChaosStories.verifyingApp)
            keys:
              - {id: chaos-verified-backend, secret: \(secrets.verifiedBackend), scopes: [verification.check]}
              - {id: chaos-verified-sdk, secret: \(secrets.verifiedSDK), scopes: [sdk]}
            sync:
              strategy: userIdThenEmail
              priority: [customerid, email, device_application_stamp]
              loginIdentities: [customerid, email]
              uniqueIdentities: [customerid]
              immutableIdentities: []
            verification:
              mode: enforce
              signedFields: userId
              keys:
                - {id: k1, secret: \(verification)}

        """
    }

    private static func secret() -> String { (0..<32).map { _ in UInt8.random(in: 0...255) }.hex }
    private static func key(_ text: String) -> SymmetricKey { SymmetricKey(data: Array(text.utf8)) }
}
