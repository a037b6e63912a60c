// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

/// Dry runs of commands that ask other services: these try it too, the whole saga is told in one answer, and nothing is
/// left of it.
@Suite struct DryRunSagaTests {
    /// A store of the saga service, and batches on it.
    private struct Deployment {
        let store: ServiceStore<SagaService>
        let topics = Topics()

        init(_ engine: SQLEngine) throws { store = try ServiceStore(engine) }

        func decider(_ now: Timestamp, apps: AppDirectory = Fixture.apps) -> BatchDecider<SagaService> {
            let authenticator = Authenticator(trust: .signed, apps: apps, keys: Fixture.keys, topics: topics)
            return BatchDecider(
                service: SagaService(), reader: InboundReader(authenticator: authenticator, topics: topics),
                writer: MessageWriter(service: "saga", topics: topics, keys: Fixture.keys),
                vault: OutboxVault(Fixture.keys), secrets: DerivedSecrets(Fixture.keys), cluster: "cluster",
                incarnations: [:])
        }

        func decide(_ records: [KafkaRecord], after milliseconds: Int64 = 0, apps: AppDirectory = Fixture.apps) throws
            -> [Entry]
        {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + milliseconds)
            let decider = decider(now, apps: apps)
            return try store.database.transaction { transaction in
                try decider.decide(records.map { decider.reader.read($0, now: now) }, in: transaction, now: now)
            }
        }

