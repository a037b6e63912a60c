// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import MessagingTestKit
import Storage
import TestKit
import Testing
import WireJSON

@testable import Apps
@testable import Runtime

/// Who reads about people is noted, and the people are not.
@Suite struct PersonReadsTests {
    private struct Asked: PersonQuery {
        static let type = "identity.asked.who.v1"
        static let scope = Scope.userLink
        static let orScope: Scope? = .sdk
        var name: String
        var partitionSubject: String { name }
        var subject: (kind: String, name: String) { ("name", name) }

        func validate() throws(Rejection) {
            if name.isEmpty { throw Rejection(.invalidRequest, "data.name is empty.") }
        }
    }

    private struct Told: CommandMessage, CommandResult {
        static let type = "identity.asked.tell.v1"
        static let scope = Scope.userLink
        var name: String
        var partitionSubject: String { name }

        func validate() {}
    }

    private struct Remove: CommandMessage, EventMessage {
        static let type = "identity.asked.remove.v1"
        static let scope = Scope.userDelete
        var name: String
        var partitionSubject: String { name }
        var subject: String { name }

        func validate() {}
    }

    private struct Nothing: ServiceState {
        mutating func apply(_ change: Never) {}
    }

    private struct Service: CommandService {
        static let name = "asked"
        static let migrations: [Migration] = []
        static let inputs: [Input<String>] = [
            .command(Asked.self) { $0.name }, .command(Told.self) { $0.name }, .command(Remove.self) { $0.name },
        ]

        func load(_ commands: [(String, DecisionContext)], in transaction: any SQLTransaction) -> Nothing { Nothing() }
        func save(_ state: Nothing, in transaction: any SQLTransaction) {}
        func decide(_ name: String, _ state: Nothing, _ context: DecisionContext) -> Decision<Never> {
            name == "nobody"
                ? .rejected(.userNotFound) : Decision(.succeeded(Told(name: name)), events: [Remove(name: name)])
        }
    }

    private let store: ServiceStore<Service>
    private let log = LogRecorder()
    private let reader = InboundReader<Service>(authenticator: Fixture.authenticator(), topics: Topics())

    init() throws { store = try ServiceStore(.sqlite) }

    /// - Returns: what the log says of the records, as one batch.
    private func noted(_ records: [KafkaRecord]) throws -> [Logger.Metadata] {
        let before = log.lines.count
        let (batch, entries) = try decide(records)
        PersonReads(service: "asked", logger: log.logger).note(batch, entries, .none)
        return log.lines[before...].map(\.metadata)
    }

    private func decide(_ records: [KafkaRecord]) throws -> ([Inbound<String>], [Entry]) {
        let decider = BatchDecider(
            service: Service(), reader: reader,
            writer: MessageWriter(service: "asked", topics: Topics(), keys: Fixture.keys),
            vault: OutboxVault(Fixture.keys), secrets: .none, cluster: "cluster", incarnations: [:])
        let batch = records.map { reader.read($0, now: Fixture.now) }
        let entries = try store.database.transaction { transaction in
            try decider.decide(batch, in: transaction, now: Fixture.now)
        }
        return (batch, entries)
    }

    private func ask(
        _ name: String, _ type: String = Asked.type, id: String = "c1", by key: String = "demo-backend",
        offset: Int64 = 0, _ change: (inout EventAttributes) -> Void = { _ in }
    ) throws -> KafkaRecord {
        var attributes = Fixture.attributes(type, id: id)
        change(&attributes)
        return try Fixture.record(attributes, ["name": .string(name)], signedBy: key, offset: offset)
    }

