// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Supervision
import Testing

/// What a deployment has in Kafka, by its settings and its apps file.
@Suite struct DeploymentTopicsTests {
    private static let apps = AppDirectory([
        AppSettings(id: "acme", ownCommandsTopics: true), AppSettings(id: "demo", replies: "identity.replies.demo"),
    ])

    private func topics(
        _ environment: [String: String] = [:], apps: AppDirectory = AppDirectory([])
    ) throws -> DeploymentTopics {
        DeploymentTopics(try TopicPlan(EnvironmentSettings(environment)), apps: apps)
    }

    private func lines(_ rights: [KafkaRight]) -> [String] {
        rights.map { "\($0.operation.rawValue) \($0.resource.rawValue) \($0.name)\($0.isPrefix ? "*" : "")" }
    }

    @Test func eachServiceAndTheGatewayHaveTheirTopics() throws {
        #expect(
            try topics().specs.map(\.name)
                == [
                    "identity.link.commands.v1", "identity.link.dlq-actions.v1", "identity.link.dlq.v1",
                    "identity.link.events.v1",
                    "identity.replies.gateway.v1", "identity.replies.link.v1", "identity.replies.sync.v1",
                    "identity.replies.user.v1", "identity.replies.v1", "identity.replies.verification.v1",
                    "identity.status.v1",
                    "identity.sync.commands.v1", "identity.sync.dlq-actions.v1", "identity.sync.dlq.v1",
                    "identity.sync.events.v1",
                    "identity.user.commands.v1", "identity.user.dlq-actions.v1", "identity.user.dlq.v1",
                    "identity.user.events.v1",
                    "identity.verification.commands.v1", "identity.verification.dlq-actions.v1",
                    "identity.verification.dlq.v1",
                    "identity.verification.events.v1",
                ])
    }

    @Test func appsHaveTopicsOfTheirOwn() throws {
        let all = try topics(["TOPIC_PREFIX": "p."], apps: Self.apps).all.filter { $0.app != nil }
        #expect(
            all.map { "\($0.spec.name) \($0.app?.text ?? "")" }
                == [
                    "p.identity.link.commands.v1.acme acme", "p.identity.replies.demo demo",
                    "p.identity.sync.commands.v1.acme acme", "p.identity.user.commands.v1.acme acme",
                    "p.identity.verification.commands.v1.acme acme",
                ])
    }

    @Test func whatIsWantedFollowsFromTheSettings() throws {
        let environment = ["TOPIC_PARTITIONS": "3", "TOPIC_REPLICATION_FACTOR": "3", "JOURNAL_RETENTION_HOURS": "48"]
        let commands = try #require(try topics(environment).specs.first)
        #expect(commands.partitions == 3 && commands.replicationFactor == 3)
        #expect(
            commands.config(copies: 3) == [
                "cleanup.policy": "delete", "max.message.bytes": "2000000", "message.timestamp.type": "LogAppendTime",
                "min.insync.replicas": "2", "retention.bytes": "-1", "retention.ms": "172800000",
            ])
        #expect(commands.config(copies: 2)["min.insync.replicas"] == nil)
    }

    @Test func aServiceMayDoWhatItDoes() throws {
        let never = ["TOPIC_CREATE": "never"]
        #expect(
            lines(try topics(never, apps: Self.apps).rights(of: "user")) == [
                "Write Topic identity.link.commands.v1", "Write Topic identity.link.commands.v1.acme",
                "Read Topic identity.link.events.v1", "Write Topic identity.replies.*",
                "Read Topic identity.replies.user.v1", "Write Topic identity.status.v1",
                "Read Topic identity.user.commands.v1",
                "Write Topic identity.user.commands.v1", "Read Topic identity.user.commands.v1.acme",
                "Write Topic identity.user.commands.v1.acme", "Read Topic identity.user.dlq-actions.v1",
                "Read Topic identity.user.dlq.v1",
                "Write Topic identity.user.dlq.v1", "Write Topic identity.user.events.v1", "Read Group identity.user",
                "Read Group identity.user.commands.acme", "Read Group identity.user.events.link",
                "Read Group identity.user.replies",
            ])
        // It sends nothing to itself.
        #expect(
            try !topics(never).rights(of: "link").contains(KafkaRight(.topic, "identity.link.commands.v1", .write)))
    }

    @Test func theGatewayReadsItsRepliesAlone() throws {
        let rights = try topics(["TOPIC_CREATE": "never", "TOPIC_PREFIX": "p."]).rights(of: "gateway")
        #expect(
            lines(rights) == [
                "Write Topic p.identity.link.commands.v1", "Read Topic p.identity.replies.gateway.v1",
                "Write Topic p.identity.status.v1",
                "Write Topic p.identity.sync.commands.v1", "Write Topic p.identity.user.commands.v1",
                "Write Topic p.identity.verification.commands.v1",
            ])
        #expect(try topics().rights(of: "somebody").isEmpty)
    }

    @Test func forItsConsoleTheGatewayReadsMore() throws {
        let rights = lines(try topics(["TOPIC_CREATE": "never", "CONSOLE": "yes"]).rights(of: "gateway"))
        #expect(
            rights.filter { $0.hasPrefix("Read Topic") } == [
                "Read Topic identity.link.dlq-actions.v1", "Read Topic identity.link.dlq.v1",
                "Read Topic identity.replies.gateway.v1", "Read Topic identity.status.v1",
                "Read Topic identity.sync.dlq-actions.v1", "Read Topic identity.sync.dlq.v1",
                "Read Topic identity.user.dlq-actions.v1", "Read Topic identity.user.dlq.v1",
                "Read Topic identity.verification.dlq-actions.v1", "Read Topic identity.verification.dlq.v1",
            ])
    }

    /// Whoever makes what is missing has to be allowed to.
    @Test func whoCreatesMayCreate() throws {
        let rights = lines(try topics().rights(of: "gateway"))
        #expect(rights.contains("Create Topic identity.replies.gateway.v1"))
        #expect(rights.contains("DescribeConfigs Topic identity.replies.gateway.v1"))
        #expect(rights.contains("DescribeConfigs Cluster kafka-cluster"))
        #expect(!rights.contains { $0.hasPrefix("Create Topic identity.link") })
        #expect(!lines(try topics(["TOPIC_CREATE": "never"]).rights(of: "link")).contains { $0.contains("Create") })
    }

    /// Whoever handles dead letters writes what was done about them.
    @Test func theOperatorWritesWhatIsDoneAboutDeadLetters() throws {
        let rights = try topics().rights(of: DeploymentTopics.operator)
        #expect(rights.contains(KafkaRight(.topic, "identity.link.dlq-actions.v1", .write)))
        #expect(rights.contains(KafkaRight(.topic, "identity.link.dlq.v1", .read)))
        #expect(!rights.contains(KafkaRight(.topic, "identity.link.dlq.v1", .write)))
    }
}
