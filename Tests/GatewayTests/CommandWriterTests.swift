// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Runtime
import Testing
import WireJSON

@testable import Gateway

@Suite struct CommandWriterTests {
    private let internalKey = SymmetricKey(data: Array("an-internal-key-of-a-test".utf8))
    private var key: SymmetricKey { KeyPurpose.gateway.key(from: internalKey) }

    private func record(
        _ data: JSONValue, id: CommandID = "c-1", expires: Timestamp? = nil, isDryRun: Bool = false
    ) throws -> (topic: String, key: String, envelope: JSONObject) {
        let writer = CommandWriter(topics: Topics(prefix: "p."), keys: DeploymentKeys(internalKeys: [internalKey]))
        let record = try writer.record(
            OutgoingCommand(
                id: id, type: CommandType(LinkRequest.self), data: data, caller: caller(),
                trace: TraceContext(parent: nil, state: nil), expires: expires, isDryRun: isDryRun),
            ownKey: "own", now: Timestamp(milliseconds: 0))
        let value = try #require(record.value)
        let header = try #require(record.headers.first { $0.name == "signature" }?.value)
        let signature = try #require(Signature(header: header))
        #expect(signature.keyID == "gateway")
        #expect(
            signature.isValid(
                secret: key, signingString: Signature.signingString(topic: record.topic, headers: [], value: value)))
        // What is written can be read.
        _ = try EnvelopeReader.read(value: value, headers: [])
        return (
            record.topic, String(decoding: record.key ?? [], as: UTF8.self),
            try #require(JSONValue(parsing: value).objectValue)
        )
    }

    @Test func aCommandOnBehalfOfAKey() throws {
        let (topic, key, envelope) = try record(
            ["installId": "i", "externalId": "ada"], expires: Timestamp(milliseconds: 1000))
        #expect(topic == "p.identity.link.commands.v1")
        #expect(key == "demo/ada")
        #expect(envelope["replyto"] == "p.identity.replies.gateway.v1")
        #expect(envelope["authtype"] == "api_key" && envelope["authid"] == "k" && envelope["appid"] == "demo")
        #expect(envelope["expirytime"] == "1970-01-01T00:00:01.000Z")
        #expect(envelope["source"] == "identitybus/gateway" && envelope["id"] == "c-1")
    }

    /// Where the service has made it; before, nobody would read there.
    @Test func anAppsOwnCommandsTopic() throws {
        let writer = CommandWriter(topics: Topics(prefix: "p."), keys: DeploymentKeys(internalKeys: [internalKey]))
        func topic(isOwner: Bool, existing: Set<String>) throws -> String {
            let app = AppSettings(id: "demo", ownCommandsTopics: isOwner)
            let command = OutgoingCommand(
                id: "c-1", type: CommandType(LinkRequest.self), data: ["installId": "i", "externalId": "ada"],
                caller: Caller(app: app, principal: Principal(kind: .apiKey("k"), scopes: [])),
                trace: TraceContext(parent: nil, state: nil))
            return try writer.record(command, ownKey: "own", appTopics: existing, now: Timestamp(milliseconds: 0)).topic
        }
        let (shared, own) = ("p.identity.link.commands.v1", "p.identity.link.commands.v1.demo")
        #expect(try topic(isOwner: true, existing: [own]) == own)
        #expect(try topic(isOwner: true, existing: ["p.identity.user.commands.v1.demo"]) == shared)
        #expect(try topic(isOwner: false, existing: [own]) == shared)
    }

    /// A replica reads the replies to what came without an Idempotency-Key alone; all read those to what came with one.
    @Test func whichRepliesOtherReplicasSee() throws {
        let data: JSONValue = ["installId": "i", "externalId": "ada"]
        let derived = CommandID.derived(caller: caller(), idempotencyKey: "x")
        #expect(try record(data, id: .random()).envelope["replykey"] == "own")
        #expect(try record(data, id: .random(), isDryRun: true).envelope["replykey"] == "own")
        #expect(try record(data, id: derived).envelope["replykey"] == .string(ReplyAddress.sharedKey))
    }

    /// The service must be able to read it to refuse it.
    @Test(arguments: [["installId": "i"], ["installId": "i", "externalId": "a\u{7}b"], [], "text"] as [JSONValue])
    func dataWithoutAUsableSubject(_ data: JSONValue) throws {
        #expect(try record(data).key == "demo/c-1")
    }

    @Test func tooLargeForAnEnvelope() {
        #expect(throws: CommandTooLarge.self) {
            try record(["externalId": "a", "more": .string(String(repeating: "x", count: 262_144))])
        }
    }

    struct Nameless: CommandMessage {
        static let type = "link.request"
        static let scope = Scope.userLink
        var partitionSubject: String { "" }
        func validate() throws(Rejection) {}
    }

    @Test func aTypeThatNamesNoServiceIsNotTooLarge() {
        let command = OutgoingCommand(
            id: "c-1", type: CommandType(Nameless.self), data: [:], caller: caller(),
            trace: TraceContext(parent: nil, state: nil))
        #expect(throws: UnknownCommand.self) {
            try CommandWriter(topics: Topics(), keys: DeploymentKeys(internalKeys: [])).record(
                command, ownKey: "own", now: Timestamp(milliseconds: 0))
        }
    }

    private func caller(_ app: AppID = "demo", _ kind: Principal.Kind = .apiKey("k")) -> Caller {
        Caller(app: AppSettings(id: app), principal: Principal(kind: kind, scopes: []))
    }

    @Test func derivedIDs() {
        let id = CommandID.derived(caller: caller(), idempotencyKey: "x")
        #expect(id == CommandID.derived(caller: caller(), idempotencyKey: "x"))
        let others = [
            CommandID.derived(caller: caller(), idempotencyKey: "y"),
            CommandID.derived(caller: caller("demo", .apiKey("k2")), idempotencyKey: "x"),
            CommandID.derived(caller: caller("demo", .user("k")), idempotencyKey: "x"),
            CommandID.derived(caller: caller("demo2"), idempotencyKey: "x"),
        ]
        #expect(Set(others + [id]).count == 5)
        #expect(id.text.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
        #expect(CommandID.random() != CommandID.random())
    }

    /// Who guesses an Idempotency-Key does not know the command's id: that takes the caller's secret.
    @Test func derivedIDsTakeTheCallersSecret() {
        func id(secret: String, of key: KeyID = "k") -> CommandID {
            let held = APIKey(
                id: key, secret: SymmetricKey(data: Array(secret.utf8)), scopes: [], expires: nil, isRevoked: false)
            let app = AppSettings(id: "demo", keys: [key: held])
            return CommandID.derived(
                caller: Caller(app: app, principal: Principal(kind: .apiKey(key), scopes: [])), idempotencyKey: "x")
        }
        #expect(id(secret: "one") == id(secret: "one"))
        #expect(id(secret: "one") != id(secret: "two"))
        #expect(id(secret: "one") != id(secret: "one", of: "k2"), "two keys may have one secret")
        #expect(id(secret: "one") != CommandID.derived(caller: caller(), idempotencyKey: "x"))
    }

    @Test(arguments: [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false),
        ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false), ("", false), ("00---", false),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", false),
    ])
    func traces(_ row: (parent: String, isKept: Bool)) {
        let trace = TraceContext(parent: row.parent, state: "a=b")
        #expect((trace.parent == row.parent) == row.isKept)
        #expect((trace.state == "a=b") == row.isKept)
        #expect(trace.parent.contains(trace.id) && trace.id.count == 32)
        // A new one is well formed itself.
        #expect(TraceContext(parent: trace.parent, state: nil).parent == trace.parent)
    }
}
