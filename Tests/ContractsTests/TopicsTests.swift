// SPDX-License-Identifier: Apache-2.0

import Runtime
import Supervision
import Testing

@testable import Contracts

@Suite struct TopicsTests {
    @Test(arguments: ["", "run1."]) func names(_ prefix: String) {
        let topics = Topics(prefix: prefix)
        #expect(topics.commands("link") == "\(prefix)identity.link.commands.v1")
        #expect(topics.events("link") == "\(prefix)identity.link.events.v1")
        #expect(topics.deadLetters("link") == "\(prefix)identity.link.dlq.v1")
        #expect(topics.replies == "\(prefix)identity.replies.v1")
        #expect(topics.group("link") == "\(prefix)identity.link")
    }

    @Test(arguments: ["", "run1."]) func whatAnAppHasForItsCommands(_ prefix: String) {
        let topics = Topics(prefix: prefix)
        #expect(topics.commands("link", of: "shop") == "\(prefix)identity.link.commands.v1.shop")
        #expect(topics.group("link", of: "shop") == "\(prefix)identity.link.commands.shop")
        #expect(
            Topics.isOfCommands(topics.commands("link")) && Topics.isOfCommands(topics.commands("link", of: "shop")))
        for other in [
            topics.events("link"), topics.replies, topics.replies(to: "link"), topics.deadLetters("link"), "",
        ] {
            #expect(!Topics.isOfCommands(other), "\(other)")
        }
    }

    @Test func whichAppsCanHaveTopicsOfTheirOwn() {
        for id in ["shop", "My_shop-2", String(repeating: "x", count: 100)] {
            #expect(Topics.canOwnCommandsTopics(AppID(id)), "\(id)")
        }
        // Kafka takes `a.b` and `a_b` for the same in its metrics, and refuses to have both.
        for id in ["", "my.shop", "my shop", "Käse", "a:b", String(repeating: "x", count: 101)] {
            #expect(!Topics.canOwnCommandsTopics(AppID(id)), "\(id)")
        }
        let prefix = String(repeating: "p", count: 100)
        let longest = Topics(prefix: prefix).commands("verification", of: AppID(String(repeating: "x", count: 100)))
        #expect(longest.utf8.count <= 249)
    }

    @Test(arguments: ["", "run1."]) func nobodyElseMayNameWhereServicesAreAnswered(_ prefix: String) {
        let topics = Topics(prefix: prefix)
        for name in services.map({ $0.name }) + ["gateway", "a-service-of-tomorrow"] {
            #expect(topics.isOwn(replyTopic: topics.replies(to: name)), "\(name)")
        }
        for name in ["v1", "my-backend", "my-backend.v2", "my.backend.v1", "link.v1.dlq"] {
            #expect(!topics.isOwn(replyTopic: "\(prefix)identity.replies.\(name)"), "\(name)")
        }
        #expect(!topics.isOwn(replyTopic: "other.\(topics.replies(to: "link"))"))
        #expect(!Topics(prefix: "run1.").isOwn(replyTopic: "identity.replies.link.v1"))
    }

    struct ReplyTo: Sendable, CustomTestStringConvertible {
        var prefix: String
        var replyTo: String?
        var topic: String?
        var testDescription: String { "\(prefix)|\(replyTo ?? "none")" }
        init(_ prefix: String, _ replyTo: String?, _ topic: String?) {
            self.prefix = prefix
            self.replyTo = replyTo
            self.topic = topic
        }
    }

    static let replyTos = [
        ReplyTo("", nil, "identity.replies.v1"), ReplyTo("", "identity.replies.v1", "identity.replies.v1"),
        ReplyTo("", "identity.replies.my-backend_2.v1", "identity.replies.my-backend_2.v1"),
        ReplyTo("", "identity.replies.", nil), ReplyTo("", "identity.replies", nil), ReplyTo("", "", nil),
        ReplyTo("", "identity.link.commands.v1", nil), ReplyTo("", "identity.link.events.v1", nil),
        ReplyTo("", "x.identity.replies.v1", nil), ReplyTo("", "IDENTITY.REPLIES.V1", nil),
        ReplyTo("", "identity.replies.a/b", nil), ReplyTo("", "identity.replies.a b", nil),
        ReplyTo("", "identity.replies.\u{e9}", nil), ReplyTo("", "identity.replies.a\n", nil),
        ReplyTo("", "identity.replies.a\0", nil), ReplyTo("", "identity.replies.*", nil),
        ReplyTo(
            "", "identity.replies." + String(repeating: "x", count: 232),
            "identity.replies." + String(repeating: "x", count: 232)),
        ReplyTo("", "identity.replies." + String(repeating: "x", count: 233), nil),
        ReplyTo("run1.", nil, "run1.identity.replies.v1"),
        ReplyTo("run1.", "identity.replies.v1", "run1.identity.replies.v1"),
        ReplyTo("run1.", "run1.identity.replies.v1", "run1.identity.replies.v1"),
        ReplyTo("run1.", "run1.run1.identity.replies.v1", nil), ReplyTo("run1.", "run2.identity.replies.v1", nil),
        ReplyTo(
            "run1.", "identity.replies." + String(repeating: "x", count: 227),
            "run1.identity.replies." + String(repeating: "x", count: 227)),
        ReplyTo("run1.", "identity.replies." + String(repeating: "x", count: 228), nil),
        ReplyTo("run1.", "run1.", nil),
    ]

    @Test(arguments: replyTos) func replyTopics(_ row: ReplyTo) {
        let topic = Topics(prefix: row.prefix).replyTopic(row.replyTo)
        #expect(topic == row.topic)
        if let topic { #expect(topic.utf8.count <= 249) }
    }

    @Test func theServicesAreThoseThatThereAre() {
        #expect(Topics.services == serviceNames)
    }
}
