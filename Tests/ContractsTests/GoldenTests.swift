// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestKit
import Testing
import WireJSON

@testable import Contracts

/// An envelope written by way of `Codable`, member by member: what ``CloudEvent/encoded()`` is compared with.
struct ReferenceEvent<Payload: Encodable>: Encodable {
    private enum DataKey: String, CodingKey { case data }
    let event: CloudEvent<Payload>

    init(_ event: CloudEvent<Payload>) { self.event = event }

    func encode(to encoder: any Encoder) throws {
        try event.attributes.encode(to: encoder)
        var container = encoder.container(keyedBy: DataKey.self)
        try container.encode(event.data, forKey: .data)
    }
}

/// The exact bytes of every message, in structured mode, and that they are read back as what they were.
///
/// A change of a golden file is a change of the contract. A new message gets its file with `UPDATE_GOLDEN=1`, which
/// writes only files that are missing.
@Suite struct GoldenTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        var name: String
        var write: @Sendable () throws -> [UInt8]
        /// Whether the bytes are read back as the message they were written from.
        var readsBack: @Sendable ([UInt8]) throws -> Bool
        /// Of data: what the message's own reader makes of it is what `Codable` makes of it, or it leaves that to it: `nil`.
        var readsAlike: (@Sendable (JSONView) -> Bool?)?
        var testDescription: String { name }
    }

    private static let device = Device(kind: .phone, platform: "ios", model: "iPhone 17", osVersion: "26.1")

    private static func attributes(_ type: String) -> EventAttributes {
        var attributes = EventAttributes(id: "c1", source: "backend", type: type, appID: "demo")
        attributes.subject = "i1"
        attributes.time = "2026-11-21T10:24:04.123Z"
        attributes.dataContentType = "application/json"
        attributes.partitionKey = "demo/anna"
        return attributes
    }

    static func message<Body: Message>(_ name: String, _ body: Body) -> Sample {
        let event = CloudEvent(attributes: attributes(Body.type), data: body)
        return Sample(name: name) {
            try event.encoded()
        } readsBack: { bytes in
            let read = try EnvelopeReader.read(value: bytes, headers: [])
            return try read.attributes == event.attributes
                && WireJSONDecoder().decode(Body.self, from: read.data) == body
                && WireJSONEncoder().encode(ReferenceEvent(event)) == bytes
        } readsAlike: { data in
            Body(usual: data).map { $0 == (try? WireJSONDecoder().decode(Body.self, from: data)) }
        }
    }

    private static var dryRun: Sample {
        var attributes = attributes(GetUser.type)
        attributes.dryRun = "true"
        let event = CloudEvent(attributes: attributes, data: GetUser(installId: "i1"))
        return Sample(name: "command-dry-run") {
            try event.encoded()
        } readsBack: { bytes in
            try EnvelopeReader.read(value: bytes, headers: []).attributes == event.attributes
        }
    }

    private static var replyKey: Sample {
        var attributes = attributes(GetUser.type)
        attributes.replyTo = "identity.replies.shop"
        attributes.replyKey = "replica-7"
        let event = CloudEvent(attributes: attributes, data: GetUser(installId: "i1"))
        return Sample(name: "command-reply-key") {
            try event.encoded()
        } readsBack: { bytes in
            try EnvelopeReader.read(value: bytes, headers: []).attributes == event.attributes
        }
    }

    /// Of the commands that the replies answer.
    static let digest = String(repeating: "0f", count: 32)

    static func reply<Result: CommandResult>(_ name: String, _ reply: Reply<Result>) -> Sample {
        var attributes = attributes(Reply<Result>.type)
        attributes.correlationID = "c0"
        attributes.causationID = "c1"
        attributes.traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        attributes.traceState = "a=b"
        let event = CloudEvent(attributes: attributes, data: reply)
        return Sample(name: name) {
            try event.encoded()
        } readsBack: { bytes in
            let read = try EnvelopeReader.read(value: bytes, headers: [])
            guard read.attributes == event.attributes, let received = ReceivedReply(read.data) else { return false }
            return received.commandId == reply.commandId && received.commandType == reply.commandType
                && received.commandDigest == reply.commandDigest && received.status == reply.status
                && received.reason == reply.reason?.rawValue && received.message == reply.message
                && received.result(as: Result.self) == reply.result && received.isDryRun == (reply.dryRun ?? false)
                && received.events?.count == reply.events?.count
        }
    }

    private static let linkResult = LinkResult(
        userId: "5a18fc4b0962209e0000000d", installId: "i1", isActive: true, personCreated: true, version: 3)

    static let samples =
        linkSamples + repairSamples + importSamples + syncSamples + verificationSamples + erasureSamples + statusSamples
        + retentionSamples + requestSamples

    private static let linkSamples: [Sample] = [
        message(
            "command-link-request", LinkRequest(installId: "i1", externalId: "Ren\u{e9} \"x\" </\u{1F44B}\u{2028}")),
        message("command-link-register-install", RegisterInstall(installId: "i1", device: device, user: .new)),
        message(
            "command-link-register-install-bare",
            RegisterInstall(installId: "i1", device: Device(kind: .other, platform: "web"), user: .none)),
        message(
            "command-link-establish-create",
            EstablishLink(
                installId: "i1", device: device, externalId: "anna", mode: .create,
                askedAt: Timestamp(milliseconds: 1_700_000_000_123))),
        message(
            "command-link-establish-existing",
            EstablishLink(
                installId: "i1", device: Device(kind: .tablet, platform: "android"), externalId: "anna",
                mode: .linkExistingUser)),
        message("command-link-query", QueryInstall(installId: "i1")),
        message("command-link-detach-install", DetachInstall(installId: "i1", cause: .creationFailed)),
        message("command-link-set-install-status", SetInstallStatus(installId: "i1", status: .disabled)),
        message("command-link-erase-user", EraseUser(userId: "5a18fc4b0962209e0000000d")),
        message(
            "command-link-erase-user-by-hand",
            EraseUser(userId: "5a18fc4b0962209e0000000d", author: "kim", reason: "case 4711")),
        message("event-link-install-registered", InstallRegistered(installId: "i1", device: device, userId: "u1")),
        message("event-link-install-registered-bare", InstallRegistered(installId: "i1", device: device, userId: nil)),
        message(
            "event-link-linked",
            Linked(
                installId: "i1", externalId: "anna", userId: "u1", personCreated: false, activeInstallId: "i1",
                deactivatedInstallIds: ["i2", "i3"], version: 3,
                linkedAt: Timestamp(milliseconds: 1_795_000_000_000))),
        message("event-link-refused", LinkRefused(installId: "i1", reason: .installNotFound)),
        message("event-link-install-detached", InstallDetached(installId: "i1", userId: "u1", version: 3)),
        message(
            "event-link-install-status-changed",
            InstallStatusChanged(
                installId: "i1", status: .deleted, isActive: false, userId: nil, isLinked: false, cause: .command,
                version: 3)),
        message(
            "event-link-install-superseded",
            InstallStatusChanged(
                installId: "i1", status: .enabled, isActive: false, userId: "u1", isLinked: true, cause: .superseded,
                inactiveBecause: .superseded, version: 3)),
        message(
            "event-link-install-restored",
            InstallStatusChanged(
                installId: "i1", status: .enabled, isActive: true, userId: "u1", isLinked: true, cause: .restored,
                version: 3)),
        message("event-link-user-erased", UserErased(userId: "u1")),
        message("event-link-user-erased-by-hand", UserErased(userId: "u1", author: "kim", reason: "case 4711")),
        reply(
            "reply-link-request-succeeded",
            Reply(
                commandId: "c1", commandType: LinkRequest.type, commandDigest: digest, status: .succeeded,
                result: linkResult)),
        reply(
            "reply-link-query-succeeded",
            Reply(
                commandId: "c1", commandType: QueryInstall.type, commandDigest: digest, status: .succeeded,
                result: InstallResult(
                    installId: "i1", appId: "demo", userId: nil, externalId: nil, status: .enabled, isActive: false,
                    isUsersFirst: false, version: 3))),
        reply(
            "reply-link-query-waits",
            Reply(
                commandId: "c1", commandType: QueryInstall.type, commandDigest: digest, status: .succeeded,
                result: InstallResult(
                    installId: "i1", appId: "demo", userId: "u1", externalId: "anna", status: .enabled,
                    isActive: false, inactiveBecause: .waitsForPhone, isUsersFirst: false, version: 3))),
        reply(
            "reply-rejected",
            Reply<LinkResult>(
                commandId: "c1", commandType: LinkRequest.type, commandDigest: digest, status: .rejected,
                reason: .installNotFound,
                message: ReasonCode.installNotFound.defaultMessage)),
        reply(
            "reply-expired",
            Reply<LinkResult>(
                commandId: "c1", commandType: LinkRequest.type, commandDigest: digest, status: .expired,
                message: "Too late.")),
        message("command-user-request-auth-code", RequestAuthCode(externalId: "anna")),
        message(
            "command-user-create-code",
            CreateUser(
                installId: "i1", device: device, sdkVersion: "6.1.0", appVersion: "2.0", authCode: "c0de")),
        message(
            "command-user-create-linker",
            CreateUser(installId: "i1", device: device, appSecret: "demo-app-secret", linking: .linker)),
        message(
            "command-user-create-unlinked",
            CreateUser(installId: "i1", device: device, appSecret: "demo-app-secret", linking: Linking.none)),
        message("command-user-link-code", LinkUser(installId: "i1", authCode: "c0de")),
        message("command-user-link-linker", LinkUser(installId: "i1", linking: .linker)),
        message("command-user-confirm-link", ConfirmLink(installId: "i1", success: true)),
        message(
            "command-user-confirm-link-of", ConfirmLink(installId: "i1", success: true, externalId: "anna")),
        message("command-user-reset", ResetUser(installId: "i1")),
        message("command-user-get", GetUser(installId: "i1")),
        message(
            "command-user-expire-linker", ExpireLinker(installId: "i1", commandSource: "phone", commandId: "c1")),
        message(
            "event-user-auth-code-issued",
            AuthCodeIssued(externalId: "anna", expiresAt: time("2026-11-21T10:34:04.123Z"))),
        message(
            "event-user-created", UserCreated(installId: "i1", userId: "u1", isLinked: true, isRemoteEnabled: true)),
        message("event-user-restored", UserRestored(installId: "i1", userId: "u1", isRemoteEnabled: false)),
        message("event-user-linked", UserLinked(installId: "i1", userId: "u1")),
        message("event-user-creation-failed", UserCreationFailed(installId: "i1", reason: .authCodeUsed)),
        message("event-user-creation-expired", UserCreationFailed(installId: "i1", reason: nil)),
        message("event-user-deactivated", UserDeactivated(installId: "i1", userId: "u1", cause: .superseded)),
        message("event-user-deactivated-erased", UserDeactivated(installId: "i1", userId: nil, cause: .erased)),
        message("event-user-reset", UserReset(installId: "i1", userId: "u1")),
        reply(
            "reply-user-request-auth-code-succeeded",
            Reply(
                commandId: "c1", commandType: RequestAuthCode.type, commandDigest: digest, status: .succeeded,
                result: AuthCodeResult(authenticationCode: "c0de", expiresAt: time("2026-11-21T10:34:04.123Z")))),
        reply(
            "reply-user-create-pending",
            Reply(
                commandId: "c1", commandType: CreateUser.type, commandDigest: digest, status: .pending,
                result: PendingUser(installId: "i1", awaiting: .linker))),
        reply(
            "reply-user-create-pending-token",
            Reply(
                commandId: "c1", commandType: CreateUser.type, commandDigest: digest, status: .pending,
                result: PendingUser(
                    installId: "i1", awaiting: .linker,
                    installToken: UserTokenResult(tokenId: "h.p.s", expiryDate: time("2026-11-28T10:24:04.123Z"))))),
        reply(
            "reply-user-create-succeeded",
            Reply(
                commandId: "c1", commandType: CreateUser.type, commandDigest: digest, status: .succeeded,
                result: UserResult(
                    userId: "5a18fc4b0962209e0000000d", installId: "i1", isLinked: true, isRemoteEnabled: true,
                    token: UserTokenResult(tokenId: "h.p.s", expiryDate: time("2026-11-28T10:24:04.123Z")),
                    configuration: ["detections": true],
                    installToken: UserTokenResult(tokenId: "h.q.s", expiryDate: time("2026-11-28T10:24:04.123Z"))))),
        reply(
            "reply-user-get-not-active",
            Reply(
                commandId: "c1", commandType: GetUser.type, commandDigest: digest, status: .succeeded,
                result: UserResult(
                    userId: "5a18fc4b0962209e0000000d", installId: "i1", isLinked: true, isRemoteEnabled: false,
                    inactiveBecause: .superseded,
                    token: UserTokenResult(tokenId: "h.p.s", expiryDate: time("2026-11-28T10:24:04.123Z")),
                    configuration: ["detections": true],
                    installToken: UserTokenResult(tokenId: "h.q.s", expiryDate: time("2026-11-28T10:24:04.123Z"))))),
        reply(
            "reply-user-reset-succeeded",
            Reply(
                commandId: "c1", commandType: ResetUser.type, commandDigest: digest, status: .succeeded,
                result: ResetResult(installId: "i1"))),
        reply(
            "reply-dry-run",
            Reply(
                commandId: "c1", commandType: ResetUser.type, commandDigest: digest,
                status: .succeeded, result: ResetResult(installId: "i1"), dryRun: true,
                events: [ReplyEvent(type: UserReset.type, data: ["installId": "i1"])])),
        dryRun, replyKey,
        reply(
            "reply-pending",
            Reply<LinkResult>(commandId: "c1", commandType: LinkRequest.type, commandDigest: digest, status: .pending)),
    ]

    private static func path(_ name: String) throws -> String {
        try #require(Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Golden")).path
    }

    @Test(arguments: samples) func bytesArePinned(_ sample: Sample) throws {
        let bytes = try sample.write()
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden/\(sample.name).json")
        if ProcessInfo.processInfo.environment["UPDATE_GOLDEN"] != nil,
            !FileManager.default.fileExists(atPath: source.path)
        {
            try Data(bytes).write(to: source)
            return
        }
        let golden = try Data(contentsOf: URL(filePath: Self.path(sample.name)))
        #expect(String(decoding: bytes, as: UTF8.self) == String(decoding: golden, as: UTF8.self))
        #expect(bytes == Array(golden))
    }

    @Test(arguments: samples) func goldenFilesAreReadBack(_ sample: Sample) throws {
        let golden = try Data(contentsOf: URL(filePath: Self.path(sample.name)))
        #expect(try sample.readsBack(Array(golden)))
    }

    /// Whatever is done to it.
    @Test(arguments: samples.filter { $0.readsAlike != nil }) func eachReaderReadsWhatCodableReads(_ sample: Sample)
        throws
    {
        let readsAlike = try #require(sample.readsAlike)
        let data = try EnvelopeReader.read(value: sample.write(), headers: []).data
        #expect(readsAlike(JSONView(data)) == true)
        try runSequences(200) { seed in
            var change = RandomChange(seed: seed)
            let changed = change.changed(data)
            let text = String(decoding: changed.serialized(), as: UTF8.self)
            #expect(readsAlike(JSONView(changed)) != false, "TEST_SEED=\(seed): \(text)")
            // The same with escapes in its names.
            let escaped = text.replacing("\"i", with: "\"\\u0069")
            let view = try JSONView(parsing: Array(escaped.utf8))
            #expect(readsAlike(view) != false, "TEST_SEED=\(seed): \(escaped)")
        }
    }

    @Test func everyFileHasItsSample() throws {
        let folder = try #require(Bundle.module.url(forResource: "Golden", withExtension: nil))
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
        #expect(files.sorted() == Self.samples.map { "\($0.name).json" }.sorted())
    }

    /// Every command type there is has a golden file.
    @Test func everyCommandIsPinned() throws {
        let texts = try Self.samples.map { String(decoding: try $0.write(), as: UTF8.self) }
        for type in commandTypes {
            #expect(texts.contains { $0.contains(#""type":"\#(type.name)""#) }, "\(type.name)")
        }
    }

    /// Additive changes only (docs/contracts.md): members that are not known yet are ignored.
    @Test func unknownMembersAreIgnored() throws {
        let data: JSONValue = [
            "installId": "i1", "externalId": "anna", "added": ["later": true], "device": "ignored here",
        ]
        #expect(
            try WireJSONDecoder().decode(LinkRequest.self, from: data)
                == LinkRequest(installId: "i1", externalId: "anna"))
    }
}

/// A time as messages write it.
func time(_ text: String) -> Timestamp {
    guard let time = Timestamp(rfc3339: text) else { preconditionFailure("no time: \(text)") }
    return time
}
