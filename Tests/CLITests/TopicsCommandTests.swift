// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Messaging
import Runtime
import Supervision
import Testing
import WireJSON

@testable import CLI

/// How topics and rights are shown and written out.
@Suite struct TopicsCommandTests {
    private static func topics(_ environment: [String: String] = [:]) throws -> DeploymentTopics {
        DeploymentTopics(
            try TopicPlan(EnvironmentSettings(environment)),
            apps: AppDirectory([AppSettings(id: "acme", replies: "identity.replies.acme")]))
    }

    private static let good = [
        "min.insync.replicas": "2", "retention.ms": "1209600000", "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": "3000000", "cleanup.policy": "delete",
    ]

    private func finding(
        _ name: String, _ state: TopicState = TopicState(partitions: 12, replicas: 3),
        _ changes: [String: String] = [:], refusal: KafkaError? = nil, brokers: Int = 3
    ) throws -> TopicSurvey.Finding {
        let environment = ["DEAD_LETTER_RETENTION_HOURS": "336"]
        let topic = try #require(try Self.topics(environment).all.first { $0.spec.name == name })
        return TopicSurvey.Finding(
            topic, state, settings: refusal == nil && state.exists ? Self.good.merging(changes) { $1 } : [:],
            refusal: refusal, brokers: brokers)
    }