        func overdue(after milliseconds: Int64) throws -> [OutboxRecord] {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + milliseconds)
            return try store.database.transaction { transaction in
                try decider(now).endOverdueDryRuns(limit: 10, in: transaction, now: now)
                let ended = try DryRuns.ended(limit: 10, in: transaction)
                // As the loop does once they are delivered.
                for row in ended { try DryRuns.remove(app: row.app, id: row.id, in: transaction) }
                return try ended.flatMap { try OutboxVault(Fixture.keys).open($0.message) }
            }
        }

        func begin(
            _ question: String = "why", id: String = "c1", offset: Int64 = 0, dryRun: String? = "true",
            signedBy key: String = "demo-backend", by service: String = "gateway"
        ) throws -> KafkaRecord {
            var attributes = Fixture.attributes(SagaService.begin, id: id)
            attributes.dryRun = dryRun
            attributes.replyTo = "identity.replies.mine"
            attributes.replyKey = "my-key"
            if key == Signature.internalKeyID { attributes.source = "identitybus/\(service)" }
            return try Fixture.record(
                attributes, ["question": .string(question)], signedBy: key, offset: offset,
                topic: topics.commands("saga"))
        }

        /// What the service that was asked answers.
        func answer(
            to forward: OutboxRecord?, _ status: String = "succeeded", offset: Int64 = 0, isDryRun: Bool = true,
            message: JSONValue? = nil
        ) throws -> KafkaRecord {
            let forward = try #require(forward)
            let asked = try EnvelopeReader.read(value: forward.value, headers: forward.headers)
            var attributes = EventAttributes(
                id: "reply-\(offset)", source: "identitybus/peer", type: ReceivedReply.type, appID: "demo")
            attributes.partitionKey = asked.attributes.replyKey
            var data: JSONObject = [
                "commandId": .string(asked.attributes.id), "commandType": .string(asked.attributes.type),
                "commandDigest": "d",
                "status": .string(status),
            ]
            data["message"] = message
            if isDryRun {
                data["dryRun"] = true
                data["events"] = [["type": "identity.peer.happened.v1", "data": ["number": .string("\(offset)")]]]
            }
            return try Fixture.record(
                attributes, .object(data), signedBy: Signature.eventsKeyID, offset: offset,
                topic: topics.replies(to: "saga"))
        }

        /// All that a command could leave.
        func state() throws -> [[SQLValue]] {
            try store.rows(["open ORDER BY id", "saga ORDER BY id", "forward ORDER BY id", "dry_run ORDER BY id"])
        }

        func waiting() throws -> Int64 { try store.count("dry_run") }
    }

    private func reply(_ message: OutboxRecord?) throws -> CloudEvent<ReceivedReply> {
        try Fixture.reply(try #require(message?.value))
    }

    private func types(_ reply: ReceivedReply) -> [String] {
        reply.events?.compactMap { $0["type"]?.stringValue } ?? []
    }

    @Test(arguments: SQLEngine.allCases) func theWholeSagaIsToldInOneAnswer(_ engine: SQLEngine) throws {
        let one = try Deployment(engine)
        let first = try #require(try one.decide([one.begin()]).first)
        #expect(first.outcome.rawValue == "dry-run" && first.key == nil)
        #expect(first.messages.map(\.role) == [.command])
        let forward = try #require(first.messages.first)
        let asked = try EnvelopeReader.read(value: forward.value, headers: forward.headers).attributes
        // The id is the one that it would have, because what the other service makes is named after it.
        #expect(asked.id == DerivedID.forward(of: CommandKey(app: "demo", source: "test", id: "c1"), number: 0).text)
        #expect(asked.isDryRun && asked.replyTo == "identity.replies.saga.v1" && asked.replyKey?.isEmpty == false)
        #expect(try one.waiting() == 1)
        #expect(try one.store.count("open") + one.store.count("saga") + one.store.count("forward") == 0)

        let last = try #require(try one.decide([one.answer(to: forward)], after: 2000).first)
        #expect(last.outcome.rawValue == "dry-run" && last.key == nil && last.messages.map(\.role) == [.reply])
        let told = try reply(last.messages.first)
        #expect(told.attributes.id == asked.replyKey && told.attributes.partitionKey == "my-key")
        #expect(last.messages.first?.topic == "identity.replies.mine")
        #expect(told.data.commandId == "c1" && told.data.isDryRun && told.data.status == .succeeded)
        #expect(told.data.result == nil && told.data.message == nil)
        #expect(types(told.data) == ["identity.peer.happened.v1", "identity.saga.answered.v1"])
        #expect(try one.state().isEmpty)
        // The command itself is as new.
        #expect(try one.decide([one.begin(offset: 1, dryRun: nil)])[0].outcome.rawValue == "pending")
    }

    @Test func aSilentSagaAndARefusalAreToldToo() throws {
        let one = try Deployment(.sqlite)
        let first = try one.decide([one.begin("silent")])
        let told = try reply(try one.decide([one.answer(to: first[0].messages.first, "rejected")])[0].messages.first)
        #expect(told.data.status == .rejected && told.data.reason == "SERVER_ERROR" && told.data.isDryRun)
    }

    @Test(arguments: SQLEngine.allCases) func allAnswersAreWaitedFor(_ engine: SQLEngine) throws {
        let one = try Deployment(engine)
        let forwards = try one.decide([one.begin("both")])[0].messages
        #expect(forwards.map(\.topic) == ["identity.peer.commands.v1", "identity.other.commands.v1"])
        let early = try one.decide([one.answer(to: forwards[1]), one.answer(to: forwards[1], offset: 1)])
        #expect(early.map(\.outcome.rawValue) == ["dry-run", "noted"] && early.flatMap(\.messages).isEmpty)
        #expect(try one.waiting() == 2)
        let late = try one.decide([one.answer(to: forwards[0], offset: 2), one.answer(to: forwards[0], offset: 3)])
        #expect(late.map(\.outcome.rawValue) == ["dry-run", "noted"] && late.flatMap(\.messages).count == 1)
        #expect(try reply(late[0].messages.first).data.status == .succeeded)
        #expect(try one.state().isEmpty)
        #expect(early[1].key == nil && late[1].key == nil)
    }

    /// What another service is asked next is asked as a dry run too.
    @Test func aSagaGoesOnToOtherServices() throws {
        let one = try Deployment(.sqlite)
        let first = try one.decide([one.begin(id: "again-other")])[0]
        let second = try one.decide([one.answer(to: first.messages.first)])[0]
        #expect(second.messages.map(\.topic) == ["identity.other.commands.v1"])
        let asked = try EnvelopeReader.read(value: second.messages[0].value, headers: []).attributes
        #expect(asked.isDryRun && asked.causationID == "again-other")
        let told = try reply(try one.decide([one.answer(to: second.messages[0], offset: 1)])[0].messages.first).data
        #expect(told.status == .succeeded && types(told).count == 4)
        #expect(try one.state().isEmpty)
    }

    /// What a service would answer next follows from what it has not done, and is not made up.
    @Test func aServiceIsNotAskedAboutWhatItLeftUndone() throws {
        let one = try Deployment(.sqlite)
        let first = try one.decide([one.begin(id: "again-peer")])[0]
        let told = try one.decide([one.answer(to: first.messages.first)])[0]
        #expect(told.messages.count == 1)
        let data = try reply(told.messages.first).data
        #expect(data.status == .pending && data.message?.contains("The peer service") != true)
        #expect(data.message?.contains("the peer service") == true)
        #expect(try one.state().isEmpty)
    }

    @Test func whoCannotTellAllSaysSo() throws {
        let one = try Deployment(.sqlite)
        let forwards = try one.decide([one.begin("both")])[0].messages
        #expect(try one.decide([one.answer(to: forwards[0], "pending")])[0].messages.isEmpty)
        let data = try reply(one.decide([one.answer(to: forwards[1], offset: 1)])[0].messages.first).data
        #expect(data.status == .pending && data.message == "The peer service cannot tell all that it would do.")
        #expect(try one.state().isEmpty)
        #expect(try one.decide([one.answer(to: forwards[1], offset: 2)])[0].outcome.rawValue == "noted")
    }

    /// Both have one id; the mark keeps them apart.
    @Test func aDryRunAndASagaOfTheSameCommandDoNotMeet() throws {
        let one = try Deployment(.sqlite)
        let tried = try one.decide([one.begin()])[0].messages
        let real = try one.decide([one.begin(offset: 1, dryRun: nil)])[0].told
        let late = try one.answer(to: tried.first)
        let told = try [late, one.answer(to: real.first, offset: 1, isDryRun: false)].flatMap { record in
            #expect(try one.store.count("forward") == 1)
            return try one.decide([record])
        }
        #expect(told.map(\.outcome.rawValue) == ["dry-run", "noted"])
        #expect(try reply(told[0].messages.last).data.isDryRun)
        #expect(try reply(told[1].messages.last).data.isDryRun == false)
        let before = try one.state()
        #expect(try one.decide([one.answer(to: tried.first, offset: 2)])[0].outcome.rawValue == "noted")
        #expect(try one.state() == before)
    }

    @Test(arguments: SQLEngine.allCases) func afterThirtySecondsWhatIsKnownIsTold(_ engine: SQLEngine) throws {
        let one = try Deployment(engine)
        let forwards = try one.decide([one.begin("both")])[0].messages
        _ = try one.decide([one.answer(to: forwards[0])], after: 10_000)
        #expect(try one.overdue(after: 29_999).isEmpty)
        let told = try one.overdue(after: 30_000)
        let data = try reply(told.first).data
        #expect(told.count == 1 && data.isDryRun && data.status == .pending && data.commandId == "c1")
        #expect(data.message == "Not every service answered within 30 s: other.")
        #expect(types(data) == ["identity.peer.happened.v1", "identity.saga.answered.v1"])
        #expect(try one.state().isEmpty)
        #expect(try one.decide([one.answer(to: forwards[1], offset: 1)], after: 31_000)[0].messages.isEmpty)
        #expect(try one.state().isEmpty)
    }

    /// Something kept it, or a clock was wrong.
    @Test(arguments: [60_000, -60_000] as [Int64]) func muchLaterOnlyThatIsTold(_ milliseconds: Int64) throws {
        let one = try Deployment(.sqlite)
        _ = try one.decide([one.begin()])
        let data = try reply(try one.overdue(after: milliseconds).first).data
        #expect(data.status == .pending && data.message == "Not every service answered within 30 s.")
        #expect(try one.state().isEmpty)
    }

    @Test func onlySoManyWait() throws {
        let one = try Deployment(.sqlite)
        let limit = BatchDecider<SagaService>.maxWaiting
        let records = try (0..<limit + 1).map { try one.begin(id: "c\($0)", offset: Int64($0)) }
        let entries = try one.decide(Array(records[..<60])) + one.decide(Array(records[60...]))
        #expect(entries.dropLast().allSatisfy { $0.messages[0].role == .command })
        let refused = try reply(entries.last?.messages.first).data
        #expect(refused.isDryRun && refused.rejection.reason == .limitExceeded && refused.status == .rejected)
        // What another service asks for comes of what that one let in.
        let asked = try one.decide([one.begin(id: "x", offset: 200, signedBy: Signature.internalKeyID)])[0]
        #expect(asked.messages[0].role == .command)
        #expect(try one.waiting() == Int64(limit + 1))
        let ended = (0..<2).map { entries[$0].messages[0] }
        _ = try one.decide(ended.enumerated().map { try one.answer(to: $1, offset: Int64($0)) })
        #expect(try one.decide([one.begin(id: "y", offset: 201)])[0].messages[0].role == .command)
    }

    @Test func whatWaitsIsEncrypted() throws {
        let one = try Deployment(.sqlite)
        _ = try one.decide([one.begin("a question with a secret")])
        let row = try #require(try one.store.rows(["dry_run"]).first)
        let texts = row.compactMap {
            if case .blob(let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        #expect(texts.count == 1 && texts.allSatisfy { !$0.contains("secret") })
    }

    /// A key that is withdrawn meanwhile may not send it any more; one that has expired was good when it did.
    @Test func whoMayNotAskByNowIsNotTold() throws {
        let one = try Deployment(.sqlite)
        let soon = try one.decide([one.begin(signedBy: "demo-soon")])[0].messages
        #expect(try one.decide([one.answer(to: soon.first)], after: 5000)[0].messages.count == 1)
        let other = try one.decide([one.begin(offset: 1)])[0].messages
        let apps = AppDirectory([AppSettings(id: "demo", keys: [:])])
        let entry = try one.decide([one.answer(to: other.first, offset: 1)], apps: apps)[0]
        #expect(entry.outcome.rawValue == "noted" && entry.messages.isEmpty)
        #expect(try one.state().isEmpty)
    }

    /// What a service makes of the second of two events follows from what it made of the first, which a dry run leaves
    /// undone: so it is asked about neither, and nothing that it answers is told.
    @Test(arguments: [("news", ["peer"], false), ("news and more", [], true), ("news for all", ["other"], true)])
    func ofSeveralEventsForOneServiceNoneIsTried(_ question: String, _ asked: [String], _ isNoted: Bool) throws {
        let one = try Deployment(.sqlite)
        var told = try one.decide([one.begin(question)])[0].messages
        if !asked.isEmpty {
            #expect(told.map(\.topic) == asked.map(one.topics.commands))
            told = try one.decide([one.answer(to: told.first, offset: 1)])[0].messages
        }
        let data = try reply(told.first).data
        #expect(told.count == 1 && data.isDryRun && data.status == .succeeded)
        #expect((data.message?.hasPrefix("What the peer service would do is not told") ?? false) == isNoted)
        #expect(types(data).filter { $0 == "identity.peer.happened.v1" }.count == asked.count)
    }

    /// It has left undone what it asks for.
    @Test(arguments: ["gateway", "peer"]) func whoAsksIsNotAskedBack(_ service: String) throws {
        let one = try Deployment(.sqlite)
        let told = try one.decide([one.begin("news", signedBy: Signature.internalKeyID, by: service)])[0].messages
        #expect(told.map(\.role) == [service == "peer" ? .reply : .command])
        guard service == "peer" else { return }
        let note = "What the peer service would do is not told"
        let data = try reply(told[0]).data
        #expect(data.status == .succeeded && data.message?.hasPrefix(note) == true)
        #expect(types(data) == ["identity.saga.news.v1"])
    }

    /// What the service that was asked could not tell, and why, is told by the one that asked.
    @Test(arguments: [("succeeded", "Not all." as JSONValue?), ("rejected", nil)])
    func whatAnotherCannotTellIsSaid(_ status: String, _ note: JSONValue?) throws {
        let one = try Deployment(.sqlite)
        let asked = try one.decide([one.begin("news")])[0].messages
        let answer = try one.answer(to: asked.first, status, offset: 1, message: "Not all.")
        #expect(try reply(one.decide([answer])[0].messages.first).data.message.map { .string($0) } == note)
    }

    /// What a service would make of an event is asked by other services, and never more than a dry run.
    @Test func anEventIsTriedForOtherServicesAlone() throws {
        let deployment = try Deployment(.sqlite)
        func heard(_ id: String, by key: String, dryRun: String?, _ offset: Int64) throws -> Entry? {
            var attributes = Fixture.attributes(SagaService.Happened.type, id: id)
            attributes.dryRun = dryRun
            if key == Signature.internalKeyID { attributes.source = "identitybus/peer" }
            let record = try Fixture.record(
                attributes, [:], signedBy: key, offset: offset, topic: deployment.topics.commands("saga"))
            return try deployment.decide([record]).first
        }
        let tried = try #require(try heard("e1", by: Signature.internalKeyID, dryRun: "true", 0))
        #expect(tried.outcome == .dryRun && tried.messages.map(\.role) == [.reply])
        #expect(try heard("e2", by: Signature.internalKeyID, dryRun: nil, 1)?.reason == "UNKNOWN_TYPE")
        #expect(try heard("e3", by: "demo-backend", dryRun: "true", 2)?.reason == "UNKNOWN_TYPE")
    }
}
