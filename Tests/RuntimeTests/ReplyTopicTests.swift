// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Testing
import WireJSON

@testable import Runtime

/// Where replies go, and who may have them sent where.
@Suite struct ReplyTopicTests {
    private static let apps = AppDirectory([
        AppSettings(
            id: "demo", keys: ["demo-backend": Fixture.key("demo-backend", [.userLink])],
            replies: "identity.replies.demo"),
        AppSettings(id: "other", keys: ["other-backend": Fixture.key("other-backend", [.userLink])]),
    ])

    private func reader(prefix: String = "") -> InboundReader<FakeService> {
        InboundReader(
            authenticator: Authenticator(
                trust: .signed, apps: Self.apps, keys: Fixture.keys, topics: Topics(prefix: prefix)),
            topics: Topics(prefix: prefix))
    }

    /// The topic of the answer, and why the command is refused, if it is.
    private func direct(
        _ replyTo: String?, app: String = "demo", signedBy: String? = nil, source: String = "test", prefix: String = "",
        change: (inout EventAttributes) -> Void = { _ in }
    ) throws -> (topic: String?, reason: ReasonCode?) {
        var attributes = Fixture.attributes(app: app)
        attributes.replyTo = replyTo
        attributes.source = source
        change(&attributes)
        let record = try Fixture.record(attributes, signedBy: signedBy ?? "\(app)-backend")
        let topics = Topics(prefix: prefix)
        switch reader(prefix: prefix).read(record, now: Fixture.now) {
        case .accepted(let command): return (topics.replyTopic(command.attributes.replyTo), nil)
        case .refused(let refusal):
            return (topics.replyTopic(refusal.answer?.attributes.replyTo), refusal.answer?.rejection.reason)
        case .skipped: return (nil, nil)
        }
    }

    @Test func anAppsOwnTopicIsItsDefaultAndItsOnlyOne() throws {
        for named in [nil, "identity.replies.demo"] {
            #expect(try direct(named) == ("identity.replies.demo", nil))
        }
        for named in ["identity.replies.v1", "identity.replies.mine", "identity.replies.user.v1", "nonsense", ""] {
            #expect(try direct(named) == ("identity.replies.demo", .invalidRequest), "\(named)")
        }
        #expect(try direct("p.identity.replies.demo", prefix: "p.") == ("p.identity.replies.demo", nil))
        #expect(try direct("identity.replies.x", prefix: "p.") == ("p.identity.replies.demo", .invalidRequest))
    }

    @Test func anAppWithoutOneNamesNobodyElses() throws {
        #expect(try direct(nil, app: "other") == ("identity.replies.v1", nil))
        #expect(try direct("identity.replies.mine", app: "other") == ("identity.replies.mine", nil))
        for named in ["identity.replies.demo", "identity.replies.user.v1", "identity.replies.tomorrow.v1"] {
            #expect(try direct(named, app: "other") == ("identity.replies.v1", .invalidRequest), "\(named)")
        }
        let prefixed = try direct("p.identity.replies.demo", app: "other", prefix: "p.")
        #expect(prefixed == ("p.identity.replies.v1", .invalidRequest))
    }

    @Test func theGatewayAndTheServicesKeepTheirs() throws {
        let topic = "identity.replies.gateway.v1"
        let vouched = try direct(topic, signedBy: Signature.internalKeyID, source: "identitybus/gateway") {
            $0.authType = "api_key"
            $0.authID = "demo-backend"
        }
        #expect(vouched == (topic, nil))
        let service = try direct(
            "identity.replies.user.v1", signedBy: Signature.internalKeyID, source: "identitybus/user")
        #expect(service == ("identity.replies.user.v1", nil))
    }

    @Test func strangersAreNotAnsweredOnAnAppsTopic() throws {
        let stranger = try direct("identity.replies.demo", app: "other", signedBy: "demo-backend")
        #expect(stranger == ("identity.replies.v1", .unauthenticated))
        // Its own app's key that does not check out is answered where the app looks.
        #expect(try direct(nil, signedBy: "demo-nobody") == ("identity.replies.demo", .unauthenticated))
    }

    /// Anybody can make up topics: none of theirs is written to.
    @Test func strangersAreAnsweredOnTopicsThatThereAre() throws {
        for named in ["identity.replies.x-1", "identity.replies.x-1.v1", "identity.replies.demo2"] {
            #expect(try direct(named, signedBy: "demo-nobody") == ("identity.replies.v1", .unauthenticated), "\(named)")
            let unsigned = try direct(named, app: "nobody", signedBy: "demo-backend")
            #expect(unsigned == ("identity.replies.v1", .unauthenticated), "\(named)")
        }
        let common = try direct("identity.replies.v1", signedBy: "demo-nobody")
        #expect(common == ("identity.replies.v1", .unauthenticated))
        let own = try direct("identity.replies.demo", signedBy: "demo-nobody")
        #expect(own == ("identity.replies.demo", .unauthenticated))
        // What is not even a name of a reply topic is said to be so nowhere.
        #expect(try direct("nonsense", signedBy: "demo-nobody").reason == .unauthenticated)
    }

    /// Services and the gateway sign what they send: an answer to somebody else there would be taken for theirs. A copy of
    /// their command has its id, its data and its reply topic.
    @Test(arguments: ["gateway", "user", "sync", "tomorrow"]) func copiesWithoutAKeyAreNotAnsweredInItsPlace(
        _ sender: String
    ) throws {
        let topic = "identity.replies.\(sender).v1"
        for key in ["demo-nobody", "other-backend", Signature.eventsKeyID] {
            let copy = try direct(topic, signedBy: key, source: "identitybus/\(sender)")
            #expect(copy == ("identity.replies.v1", .unauthenticated), "\(key)")
        }
    }

    /// It hears that its caller's key was revoked meanwhile.
    @Test func theGatewayHearsWhomItMayNotSpeakFor() throws {
        let revoked = try direct(
            "identity.replies.gateway.v1", signedBy: Signature.gatewayKeyID, source: "identitybus/gateway"
        ) {
            $0.authType = "api_key"
            $0.authID = "gone"
        }
        #expect(revoked == ("identity.replies.gateway.v1", .unauthenticated))
    }

    /// The deployment made an app's topic, so nothing for it is given up.
    @Test func anAppsTopicIsWaitedFor() throws {
        var attributes = Fixture.attributes()
        attributes.replyTo = "identity.replies.demo"
        let record = try Fixture.record(attributes)
        var writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let answer = Refusal.Answer(CloudEvent(attributes: attributes, data: JSONView(.null)), Rejection(.idReused))
        func notice() throws -> OutboxRecord {
            try writer.notice(answer, of: record, in: .init(cluster: "c", incarnation: 0), now: Fixture.now)
        }
        #expect(try notice().mayBeGivenUp)
        writer.appReplyTopics = ["identity.replies.demo"]
        #expect(try !notice().mayBeGivenUp)
    }

    /// A code or a token that its topic refuses does not come to lie where operators read.
    @Test func aSecretDoesNotGoIntoADeadLetter() throws {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: Fixture.keys)
        let reply = OutboxRecord(
            .confidentialReply, Record(topic: "identity.replies.typo", key: [1], value: Array("the-code".utf8)),
            mayBeGivenUp: true)
        let error = KafkaError(code: KafkaError.Code.unknownTopicOrPartition, message: "no such topic")
        let letter = try #require(writer.undeliverable(reply, error, now: .now))
        #expect(letter.value == nil && letter.topic == "identity.fake.dlq.v1")
        #expect(letter.headers.contains { $0.name == "dlq_value" })
    }
}