    @Test func whatIsWrongStandsBeside() throws {
        let weak = ["min.insync.replicas": "1", "retention.ms": "172800000", "message.timestamp.type": "CreateTime"]
        let denied = KafkaError(code: KafkaError.Code.topicAuthorizationFailed, message: "not authorized")
        let findings = try [
            finding("identity.link.commands.v1"),
            finding(
                "identity.replies.acme", TopicState(error: KafkaError(code: KafkaError.Code.unknownTopicOrPartition))),
            finding("identity.user.commands.v1", TopicState(partitions: 6, replicas: 3), weak),
            finding("identity.user.dlq.v1", TopicState(partitions: 12, leaderless: [3, 4], replicas: 3)),
            finding("identity.user.events.v1", TopicState(error: denied)),
            finding("identity.sync.events.v1", refusal: denied),
            finding("identity.sync.dlq.v1", TopicState(partitions: 12, replicas: 1), brokers: 3),
            finding("identity.link.dlq.v1", TopicState(partitions: 12, replicas: 1), brokers: 1),
        ]
        let reason = String(repeating: " ", count: 85)
        #expect(
            TopicTable(findings).lines == [
                "TOPIC                      PARTS  COPIES  MIN.ISR  KEEPS    TIME    SIZE",
                "identity.link.commands.v1     12       3        2   14 d  broker  3.0 MB  ok",
                "identity.replies.acme          -       -        -      -       -       -  MISSING      of app acme",
                "identity.user.commands.v1      6       3        1    2 d  sender  3.0 MB  WEAK         "
                    + "6 partitions, wants 12: no more than 6 loops share the work",
                reason + "  retention 2 d, wants 14 d: what nobody has read by then is lost",
                reason + "  min.insync.replicas 1, wants 2: an acknowledged message can be lost with one broker",
                reason + "  time by sender, wants broker: "
                    + "a sender's wrong clock makes the inbox forget too early or too late",
                "identity.user.dlq.v1          12       3        2   14 d  broker  3.0 MB  LEADERLESS   "
                    + "nobody can use partition 3, 4",
                "identity.user.events.v1        -       -        -      -       -       -  HIDDEN       "
                    + "whether it is there, Kafka tells only who may see it (Describe)",
                "identity.sync.events.v1       12       3        -      -       -       -  HIDDEN       "
                    + "its settings are not told: not authorized (DescribeConfigs)",
                "identity.sync.dlq.v1          12       1        2   14 d  broker  3.0 MB  WEAK         "
                    + "copies 1, wants 2: the loss of a broker's disk loses messages",
                "identity.link.dlq.v1          12       1        2   14 d  broker  3.0 MB  ok",
            ])
    }

    @Test func aLineOfJSONHasWhatIsWantedAndWhatIsThere() throws {
        let line = try finding(
            "identity.replies.acme", TopicState(error: KafkaError(code: KafkaError.Code.unknownTopicOrPartition))
        ).json(isCreated: false)
        #expect(
            line == #"{"topic":"identity.replies.acme","state":"missing","app":"acme","#
                + #""wanted":{"partitions":12,"cleanup.policy":"delete"},"problems":["of app acme"]}"#)
        let other = try JSONValue(parsing: Array(finding("identity.link.events.v1").json(isCreated: true).utf8))
        #expect(other["actual"]?["retention.ms"]?.int64Value == 1_209_600_000)
        #expect(other["created"] == true && other["problems"] == [])
    }

    // MARK: Written out

    private static let settings = ["TOPIC_REPLICATION_FACTOR": "3", "TOPIC_PREFIX": "p_1."]

    @Test func propertiesNameEachSetting() throws {
        let text = TopicWriter(try Self.topics(Self.settings), cluster: "k").text(.properties)
        #expect(
            text.hasPrefix(
                """
                p_1.identity.link.commands.v1.partitions=12
                p_1.identity.link.commands.v1.replication.factor=3
                p_1.identity.link.commands.v1.config.cleanup.policy=delete
                p_1.identity.link.commands.v1.config.max.message.bytes=2000000
                p_1.identity.link.commands.v1.config.message.timestamp.type=LogAppendTime
                p_1.identity.link.commands.v1.config.min.insync.replicas=2
                p_1.identity.link.commands.v1.config.retention.bytes=-1
                p_1.identity.link.commands.v1.config.retention.ms=1209600000

                """))
    }

    @Test func aShellMakesThem() throws {
        let lines = TopicWriter(try Self.topics(["TOPIC_REPLICATION_FACTOR": "1"]), cluster: "k").text(.sh)
            .split(separator: "\n")
        #expect(lines.count == 1 + 24 && lines[0].hasPrefix("# B is"))
        #expect(
            lines[3] == #"kafka-topics --bootstrap-server "$B" --create --if-not-exists "#
                + "--topic identity.link.dlq.v1 --partitions 12 --replication-factor 1 --config cleanup.policy=delete "
                + "--config max.message.bytes=3000000 --config retention.bytes=-1 --config retention.ms=2592000000")
    }

    @Test func terraformReadsJSON() throws {
        let text = TopicWriter(try Self.topics(Self.settings), cluster: "k").text(.terraform)
        let value = try JSONValue(parsing: Array(text.utf8))
        let topic = value["resource"]?["kafka_topic"]?["p_1_identity_replies_acme"]
        #expect(topic?["name"] == "p_1.identity.replies.acme")
        #expect(topic?["replication_factor"]?.int64Value == 3)
        #expect(topic?["config"]?["min.insync.replicas"] == "2")
    }

    @Test func strimziNamesResourcesInItsOwnWay() throws {
        let documents = TopicWriter(try Self.topics(Self.settings), cluster: "prod").text(.strimzi)
            .components(separatedBy: "\n---\n")
        #expect(documents.count == 24)
        #expect(
            documents[0] == """
                apiVersion: kafka.strimzi.io/v1beta2
                kind: KafkaTopic
                metadata:
                  name: "p-1.identity.link.commands.v1"
                  labels:
                    strimzi.io/cluster: "prod"
                spec:
                  topicName: "p_1.identity.link.commands.v1"
                  partitions: 12
                  replicas: 3
                  config:
                    cleanup.policy: "delete"
                    max.message.bytes: 2000000
                    message.timestamp.type: "LogAppendTime"
                    min.insync.replicas: 2
                    retention.bytes: -1
                    retention.ms: 1209600000
                """)
    }

    // MARK: Rights

    @Test func aLineHasAllRightsToOneThing() throws {
        let grants = KafkaGrant.all(try Self.topics().rights(of: "link"))
        let add = #"kafka-acls --bootstrap-server "$B" --add --allow-principal "#
        let lines = grants.map { $0.shell("User:ib-link") }
        #expect(
            lines.contains(
                add + "User:ib-link --operation Read --operation Create --operation DescribeConfigs "
                    + "--topic identity.link.commands.v1"))
        #expect(
            lines.contains(
                add + "User:ib-link --operation Write --topic identity.replies. --resource-pattern-type prefixed"))
        #expect(lines.contains(add + "User:ib-link --operation Read --group identity.link.replies"))
        #expect(Set(lines).count == lines.count)
        let named = grants[0].shell("User:CN=it's me,O=x")
        #expect(named.contains(#"--allow-principal 'User:CN=it'\''s me,O=x' --operation"#))
    }

    @Test func principalsMayHaveCommas() throws {
        let members = ["link", "user", "gateway"]
        let all = try Principals(["link=User:CN=a,O=b,user=User:u", "gateway=User:g"], among: members).all
        #expect(all.map { "\($0.member) \($0.user)" } == ["link User:CN=a,O=b", "user User:u", "gateway User:g"])
        for (wrong, words) in [
            ("User:x", "does not say who"), ("lnik=User:x", "Did you mean link?"),
            ("link=User:x,link=User:y", "names link twice"),
        ] {
            let problem = #expect(throws: Problem.self) { try Principals([wrong], among: members) }
            #expect(problem?.status == .usage && problem?.what.contains(words) == true, "\(wrong)")
        }
    }

    @Test(arguments: [
        ["--create", "--acls", "--principal", "link=User:a"], ["--acls"], ["--principal", "link=User:a"],
        ["--json", "--format", "sh"], ["--format", "yaml"],
    ]) func whatContradictsItselfIsRefused(_ arguments: [String]) {
        #expect(throws: (any Error).self) { try IdentityBusCommand.parseAsRoot(["topics"] + arguments) }
    }
}