    @Test func whoAsksIsNotedAndNotAboutWhom() throws {
        let line = try #require(try noted([ask("anna@example.com")]).first)
        #expect(
            line == [
                "event": "person.read", "service": "asked", "app": "demo", "authid": "demo-backend",
                "type": "identity.asked.who.v1", "outcome": "succeeded", "ref": "c1",
                "subject": "\(PersonAsked(kind: "name", name: "anna@example.com").digest(in: "demo", .none))",
            ])
        #expect(!"\(line)".contains("anna"))
    }

    /// Each time that an answer tells of somebody, or that there is nobody.
    @Test func eachAnswerIsNoted() throws {
        let first = try noted([ask("anna"), ask("nobody", id: "c2", offset: 1)])
        #expect(first.map { $0["outcome"] } == ["succeeded", "rejected"] && first[1]["reason"] == "USER_NOT_FOUND")
        let again = try noted([ask("anna", offset: 2), ask("anna", id: "c3", offset: 3) { $0.dryRun = "true" }])
        #expect(again.map { $0["outcome"] } == ["repeated", "dry-run"])
        #expect(Set((first + again).map { "\($0["subject"] ?? "")" }).count == 2)
    }

    /// A dry run tells about somebody, whatever it tries, and leaves nothing else; one of a service comes of one of those. Who
    /// it is about stands in the data, whatever `subject` says.
    @Test func whoTriesACommandIsNoted() throws {
        func tried(_ id: String, by key: String, _ offset: Int64) throws -> KafkaRecord {
            try ask("anna", Told.type, id: id, by: key, offset: offset) {
                ($0.dryRun, $0.subject) = ("true", "innocent")
            }
        }
        let lines = try noted([try tried("c1", by: "demo-backend", 0), try tried("c2", by: "internal", 1)])
        #expect(lines.map { $0["ref"] } == ["c1"] && lines[0]["outcome"] == "dry-run")
        #expect(
            "\(lines[0]["subject"] ?? "")" == PersonAsked(kind: "subject", name: "anna").digest(in: "demo", .none))
    }

    /// Whoever asks for an id that nobody has does not make it known by that.
    @Test func whatIsAskedInVainIsNoHistory() throws {
        let asked = try ask("nobody") { $0.subject = "nobody" }
        let told = try ask("nobody", Told.type, id: "c2", offset: 1) { $0.subject = "nobody" }
        let (_, entries) = try decide([asked, told])
        #expect(entries.map(\.outcome) == [.rejected, .rejected])
        let subject = DerivedSecrets.none.subject("nobody", of: "demo")
        let mentions = try store.database.transaction { try Mentions.of(subject, behind: nil, limit: 9, in: $0) }
        #expect(mentions.count == 1)
    }

    /// Who learns nothing has read nothing.
    @Test func whatTellsNothingIsNotNoted() throws {
        _ = try noted([ask("anna")])
        let records = [
            try ask("bert", offset: 1), try ask("", id: "c2", offset: 2),
            try ask("anna", Told.type, id: "c3", offset: 3),
            try ask("anna", id: "c4", offset: 4) { $0.expiryTime = "1970-01-01T00:00:00Z" },
            try ask("anna", id: "c5", by: "nobody", offset: 5),
        ]
        #expect(try noted(records).isEmpty)
    }

    /// Either scope will do, and without them the state is not asked.
    @Test func eitherScopeWillDo() throws {
        #expect(try noted([ask("anna", by: "demo-sdk")]).map { $0["authid"] } == ["demo-sdk"])
        #expect(reader.read(try ask("anna", Told.type, by: "demo-sdk"), now: Fixture.now).accepted == nil)
    }

    /// What people do by hand names their key, whatever they say who they are, in events and answers, and again.
    @Test(arguments: [(Remove.type, "demo-backend"), (Told.type, nil)])
    func whoseKeyItWasStandsInWhatIsTold(_ row: (type: String, key: String?)) throws {
        let records = try (0..<3).map { offset in
            try ask("anna", row.type, offset: Int64(offset)) { attributes in
                (attributes.authType, attributes.authID) = ("api_key", "demo-sdk")
                if offset == 2 { (attributes.id, attributes.dryRun) = ("c2", "true") }
            }
        }
        let messages = try decide(records).1.flatMap(\.told)
        #expect(messages.map(\.role) == [.event, .reply, .reply, .reply])
        for message in messages {
            let attributes = try EnvelopeReader.read(value: message.value, headers: message.headers).attributes
            #expect(attributes.authID == row.key && (attributes.authType == "api_key") == (row.key != nil))
        }
    }

    /// The same name in two apps, of two kinds or under two salts is not seen to be the same.
    @Test func theDigestSaysNothing() {
        let asked = PersonAsked(kind: "email", name: "a@b.io")
        let digests = [
            asked.digest(in: "demo", .none), asked.digest(in: "other", .none),
            PersonAsked(kind: "other", name: "a@b.io").digest(in: "demo", .none),
            asked.digest(in: "demo", DerivedSecrets(.none, salt: [UInt8](repeating: 1, count: 32))),
        ]
        #expect(Set(digests).count == 4 && digests.allSatisfy { $0.utf8.count == 32 })
    }
}

/// Keeps what is logged.
